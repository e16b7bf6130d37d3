package grouping

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// CatchUp makes transactions of these groups join at once that were accepted or confirmed
// before the call and that the running grouper has not reached yet. It needs no lease. Of other
// groups' events it decodes none whose bytes show that they are of another group.
func (g *Grouper) CatchUp(ctx context.Context, ids []group.ID) error {
	from, err := g.Checkpoints.Checkpoint(ctx, Reader)
	if err != nil {
		return fmt.Errorf("checkpoint of %s: %w", Reader, err)
	}
	of := wantedOf(ids)
	joinings := map[group.ID][]joining{}
	for batch, err := range g.Store.ReadAll(ctx, from, readFilter(), followMax) {
		if err != nil {
			return err
		}
		for _, e := range batch.Events {
			j, ok, err := g.joining(ctx, e, of)
			if err != nil {
				return fmt.Errorf("position %d: %w", e.Position, err)
			}
			if id := j.id(); ok && slices.Contains(ids, id) {
				joinings[id] = append(joinings[id], j)
			}
		}
	}
	for _, id := range group.InOrder(joinings) {
		// The running grouper reads the same events, and counts the transactions that are left out.
		if _, err := g.join(ctx, id, joinings[id]); err != nil {
			return err
		}
	}
	return nil
}

// acceptedName is the event whose data contains the sender and the group in hex. An event of
// another version is decoded.
const acceptedName = "tx.accepted.v1"

// wanted are groups as texts, to find events of other groups without decoding them. nil wants all
// groups.
type wanted []texts

// texts are the texts in the events of one group.
type texts struct {
	prefix        string // of the streams of the chain's transactions
	sender, group []byte // in hex
}

func wantedOf(ids []group.ID) wanted {
	of := make(wanted, len(ids))
	for i, id := range ids {
		of[i] = texts{tx.StreamPrefix + id.Chain.String() + "-", []byte(id.Sender.String()), []byte(id.Group.String())}
	}
	return of
}

// excludes reports whether an event is certainly of none of the groups.
func (of wanted) excludes(e eventlog.Recorded) bool {
	return of != nil && !slices.ContainsFunc(of, func(t texts) bool {
		return strings.HasPrefix(string(e.Stream), t.prefix) &&
			(e.Name != acceptedName || bytes.Contains(e.Data, t.group) && bytes.Contains(e.Data, t.sender))
	})
}
