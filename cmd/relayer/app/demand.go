package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/lane"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// protocolKey is the nonce key that every account has on every chain.
var protocolKey chain.NonceKey //nolint:gochecknoglobals // a constant, if arrays could be one

// demandShare bounds how much of the time goes into counting what intents ask for, which
// may take reading all of them: one part in so many.
const demandShare = 20

// follow runs lanes of other nonce keys than 0 for as long as intents ask for them, and
// a while longer, but not before all that has landed in them is final: a lane that is not
// held learns nothing of what has become of its nonces, and tells nobody of a fork.
func (r *relay) follow(ctx context.Context, c *served) {
	open := heldLanes{most: r.settings.Lane.Extra, share: r.settings.Lane.PerClient(), lanes: map[chain.Sequence]*heldLane{}}
	var running sync.WaitGroup
	defer running.Wait()
	var look time.Time // for lanes that nothing asks for, not before that
	kept := leftovers{lanes: map[chain.Sequence]bool{}, ago: r.in.Ports.Storage.Ago}
	for next := r.settings.Lane.Poll; commands.Pause(ctx, next) == nil; {
		began := r.in.Ports.Now()
		demand, err := r.queue.Demand(ctx, c.Chain)
		if err != nil {
			r.log.Debug("what intents ask for was not read", "chain", c.Chain, "err", err)
			continue
		}
		r.waiting(c.Chain, demand)
		now := r.in.Ports.Now()
		next = max(r.settings.Lane.Poll, demandShare*now.Sub(began))
		wanted := c.wanted(demand)
		if !now.Before(look) {
			landed, err := c.landed(ctx, r.in.Ports.Storage.Board, func(id chain.Sequence) bool { return open.lanes[id] != nil })
			if err != nil {
				r.log.Debug("what has landed was not read", "chain", c.Chain, "err", err)
			}
			left, err := c.left(ctx, r.in.Store, &kept, func(id chain.Sequence) bool { return open.lanes[id] != nil })
			if err != nil {
				r.log.Debug("which nonces were left was not read", "chain", c.Chain, "err", err)
			}
			for _, id := range slices.Concat(landed, left) {
				wanted = append(wanted, laneDemand{id: id, unfinished: true})
			}
			look = now.Add(max(r.settings.Lane.Poll, demandShare*r.in.Ports.Now().Sub(now)))
		}
		open.want(wanted, now)
		for _, d := range open.next(wanted, r.evicting(ctx, c, &open, now)) {
			working, stop := context.WithCancel(ctx)
			open.lanes[d.id] = &heldLane{stop: stop, client: d.client, wanted: now}
			running.Go(func() { r.work(working, c.lane(d.id.Sender, d.id.Key)) })
		}
		for _, id := range slices.SortedFunc(maps.Keys(open.lanes), inOrder) {
			held := open.lanes[id]
			if now.Sub(held.wanted) <= r.settings.Lane.Linger {
				continue
			}
			if settled, err := c.settled(ctx, id); err != nil || !settled {
				held.wanted = now // it is looked at again after as long
				continue
			}
			held.stop()
			delete(open.lanes, id)
		}
		r.in.Ports.Metrics.QuotaUsed("lanes-"+c.Chain.String(), open.fullest(), r.settings.Lane.PerClient())
	}
}

// inOrder puts a chain's lanes in an order that is always the same.
func inOrder(a, b chain.Sequence) int {
	return cmp.Or(bytes.Compare(a.Sender[:], b.Sender[:]), bytes.Compare(a.Key[:], b.Key[:]))
}

// verdicts are what delivery knows of transactions in blocks.
type verdicts interface {
	Verdicts(ctx context.Context, id chain.ID, phase tx.Phase, from, to uint64, after chain.Hash, limit int) ([]tx.Work, error)
}

// rowsMax bounds how many rows are read at once.
const rowsMax = 1000

// landed are the lanes of other nonce keys than 0 in which something has landed, and some
// nonce is not closed: its block is not final, or one of those that were told with it. No
// intent asks for them any more if it has come out before that. Those that are held are left
// out.
func (c *served) landed(ctx context.Context, board verdicts, held func(chain.Sequence) bool) ([]chain.Sequence, error) {
	blocks, err := c.Blocks.Blocks(ctx, c.Chain)
	if err != nil || len(blocks) == 0 {
		return nil, err
	}
	var lanes []chain.Sequence
	met := map[chain.Sequence]bool{}
	for _, rows := range []struct {
		phase tx.Phase
		from  uint64
	}{{tx.Announced, 0}, {tx.Sealed, blocks[0].Number}} {
		from, after := rows.from, chain.Hash{}
		for {
			page, err := board.Verdicts(ctx, c.Chain, rows.phase, from, math.MaxUint64, after, rowsMax)
			if err != nil {
				return lanes, err
			}
			for _, row := range page {
				id := row.Sequence()
				if met[id] || id.Key == protocolKey || id.Key.IsExpiring() || !slices.Contains(c.signers, id.Sender) || held(id) {
					continue
				}
				met[id] = true
				settled, err := c.settled(ctx, id)
				if err != nil {
					return lanes, err
				}
				if !settled {
					lanes = append(lanes, id)
				}
			}
			if len(page) < rowsMax {
				break
			}
			last := page[len(page)-1]
			from, after = last.Block.Number, last.Hash
		}
	}
	return lanes, nil
}

// settled reports whether no nonce of a lane is open that an intent holds, or for which
// anything was signed or a no-op chosen. That one has landed a holder may have told its
// intent, and not the lane.
func (c *served) settled(ctx context.Context, id chain.Sequence) (bool, error) {
	held, err := c.Lanes.Load(ctx, lane.Stream(id))
	if err != nil {
		return false, err
	}
	for slot := range held.State.Slots() {
		if len(slot.Attempts) > 0 || !slot.IsFree() {
			return false, nil
		}
	}
	return true, nil
}

// waiting notes how many intents there are, by what they have.
func (r *relay) waiting(on chain.ID, demand []intent.Demand) {
	waiting, assigned := 0, 0
	for _, d := range demand {
		waiting, assigned = waiting+d.Waiting, assigned+d.Assigned
	}
	r.metrics.Waiting(on.String(), waiting, assigned)
}

// wanted lists the lanes of other nonce keys than 0 that clients' intents ask for and this
// process has the key of.
func (c *served) wanted(demand []intent.Demand) (lanes []laneDemand) {
	at := map[laneDemand]int{} // without the position
	for _, d := range demand {
		if d.Key == nil || *d.Key == protocolKey {
			continue
		}
		if signer, ok := c.chosen(d.From, *d.Key); ok {
			of := laneDemand{id: chain.Sequence{Chain: c.Chain, Sender: signer, Key: *d.Key}, client: d.Client}
			i, known := at[of]
			if !known {
				i, at[of] = len(lanes), len(lanes)
				of.first = d.First
				lanes = append(lanes, of)
			}
			lanes[i].first = min(lanes[i].first, d.First)
		}
	}
	return lanes
}

// chosen is who signs under a nonce key: of a pool always the same one, as long as the
// same keys are here, so that a key is one lane and not as many as the pool has signers.
func (c *served) chosen(from intent.From, key chain.NonceKey) (chain.Address, bool) {
	if from.Signer != nil {
		return *from.Signer, slices.Contains(c.signers, *from.Signer)
	}
	var here []chain.Address
	for _, a := range c.relay.settings.Pools.Named(from.Pool) {
		if slices.Contains(c.signers, a) {
			here = append(here, a)
		}
	}
	if len(here) == 0 {
		return chain.Address{}, false
	}
	digest := chain.Keccak(key[:])
	return here[binary.BigEndian.Uint64(digest[:8])%uint64(len(here))], true
}
