package simulation

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	relay "github.com/tempo-watchtower/watchtower/cmd/relayer/app"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
)

// replica is one life of a service process.
type replica struct {
	world *world
	seat  int    // index of the world's replica
	id    string // seat and life

	api    http.Handler // nil unless it serves
	front  http.Handler // handler of the API of intents
	admin  http.Handler // handler of the operators' routes
	busy   int          // requests in progress
	closed bool         // the remaining requests are cut off
	view   *sql.DB
	hints  *hints
	stop   context.CancelFunc
	parked map[*call]bool
	ended  bool

	dead   atomic.Bool // its calls no longer take effect
	buried bool
	frozen atomic.Bool // its calls are not executed for now
	thaws  time.Duration

	skew   atomic.Int64  // of its clock, a time.Duration: read while the world changes it
	behind time.Duration // the store's skew at the last lease, as known to the adapter
	random *rand.ChaCha8

	mu    sync.Mutex
	crash string // crash point at which it died
}

// start begins a life. The replica serves after opening its resources.
func (w *world) start(seat int) {
	w.lives++
	r := &replica{
		world: w, seat: seat, id: fmt.Sprintf("replica%d.%d", seat, w.lives),
		parked: map[*call]bool{},
	}
	r.skew.Store(int64(w.agenda.between(-w.plan.Crowd.Skew, w.plan.Crowd.Skew)))
	var key [32]byte
	binary.BigEndian.PutUint64(key[:], w.plan.Seed)
	binary.BigEndian.PutUint64(key[8:], uint64(w.lives)) //nolint:gosec // small
	r.random = rand.NewChaCha8(key)
	w.seats[seat] = r
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	w.running.Add(1)
	go func() {
		defer w.running.Done()
		err := r.live(ctx)
		w.agenda.park(&call{by: r.id, kind: telling, name: "ended", done: make(chan struct{}), do: func() { w.gone(r, err) }})
	}()
}

// gone starts the next life after an unintended end.
func (w *world) gone(r *replica, err error) {
	r.ended = true
	if w.seats[r.seat] != r || w.closing {
		return
	}
	if !r.dead.Load() && err != nil {
		w.note("%s could not start: %v", r.id, err)
	}
	w.agenda.after(w.agenda.between(100*time.Millisecond, 5*time.Second), "start", func() {
		if w.seats[r.seat] == r && !w.closing && !w.resting {
			w.start(r.seat)
		}
	})
}

// now is the replica's clock.
func (r *replica) now() time.Time { return time.Now().Add(time.Duration(r.skew.Load())) }

// Read returns the replica's random bytes.
func (r *replica) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.random.Read(p)
}

// live is the process: it opens its resources and serves until it is stopped.
func (r *replica) live(ctx context.Context) error {
	w := r.world
	storage := storage{r}.ports()
	if w.cluster != nil {
		log := w.cluster.log(r)
		defer log.close()
		storage = log.beside(storage)
	}
	defer r.view.Close() //nolint:errcheck // it closes nothing
	ports := app.Ports{
		Storage: storage, Master: w.master, Signer: &w.signer, Now: r.now, Random: r, Log: w.log.With("replica", r.id),
		Metrics: metrics.New("simulated"), Crash: r.pass,
	}
	if w.plan.Redis {
		r.hints = newHints(r)
		ports.Redis = r.hints
	}
	config := w.config.Chains[0]
	c := app.PoolConfig(w.config, config, ports)
	c.Transport, c.Probe = links{r}, w.config.Endpoints.CallTimeout
	pool, err := rpc.Open(ctx, c)
	if err != nil {
		return err
	}
	defer pool.Close()
	ports.Chains = []app.Chain{app.ChainOf(pool, config.ID)}
	settings := app.SettingsOf(w.config)
	settings.Holder = r.id
	service := app.New(settings, ports)
	var front http.Handler
	if w.relayed() {
		ring, err := r.ring()
		if err != nil {
			return err
		}
		if err := service.Extend(w.config, []*rpc.Pool{pool}, func(service *app.App) (own app.Extension, err error) {
			own, front, err = relay.Extension(w.settings, service, ring, w.hooks.ports(r))
			return own, err
		}); err != nil {
			return err
		}
	}
	handlers, err := service.Open(ctx, w.config, app.Build{Version: "simulated"}, []*rpc.Pool{pool}, new(slog.LevelVar))
	if err != nil {
		return err
	}
	r.tell("serves", func() { r.api, r.front, r.admin = handlers.API.Handler, front, handlers.Metrics.Handler })
	return service.Run(ctx, newListener(), newListener(), handlers)
}

// pass is called at the service's crash points.
func (r *replica) pass(point string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.dead.Load() && r.world.crashes.pass(point) {
		r.crash = point
		r.dead.Store(true)
	}
}

// kill ends a replica as kill -9 does.
func (w *world) kill(r *replica, why string) {
	if r == nil || r.buried {
		return
	}
	r.dead.Store(true)
	r.buried = true
	w.faults[why]++
	w.agenda.trace.add("kill", r.id, why)
	w.judge.seals.killed(r)
	r.frozen.Store(false)
	r.api = nil
	left := make([]*call, 0, len(r.parked))
	for c := range r.parked {
		left = append(left, c)
	}
	slices.SortFunc(left, func(a, b *call) int { return cmp.Compare(a.order, b.order) })
	w.waiting = slices.DeleteFunc(w.waiting, func(c *call) bool {
		if c.replica == r {
			left = append(left, c)
		}
		return c.replica == r
	})
	for _, c := range left {
		w.bury(c)
	}
	r.stop()
}

// retire stops a replica as an operator does: it accepts no more requests, finishes its open
// ones for a while, and then stops.
func (w *world) retire(r *replica, patience time.Duration) {
	r.api = nil
	if r.busy > 0 && patience > 0 {
		w.agenda.after(time.Second, "", func() { w.retire(r, patience-time.Second) })
		return
	}
	r.closed = true
	r.stop()
}

// freeze stops a replica in the middle of its work, like SIGSTOP.
func (w *world) freeze(r *replica, d time.Duration) {
	r.frozen.Store(true)
	r.thaws = w.agenda.now() + d
	w.agenda.trace.add("freeze", r.id, d.String())
	w.agenda.after(d, "thaw", func() { r.frozen.Store(false) })
}

// listener never accepts a connection: clients call the handlers.
type listener struct {
	closed chan struct{}
	once   sync.Once
}

func newListener() *listener { return &listener{closed: make(chan struct{})} }

func (l *listener) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
