// Package app is the relayer as one object: the delivery service, and beside it in the same
// process the relay, which accepts intents, carries them out, and hands signed transactions to
// delivery.
//
// It serves the API of intents on its own listener. It signs with keys from files, the
// environment and a remote signer. Every signer has a lane on every chain, plus lanes under
// other nonce keys when intents ask for them. The relay checks safeguards, budgets and signers
// before it accepts an intent and before it signs, and watches the signers' balances. Operators
// use the internal listener. It delivers events to the webhooks that intents name.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/lease"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	figures "github.com/tempo-watchtower/watchtower/infra/metrics/relay"
	"github.com/tempo-watchtower/watchtower/infra/redis"
)

// Options are serving's inputs beside the settings.
type Options struct {
	delivery.Options
	Environ []string // environment that may hold keys, in the form of os.Environ
}

// Serve is the whole program: it opens the keys and delivery's stores, serves until ctx ends,
// and closes everything. Being stopped while it opens is not an error.
func Serve(ctx context.Context, s settings.Settings, o Options) error {
	err := serve(ctx, s, o)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func serve(ctx context.Context, s settings.Settings, o Options) error {
	if err := checkEnabled(o.Environ); err != nil {
		return err
	}
	if err := s.CheckServe(); err != nil {
		return err
	}
	ring, closeKeys, err := openKeys(ctx, s.Signers, o.Environ, o.Log)
	if err != nil {
		return err
	}
	defer closeKeys() // after the last signature
	o.Extend = func(ctx context.Context, in *delivery.App) (delivery.Extension, error) {
		r, err := newRelay(s, in, ring, Ports{})
		if err != nil {
			return delivery.Extension{}, err
		}
		r.build = o.Build
		listener, server, err := r.front(ctx)
		if err != nil {
			return delivery.Extension{}, errors.Join(err, r.close())
		}
		routes, kinds := r.admin()
		return delivery.Extension{Run: r.run, Listener: listener, Server: server, Program: "relayer", Admin: routes, Kinds: kinds, Wants: r.attempts().Wanted}, nil
	}
	return delivery.Serve(ctx, s.Delivery, o.Options)
}

// relay is the part that runs beside delivery.
type relay struct {
	settings settings.Settings
	build    delivery.Build
	in       *delivery.App
	queue    worker.Queue
	intents  worker.Intents
	lanes    worker.Lanes
	guard    *guard.Guard
	ring     *keys.Ring
	owner    lease.Owner // of lanes
	chains   []*served
	notices  *notices // nil when webhooks are off
	close    func() error
	feeds    atomic.Bool // whether this process feeds the queue of intents
	crowds   crowds
	demands  demands
	working  working
	metrics  *figures.Metrics
	log      *slog.Logger
}

func newRelay(s settings.Settings, in *delivery.App, ring *keys.Ring, ports Ports) (*relay, error) {
	tables, err := tablesOf(in.Ports.Storage, ports)
	if err != nil {
		return nil, err
	}
	r := &relay{
		settings: s, in: in, ring: ring, queue: queueOf(tables), log: in.Ports.Log,
		intents: worker.Intents{Store: in.Store, Codec: intent.Codec(), Random: in.Ports.Random, Crash: in.Ports.Crash},
		lanes:   worker.Lanes{Store: in.Store, Codec: lane.Codec(), Random: in.Ports.Random, Crash: ofLanes(in.Ports.Crash)},
		owner:   in.Owner(), close: func() error { return nil },
		metrics: figures.New(in.Ports.Metrics, in.Ports.Now),
	}
	r.observe()
	if r.notices, err = newNotices(s.Webhooks, s.Front.MessageData, in, tables, ports, r.metrics); err != nil {
		return nil, err
	}
	r.guard = Guard(s, in.Store, r.snapshots(), in.Ports.Crash, in.Ports.Now, in.Ports.Random, in.Ports.Log)
	if buckets := rates(in.Ports.Storage); buckets != nil {
		r.guard.Buckets = buckets
	}
	for i, c := range s.Delivery.Chains {
		r.chains = append(r.chains, r.serve(c.ID, in.Pools[i]))
	}
	if s.Lane.Leases == settings.ByRedis {
		leases, err := redis.OpenLeases(s.Delivery.Redis.Reveal())
		if err != nil {
			return nil, fmt.Errorf("leases of lanes: %w", err)
		}
		r.owner.Leases, r.close = leases, leases.Close
	}
	return r, nil
}

// attempts reports which bytes the lanes may still need.
func (r *relay) attempts() worker.Attempts {
	return worker.Attempts{Lanes: r.lanes, Vault: r.in.Vault, Decode: delivery.Decode}
}

// ofLanes prefixes the crash points of lanes' appends, to distinguish them from others.
func ofLanes(crash func(point string)) func(point string) {
	if crash == nil {
		return nil
	}
	return func(point string) { crash("lane." + point) }
}

// run carries out intents until ctx ends, and waits for all its goroutines.
func (r *relay) run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { r.in.Read(ctx, worker.Reader, r.feed) })
	running.Go(func() { r.again(ctx, "news of intents from other replicas interrupted", r.abroad().Run) })
	running.Go(func() { r.project(ctx) })
	running.Go(func() { r.notices.run(ctx) })
	running.Go(func() { r.forgetRates(ctx) })
	for _, c := range r.chains {
		running.Go(func() { r.again(ctx, fmt.Sprintf("news for the lanes of chain %s interrupted", c.Chain), c.News.Run) })
	}
	if r.register(ctx) == nil { // otherwise ctx has ended
		r.carryOut(ctx, &running)
	}
	running.Wait()
	if err := r.close(); err != nil {
		r.log.Warn("leases of lanes not closed", "err", err)
	}
}

// carryOut runs lanes, and watches their signers.
func (r *relay) carryOut(ctx context.Context, running *sync.WaitGroup) {
	running.Go(func() { r.watchSigners(ctx) })
	running.Go(func() { r.watchGuard(ctx) })
	for _, c := range r.chains {
		for _, signer := range c.signers {
			running.Go(func() { r.work(ctx, c.lane(signer, protocolKey, "")) })
		}
		running.Go(func() { r.follow(ctx, c) })
	}
}

// work runs a lane while this process holds its lease.
func (r *relay) work(ctx context.Context, l *worker.Lane) {
	r.owner.Own(ctx, l.LeaseName(), func(ctx context.Context) error {
		err := l.Run(ctx)
		r.fenced(l.ID.Chain, err)
		return err
	})
}

// feed feeds the queue of intents.
func (r *relay) feed(ctx context.Context) error {
	r.feeds.Store(true)
	defer r.feeds.Store(false)
	return r.feeder().Run(ctx)
}

func (r *relay) feeder() *worker.Feeder {
	return &worker.Feeder{
		Store: r.in.Store, Queue: r.queue, Checkpoints: r.in.Ports.Storage.Checkpoints, Codec: r.intents.Codec, Fed: r.wake,
		Moved: func(at eventlog.Position) { r.in.Moved(worker.Reader, at) }, Log: r.log,
	}
}

func (r *relay) abroad() worker.Abroad {
	return worker.Abroad{Store: r.in.Store, Codec: r.intents.Codec, Feeds: r.feeds.Load, Fed: r.wake}
}

// wake makes the lanes of all chains look for intents.
func (r *relay) wake(fresh []intent.Waiting, more bool) {
	for _, c := range r.chains {
		c.News.Wake(fresh, more)
	}
}

// again runs a notifier of lanes until ctx ends, and restarts it after errors.
func (r *relay) again(ctx context.Context, trouble string, run func(context.Context) error) {
	for ctx.Err() == nil {
		if err := run(ctx); ctx.Err() == nil {
			r.log.Warn(trouble, "err", err)
		}
		_ = pause.For(ctx, r.settings.Delivery.Owner.LeaseRenew) // the loop checks the context
	}
}
