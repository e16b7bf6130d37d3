package app

import (
	"context"
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/lane"
)

// leftovers are the lanes of other nonce keys than 0 in which nonces were handed out, as far
// as the log was read, and that may not be settled.
type leftovers struct {
	begun bool
	at    event.Position
	lanes map[chain.Sequence]bool
}

// leftMax is how much of the log's end is read for them at first, in positions: who left a
// nonce did so shortly before it died, and is mostly back soon.
const leftMax = 100_000

// left are those lanes that are not settled and nobody here holds. An intent that has a nonce
// has its lane asked for, but not one that was canceled before it knew of its nonce, when the
// holder had died: the nonce, and what is set aside for it, would stay until another intent
// asks for the key.
func (c *served) left(ctx context.Context, log commands.Store, kept *leftovers, held func(chain.Sequence) bool) (lanes []chain.Sequence, err error) {
	if !kept.begun {
		head, err := log.Head(ctx)
		if err != nil {
			return nil, err
		}
		kept.begun, kept.at = true, head-min(head, leftMax)
	}
	for batch, err := range log.ReadAll(ctx, kept.at, event.Filter{Names: []string{"lane.reserved."}}, rowsMax) {
		if err != nil {
			return nil, err
		}
		for _, r := range batch.Events {
			if id, err := lane.ParseStream(r.Stream); err == nil && id.Chain == c.Chain && id.Key != protocolKey && slices.Contains(c.signers, id.Sender) {
				kept.lanes[id] = true
			}
		}
		kept.at = batch.Next
	}
	for _, id := range slices.SortedFunc(maps.Keys(kept.lanes), inOrder) {
		if held(id) {
			continue
		}
		settled, err := c.settled(ctx, id)
		if err != nil {
			return lanes, err
		}
		if settled {
			delete(kept.lanes, id)
		} else {
			lanes = append(lanes, id)
		}
	}
	return lanes, nil
}
