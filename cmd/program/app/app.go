// Package app is the delivery service as one object: New builds it, and it runs until its
// context ends.
package app

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/archiver"
	"github.com/tempo-watchtower/watchtower/commands/delivery/canceler"
	"github.com/tempo-watchtower/watchtower/commands/delivery/retention"
	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/commands/delivery/watcher"
	"github.com/tempo-watchtower/watchtower/commands/notary"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/audit"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/lease"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/eventlog/projector"
	"github.com/tempo-watchtower/watchtower/infra/archive"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/tracing"
	"github.com/tempo-watchtower/watchtower/projections/delivery/owners"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// Storage holds the service's stores. Log and payloads may be in a different database from work
// and views.
type Storage struct {
	Log port.Store
	// Ago is a log position that precedes the last n events; the log's beginning if there are
	// fewer. It is nil where each event takes one position.
	Ago         func(ctx context.Context, events int) (eventlog.Position, error)
	Payloads    commands.PayloadRows
	Checkpoints port.Checkpoints
	Leases      port.Leases
	Queue       scheduler.Queue
	// NextFree is the first nonce of a sequence, starting at from, that the queue does not hold
	// for these clients; nil means all clients.
	NextFree func(ctx context.Context, s chain.Sequence, from uint64, clients []string) (uint64, error)
	// Usage is a client's usage of the queue, and the checkpoint of the reader that feeds it.
	Usage func(ctx context.Context, reader, client string) (tx.Usage, eventlog.Position, error)
	// Soon lists the rows of a chain that are due first.
	Soon     func(ctx context.Context, id chain.ID, limit int) ([]tx.Work, error)
	Board    watcher.Board
	Requests Requests
	View     *sql.DB
	// Archived is the store whose old events move to Archive; both are nil without an archive.
	Archived archiver.Store
	Archive  *archive.Files
	// Snapshots are folded states of long streams. May be nil.
	Snapshots port.SnapshotRows
	Ping      func(ctx context.Context) error
	// Probe makes a durable write to the log's database and removes it again. May be nil.
	Probe func(ctx context.Context) error
	// Transient reports whether a storage error may pass without intervention.
	Transient func(error) bool
	Close     func(ctx context.Context) error
	// Postgres or Embedded is the database that holds the due queue, where an extension may keep
	// other work. Both are nil if it is another one.
	Postgres *postgres.DB
	Embedded *embedded.DB
}

// Ports are the service's external dependencies.
type Ports struct {
	Storage Storage
	Chains  []Chain
	Master  payload.Master
	Signer  *audit.Signer // signs seals of the log; nil: the log is not sealed
	Now     func() time.Time
	// Pause waits for d or until ctx ends; nil means with a timer.
	Pause   func(ctx context.Context, d time.Duration)
	Random  io.Reader
	Log     *slog.Logger
	Metrics *metrics.Metrics
	Redis   Hints            // nil without Redis
	Tracing *tracing.Tracing // nil disables tracing
	// Crash is called at named points; tests end the process there. May be nil.
	Crash func(point string)
}

// Settings are the service's own settings, without the configuration of its ports.
type Settings struct {
	Holder         string // this process's name in leases
	Schedule       tx.Schedule
	Lead           time.Duration // time before eligibility from which bytes may go to nodes
	SchedulerPoll  time.Duration
	WorkLease      time.Duration // lease duration of a row of the due queue
	Slots          int           // concurrent broadcast attempts per chain
	WatcherPoll    time.Duration
	OwnerTTL       time.Duration
	OwnerRenew     time.Duration
	Grouping       commands.Grouping
	MaxRequests    int // requests remembered by their Idempotency-Key
	ClientRequests int // of these, at most this many per client
	ExpiringWindow time.Duration
	MaxValidAfter  time.Duration // from now; 0: no limit
	Quota          tx.Usage      // limit on one client's waiting transactions; 0: no limit
	Retention      retention.Settings
	Archive        archiver.Settings
	// SnapshotsEvery is the number of events of a long stream between snapshots; 0: no
	// snapshots.
	SnapshotsEvery int
	// LogFacts logs every recorded fact at info, instead of debug.
	LogFacts bool
	Seals    notary.Settings
	// Deployment is this deployment's name in the messages that owners sign to cancel groups;
	// empty derives a name from the vault's key. GroupIDSignatures accepts the signature form
	// that can be replayed.
	Deployment        string
	GroupIDSignatures bool
	// ShutdownGrace bounds the time for requests and attempts under way to finish when the
	// service stops.
	ShutdownGrace time.Duration
}

// App is the service. An [Extension] uses its exported parts, which are not to be changed.
type App struct {
	Settings     Settings
	Ports        Ports
	Store        port.Store // the log, as delivery writes it
	Transactions commands.Transactions
	Vault        commands.Vault
	Submit       *commands.Submit // accepts transactions as the API does
	Tail         *tail.Tail       // where requests wait for recorded events; closed before the service stops
	// Pools are of the configuration's chains, in its order. Front is the configuration that APIs
	// beside delivery's share with it: see [rest.NewFront]. Both are set by Extend.
	Pools []*rpc.Pool
	Front rest.Config

	groups       commands.Groups
	query        transactions.Query
	lists, scans *rest.Places
	workers      []*scheduler.Worker
	served       *state
	written      []*writes
	keyring      *commands.Keyring
	extension    Extension
}

// New wires the service. Nothing runs yet.
func New(settings Settings, ports Ports) *App {
	a := &App{Settings: settings, Ports: ports, served: newState(ports.Now)}
	a.watchWrites()
	if ports.Redis != nil {
		a.Ports.Storage.Queue = hinted{ports.Storage.Queue, ports.Redis}
		exportRedis(ports.Metrics, ports.Redis)
	}
	a.Store = ports.Metrics.Store(a.Ports.Storage.Log)
	a.Transactions = commands.Transactions{Store: a.Store, Codec: tx.Codec(), Random: ports.Random, Told: a.observer(), Crash: ports.Crash}
	a.groups = commands.Groups{Store: a.Store, Codec: group.Codec(), Random: ports.Random, Snapshots: a.groupSnapshots(), Crash: ports.Crash}
	a.Vault = commands.Vault{Rows: a.Ports.Storage.Payloads, Master: ports.Master, Random: ports.Random}
	a.Tail = tail.New(a.Store, a.Transactions.Codec, ports.Log)
	a.query, a.lists, a.scans = transactions.Query{DB: ports.Storage.View}, rest.NewLists(), rest.NewScans()
	a.Submit = &commands.Submit{
		Transactions: a.Transactions, Vault: a.Vault, Decoders: map[chain.ID]func([]byte) (chain.Signed, error){},
		Grouping: settings.Grouping, ExpiringWindow: settings.ExpiringWindow,
		// Checking signatures is CPU-bound: more at once than there are processors would only
		// make each slower.
		Slots: make(chan struct{}, runtime.GOMAXPROCS(0)), Turns: new(commands.Turns),
		Now: ports.Now, Crash: ports.Crash,
		Ahead: settings.MaxValidAfter, Quota: a.quota(),
	}
	a.keyring = &commands.Keyring{Keys: accessKeys(a.Store, ports.Random), Log: ports.Log}
	for _, c := range ports.Chains {
		a.Submit.Decoders[c.ID] = Decode
		ports.Metrics.Chain(c.ID.String())
		a.workers = append(a.workers, a.worker(c))
	}
	return a
}

// Run serves until ctx ends and returns when everything has ended. First the listeners stop
// accepting and finish the requests they have, then the background work stops.
func (a *App) Run(ctx context.Context, public, internal net.Listener, handlers Handlers) error {
	working, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	var work sync.WaitGroup
	for _, part := range a.parts() {
		work.Go(func() { part(working) })
	}
	a.Ports.Log.Info("listening", "api", "http://"+public.Addr().String(), "metrics", "http://"+internal.Addr().String())

	servers, listeners := []*http.Server{handlers.API, handlers.Metrics}, []net.Listener{public, internal}
	if own := a.extension; own.Server != nil {
		servers, listeners = append(servers, own.Server), append(listeners, own.Listener)
	}
	failed := make(chan error, len(servers))
	for i, listener := range listeners {
		go func() {
			failed <- servers[i].Serve(rest.LimitListener(listener, handlers.Connections, handlers.TrustedProxies))
		}()
	}
	var err error
	ended := 0
	select {
	case <-ctx.Done():
	case err = <-failed:
		ended = 1
	}
	a.served.stop()
	a.Tail.Leave() // otherwise waiting requests would use up the grace
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.Settings.ShutdownGrace)
	defer cancel()
	for _, s := range servers {
		err = errors.Join(err, s.Shutdown(grace))
	}
	for range len(servers) - ended {
		if e := <-failed; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}
	stopWork()
	work.Wait()
	return err
}

// Handlers are the servers of delivery's two listeners.
type Handlers struct {
	API, Metrics *http.Server
	Connections  int // maximum open connections per listener
	// TrustedProxies are exempt from the limit of connections per address.
	TrustedProxies []netip.Prefix
}

// owner acquires leases for this process.
func (s Settings) owner(leases port.Leases, log *slog.Logger) lease.Owner {
	return lease.Owner{Leases: leases, Holder: s.Holder, TTL: s.OwnerTTL, Renew: s.OwnerRenew, Log: log}
}

// parts lists everything that runs beside the listeners. Each returns when its context ends.
func (a *App) parts() []func(context.Context) {
	own := a.own
	parts := []func(context.Context){
		a.keyring.Run,
		own(scheduler.Reader, a.feeder().Run),
		own("queue-depth", a.watchDepth),
		own(requestsSweeper, a.sweepRequests),
		a.watchLag,
		own(projectionPrefix+transactions.Name, a.projector().Run),
		own(projectionPrefix+owners.Name, a.ownersProjector().Run),
		a.Tail.Run,
	}
	parts = append(parts, a.groupParts(own)...)
	parts = append(parts, own(canceler.Reader, a.canceler().Run))
	if a.Ports.Signer != nil {
		parts = append(parts, own(notary.Name, a.notary().Run))
	}
	if a.Ports.Redis != nil {
		parts = append(parts, a.hear, own("redis", a.rebuild))
	}
	if a.Ports.Storage.Archive != nil {
		parts = append(parts, a.archiver().Run)
	}
	for _, part := range a.retention().Parts() {
		parts = append(parts, own(part.Name, part.Run))
	}
	for i, c := range a.Ports.Chains {
		parts = append(parts, own(fmt.Sprintf("watcher.%s", c.ID), a.watcher(c).Run), a.workers[i].Run)
	}
	if a.extension.Run != nil {
		parts = append(parts, a.extension.Run)
	}
	return parts
}

// own runs work on one replica at a time: the holder of the lease called name.
func (a *App) own(name string, work func(context.Context) error) func(context.Context) {
	owner := a.Settings.owner(a.Ports.Storage.Leases, a.Ports.Log)
	return func(ctx context.Context) { owner.Own(ctx, name, a.reader(name, work)) }
}

// projectionPrefix is the prefix of projections' lease names.
const projectionPrefix = "projection."

func (a *App) feeder() *scheduler.Feeder {
	return &scheduler.Feeder{
		Store: a.Store, Queue: a.Ports.Storage.Queue, Checkpoints: a.Ports.Storage.Checkpoints,
		Codec: a.Transactions.Codec, Schedule: a.Settings.Schedule, Lead: a.Settings.Lead,
		Fed: func(at eventlog.Position) {
			a.moved(scheduler.Reader, at)
			for _, w := range a.workers {
				w.Wake()
			}
		},
		Crash: a.Ports.Crash, Log: a.Ports.Log,
	}
}

func (a *App) projector() *projector.Projector {
	return &projector.Projector{
		Name: transactions.Name, DB: a.Ports.Storage.View, Log: a.Store,
		Filter: transactions.Filter(), Fold: transactions.Projection{Codec: a.Transactions.Codec}.Fold,
		Moved: func(at eventlog.Position, _ bool) { a.moved(transactions.Name, at) },
	}
}

func (a *App) ownersProjector() *projector.Projector {
	return &projector.Projector{
		Name: owners.Name, DB: a.Ports.Storage.View, Log: a.Store,
		Filter: owners.Filter(), Fold: owners.Projection{Codec: a.Transactions.Codec}.Fold,
		Moved: func(at eventlog.Position, _ bool) { a.moved(owners.Name, at) },
	}
}

func (a *App) retention() *retention.Retention {
	return &retention.Retention{
		Store: a.Store, Checkpoints: a.Ports.Storage.Checkpoints, Transactions: a.Transactions,
		Payloads: a.Ports.Storage.Payloads, Settings: a.Settings.Retention, Wanted: a.wants,
		Now: a.Ports.Now, Log: a.Ports.Log,
	}
}
