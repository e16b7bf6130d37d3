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

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
)

// protocolKey is the nonce key of every account's default sequence, on every chain.
var protocolKey chain.NonceKey //nolint:gochecknoglobals // a constant, if arrays could be one

// demandShare limits the time spent counting the demand of intents, which may read all of them:
// at most 1/demandShare of the time.
const demandShare = 20

// follow runs lanes of nonce keys other than 0 while intents ask for them, and for a while
// after. It keeps a lane until all its landed transactions are final: without a holder, nonces
// are not closed, and nobody is notified of a fork.
func (r *relay) follow(ctx context.Context, c *served) {
	open := heldLanes{most: r.settings.Lane.Extra, share: r.settings.Lane.PerClient(), lanes: map[chain.Sequence]*heldLane{}}
	var running sync.WaitGroup
	defer running.Wait()
	var look time.Time // next search for lanes without demand
	kept := leftovers{lanes: map[chain.Sequence]bool{}, ago: r.in.Ports.Storage.Ago}
	for next := r.settings.Lane.Poll; pause.For(ctx, next) == nil; {
		began := r.in.Ports.Now()
		demand, err := r.queue.Demand(ctx, c.Chain)
		if err != nil {
			r.log.Debug("lanes that intents request were not read", "chain", c.Chain, "err", err)
			continue
		}
		r.waiting(c.Chain, demand)
		r.demands.set(c.Chain, demand, began)
		now := r.in.Ports.Now()
		next = max(r.settings.Lane.Poll, demandShare*now.Sub(began))
		wanted := c.wanted(demand)
		if !now.Before(look) {
			landed, err := c.landed(ctx, r.in.Ports.Storage.Board, func(id chain.Sequence) bool { return open.lanes[id] != nil })
			if err != nil {
				r.log.Debug("lanes with mined transactions were not read", "chain", c.Chain, "err", err)
			}
			left, err := c.left(ctx, r.in.Store, &kept, func(id chain.Sequence) bool { return open.lanes[id] != nil })
			if err != nil {
				r.log.Debug("lanes with unsettled nonces were not read", "chain", c.Chain, "err", err)
			}
			for _, id := range slices.Concat(landed, left) {
				wanted = append(wanted, laneDemand{id: id, unfinished: true})
			}
			look = now.Add(max(r.settings.Lane.Poll, demandShare*r.in.Ports.Now().Sub(now)))
		}
		open.want(wanted, now)
		c.News.Call(open.fresh(wanted))
		for _, d := range open.next(wanted, r.evicting(ctx, c, &open, now)) {
			working, stop := context.WithCancel(ctx)
			open.lanes[d.id] = &heldLane{stop: stop, client: d.client, wanted: now}
			running.Go(func() { r.work(working, c.lane(d.id.Sender, d.id.Key, d.client)) })
		}
		for _, id := range slices.SortedFunc(maps.Keys(open.lanes), inOrder) {
			held := open.lanes[id]
			if now.Sub(held.wanted) <= r.settings.Lane.Linger {
				continue
			}
			if settled, err := c.settled(ctx, id); err != nil || !settled {
				held.wanted = now // so that it is checked again after the same time
				continue
			}
			held.stop()
			delete(open.lanes, id)
		}
		r.in.Ports.Metrics.QuotaUsed("lanes-"+c.Chain.String(), open.fullest(), r.settings.Lane.PerClient())
	}
}

// inOrder orders a chain's lanes deterministically.
func inOrder(a, b chain.Sequence) int {
	return cmp.Or(bytes.Compare(a.Sender[:], b.Sender[:]), bytes.Compare(a.Key[:], b.Key[:]))
}

// verdicts are delivery's verdicts on transactions in blocks.
type verdicts interface {
	Verdicts(ctx context.Context, id chain.ID, phase tx.Phase, from, to uint64, after chain.Hash, limit int) ([]tx.Work, error)
}

// rowsMax limits the number of rows read at once.
const rowsMax = 1000

// landed lists the lanes of nonce keys other than 0 with a landed transaction and an open nonce:
// its block is not final, or another block reported with it is not. If the intent ended before
// that, no intent asks for the lane. Lanes that this process holds are left out.
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

// settled reports whether a lane has no open nonce that an intent holds, that has a signed
// attempt, or that was chosen for a no-op. A holder may have recorded a landing for the intent
// but not yet for the lane.
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

// waiting counts the waiting intents, with and without a nonce.
func (r *relay) waiting(on chain.ID, demand []intent.Demand) {
	waiting, assigned := 0, 0
	for _, d := range demand {
		waiting, assigned = waiting+d.Waiting, assigned+d.Assigned
	}
	r.metrics.Waiting(on.String(), waiting, assigned)
}

// wanted lists the lanes of nonce keys other than 0 that clients' intents ask for, and whose key
// is in this process.
func (c *served) wanted(demand []intent.Demand) (lanes []laneDemand) {
	at := map[laneDemand]int{} // keyed without the position
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
			lanes[i].waiting += d.Waiting
		}
	}
	return lanes
}

// chosen returns the signer for a nonce key. Of a pool it is always the same signer while the
// keys stay the same, so that a nonce key is one lane and not one per signer of the pool.
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
