package app

import (
	"context"
	"slices"
	"sync"
	"time"

	relayapi "github.com/tempo-watchtower/watchtower/api/relay"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/doctor"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/projections/relay/lanes"
)

// fleet builds the parts behind the routes about signers, pools and lanes.
func (r *relay) fleet() *relayapi.Fleet {
	pools := map[string][]chain.Address{}
	for _, p := range r.settings.Pools {
		pools[p.Name] = r.settings.Pools.Named(p.Name)
	}
	f := &relayapi.Fleet{
		Signers: r.settings.Signers.Allowed, Pools: pools, States: r.guard, Lanes: lanes.Query{DB: r.in.Ports.Storage.View},
		Demand: r.demands.last, Held: r.working.state, Next: r.next, Diagnose: r.diagnose,
	}
	for _, c := range r.chains {
		f.Chains = append(f.Chains, c.Chain)
	}
	return f
}

// demands are the last counts of chains' open intents. It is safe for concurrent use.
type demands struct {
	mu  sync.Mutex
	all map[chain.ID]demandAt
}

type demandAt struct {
	demand []intent.Demand
	at     time.Time
}

func (d *demands) set(on chain.ID, demand []intent.Demand, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[chain.ID]demandAt{}
	}
	d.all[on] = demandAt{demand, at}
}

func (d *demands) last(on chain.ID) ([]intent.Demand, time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.all[on]
	return c.demand, c.at
}

// working are the lanes that this process works on, as of their last turns. It is safe for concurrent
// use.
type working struct {
	mu  sync.Mutex
	all map[chain.Sequence]relayapi.HeldLane
}

// turned records the result of a lane's turn. The last error stays until the lane is given up.
func (w *working) turned(t worker.Turn, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.Over {
		delete(w.all, t.Lane)
		return
	}
	if w.all == nil {
		w.all = map[chain.Sequence]relayapi.HeldLane{}
	}
	next := relayapi.HeldLane{Budget: t.Budget, Drift: t.Drift, TurnAt: now, Troubled: t.Troubled, Trouble: t.Trouble, TroubleAt: now}
	if was := w.all[t.Lane]; !t.Troubled {
		next.Trouble, next.TroubleAt = was.Trouble, was.TroubleAt
	}
	w.all[t.Lane] = next
}

func (w *working) state(id chain.Sequence) (relayapi.HeldLane, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	held, here := w.all[id]
	return held, here
}

// next asks the chain for a lane's next nonce.
func (r *relay) next(ctx context.Context, id chain.Sequence) (lane.Witness, error) {
	i := slices.IndexFunc(r.chains, func(c *served) bool { return c.Chain == id.Chain })
	if i < 0 {
		return lane.Witness{}, lane.ErrUnknown
	}
	return r.chains[i].node.Next(ctx, id, false)
}

// diagnose examines a lane of this process's stores and chains.
func (r *relay) diagnose(ctx context.Context, id chain.Sequence) (any, error) {
	facts, err := r.examination().facts(ctx, id, r.sources())
	if err != nil {
		return nil, err
	}
	return doctor.Diagnose(facts), nil
}
