package app

import (
	"context"
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// leftovers are the lanes of nonce keys other than 0 with reserved nonces, in the part of the
// log read so far, that may not be settled.
type leftovers struct {
	begun bool
	at    eventlog.Position
	lanes map[chain.Sequence]bool
	// ago returns a position before the last n events of the log, for logs whose positions are
	// not consecutive and cannot be calculated with. May be nil.
	ago func(ctx context.Context, events int) (eventlog.Position, error)
}

const (
	// leftMax is the number of events at the log's end that are read at first: a holder that
	// left a nonce did so shortly before it died, and usually returns soon.
	leftMax = 100_000
	// leftLooks limits the lanes read in one pass, since all their nonces may be used long ago.
	// Lanes with demand are not opened meanwhile.
	leftLooks = 200
)

// begin finds the position from which to read the log.
func (k *leftovers) begin(ctx context.Context, log port.Store) (err error) {
	if k.ago != nil {
		k.at, err = k.ago(ctx, leftMax)
	} else {
		k.at, err = log.Head(ctx)
		k.at -= min(k.at, leftMax)
	}
	k.begun = err == nil
	return err
}

// left lists the leftover lanes that are not settled and not held here. An intent with a nonce
// asks for its lane. But if its holder died, and the intent was canceled before it knew its
// nonce, no intent asks: the nonce and its budget would stay reserved until another intent asks
// for the key.
func (c *served) left(ctx context.Context, log port.Store, kept *leftovers, held func(chain.Sequence) bool) (lanes []chain.Sequence, err error) {
	if !kept.begun {
		if err := kept.begin(ctx, log); err != nil {
			return nil, err
		}
	}
	for batch, err := range log.ReadAll(ctx, kept.at, eventlog.Filter{Names: []string{"lane.reserved."}}, rowsMax) {
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
			break // the next pass goes on, when the unsettled lanes are held
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
