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

	"github.com/tempo-watchtower/watchtower/api"
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
	"github.com/tempo-watchtower/watchtower/infra/metrics"
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
	// Database is the engine that holds the due queue, a *postgres.DB or an *embedded.DB. A
	// program beside the service may keep other work there.
	Database any
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
	Seals          notary.Settings
	// Deployment is this deployment's name in the messages that owners sign to cancel groups;
	// empty derives a name from the vault's key. GroupIDSignatures accepts the signature form
	// that can be replayed.
	Deployment        string
	GroupIDSignatures bool
	// ShutdownGrace bounds the time for requests and attempts under way to finish when the
	// service stops.
	ShutdownGrace time.Duration
}

// App is the service.
type App struct {
	settings     Settings
	ports        Ports
	store        port.Store
	transactions commands.Transactions
	groups       commands.Groups
	vault        commands.Vault
	submit       *commands.Submit
	query        transactions.Query
	lists, scans *api.Places
	workers      []*scheduler.Worker
	tail         *tail.Tail
	served       *state
	written      []*writes
	keyring      *commands.Keyring
	beside       []Part
}

// New wires the service. Nothing runs yet.
func New(settings Settings, ports Ports) *App {
	a := &App{settings: settings, ports: ports, served: newState(ports.Now)}
	a.watchWrites()
	if ports.Redis != nil {
		a.ports.Storage.Queue = hinted{ports.Storage.Queue, ports.Redis}
		exportRedis(ports.Metrics, ports.Redis)
	}
	a.store = ports.Metrics.Store(a.ports.Storage.Log)
	a.transactions = commands.Transactions{Store: a.store, Codec: tx.Codec(), Told: a.observer(), Crash: ports.Crash}
	a.groups = commands.Groups{Store: a.store, Codec: group.Codec(), Snapshots: a.groupSnapshots(), Crash: ports.Crash}
	a.vault = commands.Vault{Rows: a.ports.Storage.Payloads, Master: ports.Master, Random: ports.Random}
	a.tail = tail.New(a.store, a.transactions.Codec, ports.Log)
	a.query, a.lists, a.scans = transactions.Query{DB: ports.Storage.View}, api.NewLists(), api.NewScans()
	a.submit = &commands.Submit{
		Transactions: a.transactions, Vault: a.vault, Decoders: map[chain.ID]func([]byte) (chain.Signed, error){},
		Grouping: settings.Grouping, ExpiringWindow: settings.ExpiringWindow,
		// Checking signatures is CPU-bound: more at once than there are processors would only
		// make each slower.
		Slots: make(chan struct{}, runtime.GOMAXPROCS(0)), Turns: new(commands.Turns),
		Now: ports.Now, Random: ports.Random, Crash: ports.Crash,
		Ahead: settings.MaxValidAfter, Quota: a.quota(),
	}
	a.keyring = &commands.Keyring{Keys: accessKeys(a.store), Log: ports.Log}
	for _, c := range ports.Chains {
		a.submit.Decoders[c.ID] = Decode
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
	a.ports.Log.Info("listening", "api", "http://"+public.Addr().String(), "metrics", "http://"+internal.Addr().String())

	servers, listeners := []*http.Server{handlers.API, handlers.Metrics}, []net.Listener{public, internal}
	for _, p := range a.beside {
		if p.Server != nil {
			servers, listeners = append(servers, p.Server), append(listeners, p.Listener)
		}
	}
	failed := make(chan error, len(servers))
	for i, listener := range listeners {
		go func() {
			failed <- servers[i].Serve(api.LimitListener(listener, handlers.Connections, handlers.TrustedProxies))
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
	a.tail.Leave() // otherwise waiting requests would use up the grace
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.settings.ShutdownGrace)
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
		a.tail.Run,
	}
	parts = append(parts, a.groupParts(own)...)
	parts = append(parts, own(canceler.Reader, a.canceler().Run))
	if a.ports.Signer != nil {
		parts = append(parts, own(notary.Name, a.notary().Run))
	}
	if a.ports.Redis != nil {
		parts = append(parts, a.hear, own("redis", a.rebuild))
	}
	if a.ports.Storage.Archive != nil {
		parts = append(parts, a.archiver().Run)
	}
	for _, part := range a.retention().Parts() {
		parts = append(parts, own(part.Name, part.Run))
	}
	for i, c := range a.ports.Chains {
		parts = append(parts, own(fmt.Sprintf("watcher.%s", c.ID), a.watcher(c).Run), a.workers[i].Run)
	}
	for _, p := range a.beside {
		parts = append(parts, p.Run)
	}
	return parts
}

// own runs work on one replica at a time: the holder of the lease called name.
func (a *App) own(name string, work func(context.Context) error) func(context.Context) {
	owner := a.settings.owner(a.ports.Storage.Leases, a.ports.Log)
	return func(ctx context.Context) { owner.Own(ctx, name, a.reader(name, work)) }
}

// projectionPrefix is the prefix of projections' lease names.
const projectionPrefix = "projection."

func (a *App) feeder() *scheduler.Feeder {
	return &scheduler.Feeder{
		Store: a.store, Queue: a.ports.Storage.Queue, Checkpoints: a.ports.Storage.Checkpoints,
		Codec: a.transactions.Codec, Schedule: a.settings.Schedule, Lead: a.settings.Lead,
		Fed: func(at eventlog.Position) {
			a.moved(scheduler.Reader, at)
			for _, w := range a.workers {
				w.Wake()
			}
		},
		Crash: a.ports.Crash, Log: a.ports.Log,
	}
}

func (a *App) projector() *projector.Projector {
	return &projector.Projector{
		Name: transactions.Name, DB: a.ports.Storage.View, Log: a.store,
		Filter: transactions.Filter(), Fold: transactions.Projection{Codec: a.transactions.Codec}.Fold,
		Moved: func(at eventlog.Position, _ bool) { a.moved(transactions.Name, at) },
	}
}

func (a *App) ownersProjector() *projector.Projector {
	return &projector.Projector{
		Name: owners.Name, DB: a.ports.Storage.View, Log: a.store,
		Filter: owners.Filter(), Fold: owners.Projection{Codec: a.transactions.Codec}.Fold,
		Moved: func(at eventlog.Position, _ bool) { a.moved(owners.Name, at) },
	}
}

func (a *App) retention() *retention.Retention {
	return &retention.Retention{
		Store: a.store, Checkpoints: a.ports.Storage.Checkpoints, Transactions: a.transactions,
		Payloads: a.ports.Storage.Payloads, Settings: a.settings.Retention, Wanted: a.wants,
		Now: a.ports.Now, Random: a.ports.Random, Log: a.ports.Log,
	}
}
