package worker

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/broadcaster"
	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/commands/delivery/watcher"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/lease"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/keys"
)

// real is a whole delivery on a chain of three nodes, with the relay as its client.
type real struct {
	*world
	pool   *rpc.Pool
	nodes  []*chaintest.Node
	submit *commands.Submit
	wakes  []func(fresh []intent.Waiting, more bool)
}

const every = 40 * time.Millisecond // a block

func newReal(t *testing.T) *real {
	w := &world{
		t: t, clock: &clock{}, settings: DefaultSettings(), appends: map[string]int{}, reads: map[string]int{}, policy: noHeadroom(), hole: time.Minute,
		fee: chain.Fee{MaxFee: chain.PriceOf(1000), MaxPriorityFee: chain.PriceOf(100)},
	}
	var err error
	w.db, err = embedded.Open("", embedded.Options{Window: 1000})
	must(t, err)
	t.Cleanup(func() { must(t, w.db.Close()) })
	w.chain = chaintest.New(chaintest.Options{Chain: moderato, Decode: tempo.Decode})
	t.Cleanup(w.chain.Close)
	_, err = w.chain.Mine()
	must(t, err)
	signers, err := keys.Environment([]string{secret}, true, slog.New(slog.DiscardHandler))
	must(t, err)
	w.signer, w.queue = signers[0], w.db.Intents()
	w.lane = chain.Sequence{Chain: moderato, Sender: w.signer.Address(), Key: chain.NonceKey{31: 5}}
	w.settings.Budget, w.settings.Poll = 300, 20*time.Millisecond
	w.permit()
	r := &real{world: w}
	config := rpc.Config{Chain: moderato, Fanout: 2, Agree: 2, Poll: every / 2, Probe: time.Second, SendTimeout: time.Second}
	for _, name := range []string{"a", "b", "c"} {
		node := w.chain.Node(name)
		server := httptest.NewServer(node)
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
		t.Cleanup(server.Close)
		r.nodes = append(r.nodes, node)
		config.Endpoints = append(config.Endpoints, rpc.Endpoint{Name: name, URL: server.URL})
	}
	r.pool, err = rpc.Open(t.Context(), config)
	must(t, err)
	t.Cleanup(r.pool.Close)
	master, err := payload.NewMaster(make([]byte, payload.KeyBytes))
	must(t, err)
	r.submit = &commands.Submit{
		Transactions: commands.Transactions{Store: w.db.Log(), Codec: tx.Codec(), Random: rand.Reader},
		Vault:        commands.Vault{Rows: w.db.Payloads(), Master: master, Random: rand.Reader},
		Slots:        make(chan struct{}, 2), Now: time.Now,
		Decoders: map[chain.ID]func([]byte) (chain.Signed, error){moderato: tempo.Decode},
	}
	return r
}

// Next returns the nonce that the nodes agree on.
func (r *real) Next(ctx context.Context, s chain.Sequence, final bool) (w lane.Witness, err error) {
	reader := r.pool.Reader()
	at, err := reader.Newest(ctx)
	if err == nil && final {
		if at, err = reader.Final(ctx, at); err == nil {
			err = reader.ShownFinal(ctx, at)
		}
	}
	if err != nil {
		return w, err
	}
	agreed, err := reader.AgreedNonce(ctx, at, s)
	return lane.Witness{
		Nonce: agreed.Nonce, Block: agreed.Block, Final: final,
		Endpoints: agreed.Endpoints, Needed: agreed.Needed, Asked: agreed.Asked,
	}, err
}

// At returns the block that the nodes agree on.
func (r *real) At(ctx context.Context, number uint64) (chain.Block, error) {
	b, _, err := r.pool.Reader().BlockAt(ctx, number)
	if err == nil {
		err = r.pool.Reader().Shown(ctx, b)
	}
	return b, err
}

// deliver runs the chain, delivery and the feeder of the relay's queue until ctx ends.
func (r *real) deliver(ctx context.Context, running *sync.WaitGroup, fed func(fresh []intent.Waiting, more bool)) {
	log := slog.New(slog.DiscardHandler)
	schedule := tx.DefaultSchedule()
	schedule.RetryMin, schedule.RetryMax = 5*time.Millisecond, 100*time.Millisecond
	schedule.RebroadcastMin, schedule.RebroadcastMax = 2*every, 10*every
	w := &watcher.Watcher{
		Chain: moderato, Node: r.pool.Reader(), Board: r.db.Work(), Transactions: r.submit.Transactions, Poll: time.Second,
		Now: time.Now, Log: log,
	}
	b := &broadcaster.Broadcaster{
		Transactions: r.submit.Transactions, Vault: r.submit.Vault, Nodes: r.pool, Schedule: schedule,
		Now: time.Now, Log: log,
		Look: func(ctx context.Context, s tx.State, client string) (broadcaster.Sight, error) {
			sight, err := w.Look(ctx, w.Node, s)
			return broadcaster.Sight(sight), err
		},
	}
	worker := &scheduler.Worker{
		Chain: moderato, Queue: r.db.Work(), Holder: "delivery", Attempt: b.Attempt,
		Lease: 3 * time.Second, Poll: 20 * time.Millisecond, Slots: 64, Log: log,
	}
	feeder := &scheduler.Feeder{
		Store: r.db.Log(), Queue: r.db.Work(), Checkpoints: r.db.Work(), Codec: tx.Codec(), Schedule: schedule,
		Fed: func(eventlog.Position) { worker.Wake() }, Log: log,
	}
	intents := &Feeder{Store: r.db.Log(), Queue: r.queue, Checkpoints: r.db.Work(), Codec: intent.Codec(), Fed: fed, Log: log}
	running.Go(func() { r.chain.Run(ctx, every) })
	running.Go(func() { w.Run(ctx) })       //nolint:errcheck // it ends with ctx
	running.Go(func() { feeder.Run(ctx) })  //nolint:errcheck // likewise
	running.Go(func() { intents.Run(ctx) }) //nolint:errcheck // likewise
	running.Go(func() { worker.Run(ctx) })
}

// leases are a process's leases: a dead process renews nothing.
type leases struct {
	port.Leases
	*life
}

func (l leases) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	if l.gone() {
		return false, errDead
	}
	return l.Leases.Acquire(ctx, name, holder, ttl)
}

// replica is a process that works on the lane while it has the lease, with a store of its
// own that can be cut off.
func (r *real) replica(ctx context.Context, running *sync.WaitGroup, name string) *life {
	l, ln := r.live(0, false)
	ln.Node, ln.Now, ln.Delivery, ln.Holder = r, time.Now, r.submit, name
	owner := lease.Owner{
		Leases: leases{r.db.Work(), l}, Holder: name, TTL: 2 * time.Second, Renew: 200 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler),
	}
	running.Go(func() { ln.News.Run(ctx) }) //nolint:errcheck // it ends with ctx
	running.Go(func() { owner.Own(ctx, ln.LeaseName(), ln.Run) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wakes = append(r.wakes, ln.News.Wake)
	return l
}

// A thousand intents for one signer, from a hundred concurrent clients. Of two replicas the
// first dies on the way. Nonces rise without a gap, and each intent is executed once.
func TestThousand(t *testing.T) {
	r := newReal(t)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	r.deliver(ctx, &running, func(fresh []intent.Waiting, more bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, wake := range r.wakes {
			wake(fresh, more)
		}
	})
	first := r.replica(ctx, &running, "replica 1")
	r.replica(ctx, &running, "replica 2")

	began := time.Now()
	ids := make([]chain.IntentID, 1000)
	must(t, commands.Each(len(ids), 100, func(i int) error {
		request := r.request(i)
		ids[i] = request.ID()
		origin, err := handler.Begin(rand.Reader, eventlog.Meta{})
		if err != nil {
			return err
		}
		_, err = Intents{Store: r.db.Log(), Codec: intent.Codec(), Random: rand.Reader}.HandleFrom(ctx, intent.Stream(ids[i]),
			handler.Result[intent.State]{}, intent.Create{Request: request, At: time.Now()}, origin)
		return err
	}))
	r.done(ids[:1])
	first.crash(first.point) // in the middle of any step
	r.done(ids)
	took := time.Since(began)

	stop()
	running.Wait()
	t.Logf("done in %s; appended: %v", took.Round(time.Millisecond), r.appends)
	var nonces []uint64
	for _, id := range ids {
		s := r.intent(id)
		if s.Status() != intent.StatusCompleted {
			t.Fatalf("%s is %s", id, s.Status())
		}
		nonces = append(nonces, s.Place.Nonce)
	}
	slices.Sort(nonces)
	for i, n := range nonces {
		if n != uint64(i) {
			t.Fatalf("nonce %d is used after %d", n, i-1)
		}
	}
	r.judge()
}

// done waits until intents have ended.
func (r *real) done(ids []chain.IntentID) {
	r.t.Helper()
	open := map[chain.IntentID]bool{}
	for _, id := range ids {
		open[id] = true
	}
	for batch, err := range r.db.Log().Subscribe(r.t.Context(), 0, eventlog.Filter{Names: []string{"intent.completed.", "intent.failed.", "intent.canceled."}}, 1000) {
		if err != nil {
			r.t.Fatalf("%d are not done: %v", len(open), err)
		}
		for _, e := range batch.Events {
			id, err := intent.ParseStream(e.Stream)
			must(r.t, err)
			delete(open, id)
		}
		if len(open) == 0 {
			return
		}
	}
	r.t.Fatal(fmt.Sprint(len(open), " are not done"))
}
