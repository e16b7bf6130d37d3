package app

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// protocolKey is the nonce key that every account has on every chain.
var protocolKey chain.NonceKey //nolint:gochecknoglobals // a constant, if arrays could be one

// demandShare bounds how much of the time goes into counting what intents ask for, which
// may take reading all of them: one part in so many.
const demandShare = 20

// onDemand is a lane that runs because an intent has asked for its nonce key.
type onDemand struct {
	stop   context.CancelFunc
	wanted time.Time // last
}

// follow runs lanes of other nonce keys than 0 for as long as intents ask for them, and
// a while longer: a lane that is not held learns nothing of what has become of its
// nonces until it is held again.
func (r *relay) follow(ctx context.Context, c *served) {
	open := map[chain.Sequence]*onDemand{}
	var running sync.WaitGroup
	defer running.Wait()
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
		for _, id := range c.wanted(demand) {
			if held := open[id]; held != nil {
				held.wanted = now
				continue
			}
			if len(open) >= r.settings.Lane.Extra {
				break
			}
			working, stop := context.WithCancel(ctx)
			open[id] = &onDemand{stop, now}
			running.Go(func() { r.work(working, c.lane(id.Sender, id.Key)) })
		}
		for id, held := range open {
			if now.Sub(held.wanted) > r.settings.Lane.Linger {
				held.stop()
				delete(open, id)
			}
		}
	}
}

// waiting notes how many intents there are, by what they have.
func (r *relay) waiting(on chain.ID, demand []intent.Demand) {
	waiting, assigned := 0, 0
	for _, d := range demand {
		waiting, assigned = waiting+d.Waiting, assigned+d.Assigned
	}
	r.metrics.Waiting(on.String(), waiting, assigned)
}

// wanted are the lanes of other nonce keys than 0 that intents ask for and this process
// has the key of.
func (c *served) wanted(demand []intent.Demand) (lanes []chain.Sequence) {
	for _, d := range demand {
		if d.Key == nil || *d.Key == protocolKey {
			continue
		}
		if signer, ok := c.chosen(d.From, *d.Key); ok {
			id := chain.Sequence{Chain: c.Chain, Sender: signer, Key: *d.Key}
			if !slices.Contains(lanes, id) {
				lanes = append(lanes, id)
			}
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
