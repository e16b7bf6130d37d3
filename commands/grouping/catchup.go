package grouping

import (
	"context"
	"fmt"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/group"
)

// CatchUp makes transactions of these groups join at once that were accepted or confirmed
// before the call and that the running grouper has not reached yet. It needs no lease.
func (g *Grouper) CatchUp(ctx context.Context, ids []group.ID) error {
	from, err := g.Checkpoints.Checkpoint(ctx, Reader)
	if err != nil {
		return fmt.Errorf("checkpoint of %s: %w", Reader, err)
	}
	joinings := map[group.ID][]joining{}
	for batch, err := range g.Store.ReadAll(ctx, from, readFilter(), followMax) {
		if err != nil {
			return err
		}
		for _, e := range batch.Events {
			j, ok, err := g.joining(ctx, e)
			if err != nil {
				return fmt.Errorf("position %d: %w", e.Position, err)
			}
			id := group.ID{Chain: j.member.Chain, Sender: j.member.Sender, Group: j.member.Group}
			if ok && slices.Contains(ids, id) {
				joinings[id] = append(joinings[id], j)
			}
		}
	}
	for _, id := range group.InOrder(joinings) {
		if err := g.join(ctx, id, joinings[id]); err != nil {
			return err
		}
	}
	return nil
}
