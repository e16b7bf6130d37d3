package app

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	relayapi "github.com/tempo-watchtower/watchtower/api/relay"
	"github.com/tempo-watchtower/watchtower/api/rest"
	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// Guard builds the guard that is asked before an intent is accepted or signed. It follows the
// safeguards, budgets and signers in a log. snapshots hold budgets; nil reads all their events.
func Guard(s settings.Settings, store port.Store, snapshots *handler.Snapshots[budget.State], crash func(string), now func() time.Time, random io.Reader, log *slog.Logger) *guard.Guard {
	numbers := guard.DefaultSettings()
	numbers.Failures = s.Signers.Failures
	return guard.New(guard.Config{
		Safeguards: guard.Safeguards{Store: store, Codec: safeguard.Codec(), Random: random, Crash: crash},
		Signers:    guard.Signers{Store: store, Codec: signer.Codec(), Random: random, Crash: crash},
		Budgets:    guard.Budgets{Store: store, Codec: budget.Codec(), Random: random, Snapshots: snapshots, Crash: crash},
		Members:    s.Pools.Named, Settings: numbers, Now: now, Log: log,
	})
}

// rates are the rate limit buckets that all replicas share; nil with a single process.
func rates(s delivery.Storage) *postgres.Rates {
	if s.Postgres == nil {
		return nil
	}
	return s.Postgres.Rates()
}

// Full buckets are deleted periodically. Several replicas may do so at once.
const (
	bucketsMost  = 10_000
	bucketsEvery = time.Minute
)

func (r *relay) forgetRates(ctx context.Context) {
	buckets := rates(r.in.Ports.Storage)
	for buckets != nil && pause.For(ctx, bucketsEvery) == nil {
		for gone := bucketsMost; gone == bucketsMost; {
			var err error
			if gone, err = buckets.Forget(ctx, bucketsMost); err != nil && ctx.Err() == nil {
				r.log.Debug("full buckets of rate limits not deleted", "err", err)
			}
		}
	}
}

// snapshots spare the relayer reading a whole budget when it starts.
func (r *relay) snapshots() *handler.Snapshots[budget.State] {
	if r.in.Ports.Storage.Snapshots == nil || r.in.Settings.SnapshotsEvery == 0 {
		return nil
	}
	return &handler.Snapshots[budget.State]{
		Rows: r.in.Ports.Storage.Snapshots, Every: r.in.Settings.SnapshotsEvery,
		Schema: budget.SnapshotSchema, Encode: budget.State.Snapshot, Decode: budget.Restore,
		Failed: func(stream eventlog.Stream, err error) {
			r.log.Warn("a snapshot cannot be used, reading all events instead", "stream", stream, "err", err)
		},
	}
}

// operators are the dependencies of the operators' routes.
func (r *relay) operators() relayapi.Operators {
	o := relayapi.Operators{
		Guard: r.guard, Signers: r.settings.Signers.Allowed, Now: r.in.Ports.Now,
		Mender: worker.Mender{Lanes: r.lanes, Intents: r.intents, Now: r.in.Ports.Now},
	}
	for _, c := range r.chains {
		o.Chains = append(o.Chains, c.Chain)
	}
	return o
}

func (r *relay) admin() ([]rest.Route, []rest.Kind) {
	return r.operators().Routes(), r.operators().Kinds()
}

// register records whose keys are here, for every chain, before any of them signs.
func (r *relay) register(ctx context.Context) error {
	for _, c := range r.chains {
		if err := r.guard.Registered(ctx, c.Chain, r.settings.Pools.Of, c.signers, r.settings.Delivery.Owner.LeaseRenew); err != nil {
			return err
		}
	}
	return nil
}

// watchSigners watches signers' balances, for each chain, until ctx ends.
func (r *relay) watchSigners(ctx context.Context) {
	var running sync.WaitGroup
	for i, c := range r.chains {
		running.Go(func() {
			r.guard.Watch(ctx, c.Chain, newMoney(r.settings, c.Chain, r.in.Pools[i]), c.signers)
		})
	}
	running.Wait()
}

// pathUSD is the default token for fees on Tempo, where neither the transaction nor its payer's
// account names another. Source: docs.tempo.xyz, "Fees", and the tempoxyz/tempo node,
// DEFAULT_FEE_TOKEN.
var pathUSD = chain.Address{0x20, 0xc0} //nolint:gochecknoglobals // a constant, if arrays could be one

// attodollars is the number of Tempo's smallest fee units per unit of a TIP-20 token, which has
// six decimals.
const attodollars = 1_000_000_000_000

// money reads the balances from which accounts pay fees.
type money struct {
	*rpc.Reader
	token *chain.Address
	unit  uint64
}

func newMoney(s settings.Settings, on chain.ID, pool *rpc.Pool) money {
	m := money{pool.Reader(), nil, 1}
	if s.Formats.Of(on) == settings.Tempo {
		// Tempo has no native money: the balance that nodes report is a constant.
		m.token, m.unit = &pathUSD, attodollars
		if tokens := s.On(on).Fee.Tokens; len(tokens) > 0 {
			m.token = &tokens[0]
		}
	}
	return m
}

// Balances are the balances of accounts, in the smallest unit of fees.
func (m money) Balances(ctx context.Context, of []chain.Address) ([]chain.Amount, error) {
	all, err := m.Reader.Balances(ctx, m.token, of)
	for i := range all {
		all[i] = all[i].Times(m.unit)
	}
	return all, err
}
