package app

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/api"
	rest "github.com/tempo-watchtower/watchtower/api/relay"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/guard"
	"github.com/tempo-watchtower/watchtower/commands/relayer"
	"github.com/tempo-watchtower/watchtower/domain/budget"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/signer"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// Guard is what is asked before anything is taken on or signed: it heeds what stands in a
// log. snapshots are those of budgets; nil has all of their events read.
func Guard(s settings.Settings, store commands.Store, snapshots *commands.Snapshots[budget.State], crash func(string), now func() time.Time, random io.Reader, log *slog.Logger) *guard.Guard {
	numbers := guard.DefaultSettings()
	numbers.Failures = s.Signers.Failures
	return guard.New(guard.Config{
		Safeguards: guard.Safeguards{Store: store, Codec: safeguard.Codec(), Crash: crash},
		Signers:    guard.Signers{Store: store, Codec: signer.Codec(), Crash: crash},
		Budgets:    guard.Budgets{Store: store, Codec: budget.Codec(), Snapshots: snapshots, Crash: crash},
		Members:    s.Pools.Named, Settings: numbers, Now: now, Random: random, Log: log,
	})
}

// rates are the buckets that all replicas count in; nil where there is one process.
func rates(database any) *postgres.Rates {
	if db, shared := database.(*postgres.DB); shared {
		return db.Rates()
	}
	return nil
}

// Buckets that are full are forgotten now and then: two replicas that do so hinder nobody.
const (
	bucketsMost  = 10_000
	bucketsEvery = time.Minute
)

func (r *relay) forgetRates(ctx context.Context) {
	buckets := rates(r.in.Ports.Storage.Database)
	for buckets != nil && commands.Pause(ctx, bucketsEvery) == nil {
		for gone := bucketsMost; gone == bucketsMost; {
			var err error
			if gone, err = buckets.Forget(ctx, bucketsMost); err != nil && ctx.Err() == nil {
				r.log.Debug("full buckets of rates not forgotten", "err", err)
			}
		}
	}
}

// snapshots spare the relayer the reading of a whole budget when it starts.
func (r *relay) snapshots() *commands.Snapshots[budget.State] {
	if r.in.Ports.Storage.Snapshots == nil || r.in.Settings.SnapshotsEvery == 0 {
		return nil
	}
	return &commands.Snapshots[budget.State]{
		Rows: r.in.Ports.Storage.Snapshots, Every: r.in.Settings.SnapshotsEvery,
		Schema: budget.SnapshotSchema, Encode: budget.State.Snapshot, Decode: budget.Restore,
		Failed: func(stream event.Stream, err error) {
			r.log.Warn("a snapshot is of no use, the events are read", "stream", stream, "err", err)
		},
	}
}

// operators are their routes.
func (r *relay) operators() rest.Operators {
	o := rest.Operators{
		Guard: r.guard, Signers: r.settings.Signers.Allowed, Now: r.in.Ports.Now,
		Mender: relayer.Mender{Lanes: r.lanes, Intents: r.intents, Now: r.in.Ports.Now, Random: r.in.Ports.Random},
	}
	for _, c := range r.chains {
		o.Chains = append(o.Chains, c.Chain)
	}
	return o
}

func (r *relay) admin() ([]api.Route, []api.Kind) {
	return r.operators().Routes(), r.operators().Kinds()
}

// register says whose keys are here, on every chain, before any of them signs.
func (r *relay) register(ctx context.Context) error {
	for _, c := range r.chains {
		if err := r.guard.Registered(ctx, c.Chain, r.settings.Pools.Of, c.signers, r.settings.Delivery.Owner.LeaseRenew); err != nil {
			return err
		}
	}
	return nil
}

// watchSigners looks what signers have, chain by chain, until ctx ends.
func (r *relay) watchSigners(ctx context.Context) {
	var running sync.WaitGroup
	for i, c := range r.chains {
		running.Go(func() {
			r.guard.Watch(ctx, c.Chain, newMoney(r.settings, c.Chain, r.in.Pools[i]), c.signers)
		})
	}
	running.Wait()
}

// pathUSD is the token that fees on Tempo are paid in where neither a transaction nor its
// payer's account names another. Source: docs.tempo.xyz, "Fees", and the tempoxyz/tempo
// node, DEFAULT_FEE_TOKEN.
var pathUSD = chain.Address{0x20, 0xc0} //nolint:gochecknoglobals // a constant, if arrays could be one

// attodollars are the smallest unit of Tempo's fees, of which a unit of a TIP-20 token,
// which has six decimals, is so many.
const attodollars = 1_000_000_000_000

// money tells what accounts can pay fees with.
type money struct {
	*rpc.Reader
	token *chain.Address
	unit  uint64
}

func newMoney(s settings.Settings, on chain.ID, pool *rpc.Pool) money {
	m := money{pool.Reader(), nil, 1}
	if s.Formats.Of(on) == settings.Tempo {
		// An account has no other money there: what nodes call its balance is a constant.
		m.token, m.unit = &pathUSD, attodollars
		if tokens := s.On(on).Fee.Tokens; len(tokens) > 0 {
			m.token = &tokens[0]
		}
	}
	return m
}

// Balances are those of accounts, in the smallest unit that fees are reckoned in.
func (m money) Balances(ctx context.Context, of []chain.Address) ([]chain.Amount, error) {
	all, err := m.Reader.Balances(ctx, m.token, of)
	for i := range all {
		all[i] = all[i].Times(m.unit)
	}
	return all, err
}
