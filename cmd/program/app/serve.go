package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/commands/archiver"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
	"github.com/tempo-watchtower/watchtower/infra/pause"
	"github.com/tempo-watchtower/watchtower/infra/tracing"
)

// StorageOptions apply to every database that is opened.
type StorageOptions struct {
	Crash func(point string)
	Log   *slog.Logger

	partition int64 // positions per partition of a Postgres log
}

// Build identifies the program's build.
type Build struct {
	Version, GitSHA, Timestamp string
}

// Complete fills in the fields that the linker did not set, from the toolchain's build info.
func (b Build) Complete() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && b.GitSHA == "" {
			b.GitSHA = s.Value
		}
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	return b
}

// Logger writes to w, in the configured format.
func Logger(f config.LogFormat, w io.Writer, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if f == config.Text {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// Options are serving's inputs beside the configuration.
type Options struct {
	Build Build
	Log   *slog.Logger
	// Level is the log's level, which the operator may change. Without it the operator's routes
	// are absent.
	Level *slog.LevelVar
	Crash func(point string)
	// Now is the clock; nil means the machine's.
	Now func() time.Time
	// Listening, when set, is called with the addresses once the service listens.
	Listening func(api, metrics net.Addr)
	// Extend, when set, builds the program's own part of the service. Its error keeps the service
	// from starting.
	Extend func(context.Context, *App) (Extension, error)
}

// Serve is the whole program: it opens the configured stores and chains, serves until ctx ends,
// and closes everything. Being stopped while it opens is not an error. It logs when it begins to
// stop, and when all is closed.
func Serve(ctx context.Context, c config.Config, o Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	var began time.Time
	told := make(chan struct{})
	goesOn := context.AfterFunc(ctx, func() {
		defer close(told)
		began = o.Now()
		o.Log.Info("stopping", "grace", c.ShutdownGrace)
	})
	err := serve(ctx, c, o)
	if !goesOn() {
		<-told
		o.Log.Info("stopped", "took", o.Now().Sub(began))
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func serve(ctx context.Context, c config.Config, o Options) (err error) {
	if err := c.CheckServe(); err != nil {
		return err
	}
	api, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	internal, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.MetricsListen)
	if err != nil {
		return errors.Join(fmt.Errorf("metrics-listen: %w", err), api.Close())
	}
	listening := true
	defer func() {
		if listening { // the listeners have no server yet
			err = errors.Join(err, api.Close(), internal.Close())
		}
	}()

	storage, err := OpenStorage(ctx, c, StorageOptions{Crash: o.Crash, Log: o.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, storage.Close(context.WithoutCancel(ctx))) }()
	ports, err := openPorts(ctx, c, o, storage)
	if err != nil {
		return err
	}
	defer ports.closeChains()
	hints, err := openRedis(c, ports.Ports)
	if err != nil {
		return err
	}
	if hints != nil {
		ports.Redis = hints
		defer closeRedis(hints, o.Log)
	}
	settings := SettingsOf(c)
	settings.Holder = holder()
	if c.Tracing.Endpoint != "" {
		if ports.Tracing, err = tracing.Open(ctx, tracing.Config{
			Endpoint: c.Tracing.Endpoint, Percent: c.Tracing.Percent, Version: o.Build.Version, Holder: settings.Holder, Log: o.Log,
		}); err != nil {
			return err
		}
		defer closeTracing(ports.Tracing, c.ShutdownGrace, o.Log)
	}

	a := New(settings, ports.Ports)
	if err := a.know(ctx, c, ports.pools); err != nil {
		return err
	}
	if o.Extend != nil {
		build := func(a *App) (Extension, error) { return o.Extend(ctx, a) }
		if err := a.Extend(c, ports.pools, build); err != nil {
			return err
		}
	}
	handlers := a.handlers(c, o.Build, ports.pools, o.Level)
	if o.Listening != nil {
		o.Listening(api.Addr(), internal.Addr())
	}
	listening = false
	return a.Run(ctx, api, internal, handlers)
}

// Open reads the keys and builds the servers of both listeners, for Run. pools are the pools of
// the configuration's chains, in its order; level may be nil, see [Options].
func (a *App) Open(ctx context.Context, c config.Config, b Build, pools []*rpc.Pool, level *slog.LevelVar) (Handlers, error) {
	if err := a.know(ctx, c, pools); err != nil {
		return Handlers{}, err
	}
	return a.handlers(c, b, pools, level), nil
}

// know reads the state that is needed before anything is served.
func (a *App) know(ctx context.Context, c config.Config, pools []*rpc.Pool) error {
	if err := a.knowKeys(ctx, c); err != nil {
		return err
	}
	a.exportEndpoints(c, pools)
	return nil
}

// closeTracing exports the last spans. A collector that does not accept them is not an error of
// the service.
func closeTracing(t *tracing.Tracing, grace time.Duration, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		log.Warn("the last spans were not sent", "err", err)
	}
}

// opened is the ports, with the resources to close after the service has ended.
type opened struct {
	Ports
	pools []*rpc.Pool
}

func (o opened) closeChains() {
	for _, p := range o.pools {
		p.Close()
	}
}

func openPorts(ctx context.Context, c config.Config, o Options, storage Storage) (opened, error) {
	master, err := OpenMaster(ctx, c.VaultKeyFile, storage.Log)
	if err != nil {
		return opened{}, err
	}
	signer, err := openSigner(c.Audit.KeyFile, o.Log)
	if err != nil {
		return opened{}, err
	}
	ports := opened{Ports: Ports{
		Storage: storage, Master: master, Signer: signer, Now: o.Now, Pause: pause.For, Random: rand.Reader,
		Log: o.Log, Metrics: metrics.New(o.Build.Version), Crash: o.Crash,
	}}
	for _, chainConfig := range c.Chains {
		pool, err := rpc.Open(ctx, PoolConfig(c, chainConfig, ports.Ports))
		if err != nil {
			ports.closeChains()
			return opened{}, fmt.Errorf("chain %s: %w", chainConfig.ID, err)
		}
		ports.pools = append(ports.pools, pool)
		ports.Chains = append(ports.Chains, ChainOf(pool, chainConfig.ID))
	}
	return ports, nil
}

// SettingsOf converts a configuration's settings. The caller sets Holder.
func SettingsOf(c config.Config) Settings {
	return Settings{
		Schedule: c.Scheduler.Schedule, Lead: c.Scheduler.Lead,
		SchedulerPoll: c.Scheduler.PollInterval, WorkLease: c.Scheduler.LeaseTTL, Slots: c.Scheduler.MaxConcurrency,
		WatcherPoll: c.Watcher.PollInterval, OwnerTTL: c.Owner.LeaseTTL, OwnerRenew: c.Owner.LeaseRenew,
		Grouping: c.Grouping, MaxRequests: c.Idempotency.MaxRequests, ClientRequests: c.Quotas.Requests, ExpiringWindow: c.ExpiringWindow, MaxValidAfter: c.MaxValidAfter,
		Quota: tx.Usage{Transactions: int64(c.Quotas.Transactions), Bytes: int64(c.Quotas.Bytes)}, Retention: c.Retention, ShutdownGrace: c.ShutdownGrace,
		Deployment: c.Deployment, GroupIDSignatures: c.Cancel.GroupIDSignatures,
		SnapshotsEvery: c.Snapshots.Every, LogFacts: c.Log.Facts, Seals: c.Audit.Seals,
		Archive: archiver.Settings{After: c.Archive.After, Segment: c.Archive.Segment},
	}
}

// holder returns this process's name in leases: the host, for people, and a random part that no
// other process has, nor the next one on this host.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	unique := make([]byte, 6)
	rand.Read(unique) //nolint:errcheck // never fails
	return fmt.Sprintf("%.64s-%d-%s", host, os.Getpid(), hex.EncodeToString(unique))
}
