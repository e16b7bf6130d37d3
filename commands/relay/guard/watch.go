package guard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
)

// Balances returns accounts' balances of the currency that they pay fees in, in the chain's
// smallest unit, and signals new blocks.
type Balances interface {
	// Heads signals when there may be a new block, until ctx ends; then it closes.
	Heads(ctx context.Context) <-chan struct{}
	// Balances returns the balances of accounts, in their order. One call asks for all of
	// them.
	Balances(ctx context.Context, of []chain.Address) ([]chain.Amount, error)
}

// Watch reads the balances of a chain's signers at new blocks, at most once per
// Settings.Every, and checks whether draining signers are empty, until ctx ends.
func (g *Guard) Watch(ctx context.Context, on chain.ID, node Balances, signers []chain.Address) {
	told := ""
	for range node.Heads(ctx) {
		err := g.look(ctx, on, node, signers)
		if ctx.Err() != nil {
			return
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != told && err != nil {
			g.Log.Warn("the signers could not be checked", "chain", on, "err", err)
		}
		told = text
		_ = pause.For(ctx, g.Settings.Every) // the heads end with ctx
	}
}

func (g *Guard) look(ctx context.Context, on chain.ID, node Balances, signers []chain.Address) error {
	for _, a := range signers {
		if err := g.finish(ctx, on, a); err != nil {
			return fmt.Errorf("signer %s: %w", a, err)
		}
	}
	balances, err := node.Balances(ctx, signers)
	if err != nil {
		return fmt.Errorf("balances: %w", err)
	}
	for i, a := range signers {
		if err := g.Seen(ctx, on, a, balances[i]); err != nil {
			return fmt.Errorf("signer %s: %w", a, err)
		}
	}
	return nil
}

// followed is the known lanes of a signer, to find out when all are empty. Only the watch
// uses it.
type followed struct {
	upTo eventlog.Position // position up to which the log was searched for lanes
	all  map[eventlog.Stream]*view[lane.State, lane.Command, lane.Event]
}

// openedMax is how many lane openings are read at once.
const openedMax = 1000

// finish records that a draining signer is empty: no nonce of its lanes is open. Nodes may
// still have earlier attempts, and a lane closes a nonce only when it is final.
func (g *Guard) finish(ctx context.Context, on chain.ID, address chain.Address) error {
	k, now := g.signer(on, address), g.Now()
	state, err := k.at(ctx, now.Add(-g.Settings.Watched), now)
	if err != nil || state.Stance.Status != signer.StatusDraining {
		return err
	}
	if err := g.findLanes(ctx, k, on, address); err != nil {
		return err
	}
	for _, stream := range slices.Sorted(maps.Keys(k.lanes.all)) {
		held, err := k.lanes.all[stream].now(ctx, now)
		if err != nil || held.Open() > 0 {
			return err
		}
	}
	return g.tell(ctx, k, signer.Finish{At: now})
}

// findLanes finds all lanes of a signer that were ever opened.
func (g *Guard) findLanes(ctx context.Context, k *key, on chain.ID, address chain.Address) error {
	if k.lanes.all == nil {
		k.lanes.all = map[eventlog.Stream]*view[lane.State, lane.Command, lane.Event]{}
	}
	filter := eventlog.Filter{Names: []string{"lane.opened."}}
	for batch, err := range g.Signers.Store.ReadAll(ctx, k.lanes.upTo, filter, openedMax) {
		if err != nil {
			return err
		}
		for _, r := range batch.Events {
			id, err := lane.ParseStream(r.Stream)
			if err != nil {
				return err
			}
			if id.Chain == on && id.Sender == address && k.lanes.all[r.Stream] == nil {
				k.lanes.all[r.Stream] = &view[lane.State, lane.Command, lane.Event]{
					handler: handler.Handler[lane.State, lane.Command, lane.Event]{Store: g.Signers.Store, Codec: lane.Codec()}, stream: r.Stream,
				}
			}
		}
		k.lanes.upTo = batch.Next
	}
	return nil
}

// Registered registers signers and retries until all are registered or refused, or ctx
// ends.
func (g *Guard) Registered(ctx context.Context, on chain.ID, pools func(chain.Address) []string, signers []chain.Address, retry time.Duration) error {
	for _, a := range signers {
		for {
			err := g.Register(ctx, on, a, pools(a))
			if err == nil {
				break
			}
			g.Log.Error("signer is not registered", "signer", a, "chain", on, "err", err)
			if commands.IsRefusal(err) { // it then signs nothing
				break
			}
			if err := pause.For(ctx, retry); err != nil {
				return err
			}
		}
	}
	return nil
}
