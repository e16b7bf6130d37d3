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
	// ago is a position of the log before so many of its last events, where positions are
	// not one for each event: there none may be calculated. May be nil.
	ago func(ctx context.Context, events int) (event.Position, error)
}

const (
	// leftMax is how much of the log's end is read for them at first, in events: who left a
	// nonce did so shortly before it died, and is mostly back soon.
	leftMax = 100_000
	// leftLooks is how many lanes are read in one look, whose nonces may all have been used
	// long since: lanes that intents ask for are not opened meanwhile.
	leftLooks = 200
)

// begin finds where the log is to be read from.
func (k *leftovers) begin(ctx context.Context, log commands.Store) (err error) {
	if k.ago != nil {
		k.at, err = k.ago(ctx, leftMax)
	} else {
		k.at, err = log.Head(ctx)
		k.at -= min(k.at, leftMax)
	}
	k.begun = err == nil
	return err
}

// left are those lanes that are not settled and nobody here holds. An intent that has a nonce
// has its lane asked for, but not one that was canceled before it knew of its nonce, when the
// holder had died: the nonce, and what is set aside for it, would stay until another intent
// asks for the key.
func (c *served) left(ctx context.Context, log commands.Store, kept *leftovers, held func(chain.Sequence) bool) (lanes []chain.Sequence, err error) {
	if !kept.begun {
		if err := kept.begin(ctx, log); err != nil {
			return nil, err
		}
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
	looks := 0
	for _, id := range slices.SortedFunc(maps.Keys(kept.lanes), inOrder) {
		if held(id) {
			continue
		}
		if looks++; looks > leftLooks {
			break // the next look goes on, when those that are not settled are held
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
