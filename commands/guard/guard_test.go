package guard_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/guard"
	"github.com/tempo-watchtower/watchtower/domain/budget"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/lane"
	"github.com/tempo-watchtower/watchtower/domain/promise/safeguards"
	"github.com/tempo-watchtower/watchtower/domain/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/signer"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const here = chain.ID(42431)

var (
	alice, bob = chain.Address{0xa1}, chain.Address{0xb0}
	target     = chain.Address{0xee}
	meta       = event.Meta{Actor: "ada"}
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a log, and a clock that is moved.
type world struct {
	t  testing.TB
	db *embedded.DB

	mu sync.Mutex
	at time.Time
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, at: time.Unix(1_800_000_000, 0).UTC()}
	var err error
	w.db, err = embedded.Open("", embedded.Options{Now: w.now})
	must(t, err)
	t.Cleanup(func() { must(t, w.db.Close()) })
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

// replica is the guard of one more process.
func (w *world) replica(change ...func(*guard.Config)) *guard.Guard {
	c := guard.Config{
		Safeguards: guard.Safeguards{Store: w.db.Log(), Codec: safeguard.Codec()},
		Signers:    guard.Signers{Store: w.db.Log(), Codec: signer.Codec()},
		Budgets:    guard.Budgets{Store: w.db.Log(), Codec: budget.Codec()},
		Members:    func(string) []chain.Address { return []chain.Address{alice, bob} },
		Settings:   guard.DefaultSettings(), Now: w.now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
	}
	for _, do := range change {
		do(&c)
	}
	return guard.New(c)
}

func (w *world) register(g *guard.Guard, all ...chain.Address) {
	w.t.Helper()
	for _, a := range all {
		must(w.t, g.Register(w.t.Context(), here, a, []string{"hot"}))
	}
}

func (w *world) limit(g *guard.Guard, a budget.Account, fee uint64) {
	w.t.Helper()
	n := chain.NewAmount(fee)
	_, err := g.Limit(w.t.Context(), here, budget.SetLimit{Account: a, Limit: budget.Limit{Fee: &n}, Actor: "ada", Reason: "as agreed", At: w.now()}, meta)
	must(w.t, err)
}

func (w *world) flip(g *guard.Guard, c safeguard.Command) {
	w.t.Helper()
	_, err := g.Switch(w.t.Context(), c, meta)
	must(w.t, err)
}

func (w *world) judge() {
	w.t.Helper()
	j := safeguards.New(safeguards.Settings{Grace: time.Second})
	for batch, err := range w.db.Log().ReadAll(w.t.Context(), 0, event.Filter{}, 1000) {
		must(w.t, err)
		for _, r := range batch.Events {
			for _, v := range j.Event(r) {
				w.t.Error(v)
			}
		}
	}
}

func laneOf(a chain.Address) chain.Sequence { return chain.Sequence{Chain: here, Sender: a} }

func request(n int) intent.Request {
	to := target
	return intent.Request{Client: "ann", Key: fmt.Sprint("key-", n), From: intent.From{Pool: "hot"}, Chain: here, Calls: []intent.Call{{To: &to}}}
}

func charge(r intent.Request, fee uint64) budget.Charge {
	return budget.Charge{Purpose: budget.Purpose{Intent: r.ID()}, Client: r.Client, Sum: budget.Sum{Fee: chain.NewAmount(fee)}}
}

// allow asks for one request.
func (w *world) allow(g *guard.Guard, a chain.Address, token lane.Token, r intent.Request, fee uint64) error {
	w.t.Helper()
	answers, err := g.Allow(w.t.Context(), laneOf(a), token, []*intent.Request{&r}, []budget.Charge{charge(r, fee)})
	if err != nil {
		return err
	}
	return answers[0]
}

// Replicas that reserve at once never take more together than there is, and take it all.
func TestReplicasReserve(t *testing.T) {
	w := newWorld(t)
	const replicas, each, room = 4, 100, 150
	first := w.replica()
	w.limit(first, budget.Account{Kind: budget.OnChain}, room)
	var running sync.WaitGroup
	granted := make([]int, replicas)
	for n := range replicas {
		g, a := w.replica(), chain.Address{byte(n + 1)}
		w.register(g, a)
		running.Go(func() {
			for i := range each {
				r := request(n*each + i)
				answers, err := g.Allow(context.WithoutCancel(t.Context()), laneOf(a), 1, []*intent.Request{&r}, []budget.Charge{charge(r, 1)})
				switch {
				case err != nil:
					t.Error(err)
				case answers[0] == nil:
					granted[n]++
				case !errors.Is(answers[0], budget.ErrSpent):
					t.Error(answers[0])
				}
			}
		})
	}
	running.Wait()
	total := 0
	for _, n := range granted {
		total += n
	}
	state, err := first.Budget(t.Context(), here)
	must(t, err)
	if used := state.Used(budget.DayOf(w.now()), budget.Account{Kind: budget.OnChain}).Fee; total != room || used != chain.NewAmount(room) {
		t.Errorf("%d were granted, and %s is used, of %d", total, used, room)
	}
	w.judge()
}

// A batch larger than an event may be is set aside in parts; what does not fit is refused,
// by its own charge.
func TestAllowMany(t *testing.T) {
	w := newWorld(t)
	g := w.replica()
	w.register(g, alice)
	w.limit(g, budget.Account{Kind: budget.OnChain}, 450)
	var requests []*intent.Request
	var charges []budget.Charge
	for n := range 500 {
		r := request(n)
		requests, charges = append(requests, &r), append(charges, charge(r, 1))
	}
	charges[7].Fee = chain.NewAmount(1000)
	answers, err := g.Allow(t.Context(), laneOf(alice), 1, requests, charges)
	must(t, err)
	refused := 0
	for i, why := range answers {
		switch {
		case i == 7 && !errors.Is(why, budget.ErrOverLimit), i != 7 && why != nil && !errors.Is(why, budget.ErrSpent):
			t.Errorf("%d: %v", i, why)
		case why != nil:
			refused++
		}
	}
	open, err := g.Open(t.Context(), laneOf(alice))
	must(t, err)
	if refused != 50 || len(open) != 450 {
		t.Errorf("%d are refused, and something is set aside for %d", refused, len(open))
	}
	// Asked again, nothing more is set aside.
	head, err := w.db.Log().Head(t.Context())
	must(t, err)
	_, err = g.Allow(t.Context(), laneOf(alice), 1, requests, charges)
	must(t, err)
	if now, err := w.db.Log().Head(t.Context()); err != nil || now != head {
		t.Errorf("%d events more, %v", now-head, err)
	}
	w.judge()
}

// Where nothing is limited nothing is recorded.
func TestUnlimited(t *testing.T) {
	w := newWorld(t)
	g := w.replica()
	w.register(g, alice)
	head, err := w.db.Log().Head(t.Context())
	must(t, err)
	must(t, w.allow(g, alice, 1, request(1), 5))
	must(t, g.Settle(t.Context(), laneOf(alice), 1, []budget.Spent{{Purpose: budget.Purpose{Intent: request(1).ID()}}}))
	if now, err := w.db.Log().Head(t.Context()); err != nil || now != head {
		t.Errorf("%d events, %v", now-head, err)
	}
}

// What was settled once is settled, whoever says it again; an older holder says nothing.
func TestSettle(t *testing.T) {
	w := newWorld(t)
	g, other := w.replica(), w.replica()
	w.register(g, alice)
	w.limit(g, budget.Account{Kind: budget.OnChain}, 10)
	r := request(1)
	must(t, w.allow(g, alice, 1, r, 10))
	must(t, w.allow(other, alice, 2, r, 10))
	spent := []budget.Spent{{Purpose: budget.Purpose{Intent: r.ID()}, Sum: budget.Sum{Fee: chain.NewAmount(4)}}}
	if err := g.Settle(t.Context(), laneOf(alice), 1, spent); !errors.Is(err, budget.ErrFenced) {
		t.Errorf("the older holder: %v", err)
	}
	if err := w.allow(g, alice, 1, request(2), 1); !errors.Is(err, budget.ErrFenced) {
		t.Errorf("the older holder: %v", err)
	}
	for _, one := range []*guard.Guard{other, other, g} {
		if err := one.Settle(t.Context(), laneOf(alice), 2, spent); err != nil {
			t.Error(err)
		}
	}
	state, err := g.Budget(t.Context(), here)
	must(t, err)
	if used := state.Used(budget.DayOf(w.now()), budget.Account{Kind: budget.OnChain}).Fee; used != chain.NewAmount(4) {
		t.Errorf("%s is used", used)
	}
	w.judge()
}

// What an operator does on one replica the next signature on another heeds.
func TestHeedsOthers(t *testing.T) {
	w := newWorld(t)
	g, operator := w.replica(), w.replica()
	w.register(g, alice)
	ctx := t.Context()
	room := func() int {
		n, err := g.Room(ctx, laneOf(alice), signer.Load{InFlight: 3, Capacity: 10})
		must(t, err)
		return n
	}
	r := request(1)
	must(t, w.allow(g, alice, 1, r, 1))
	if room() != 7 {
		t.Errorf("there is room for %d", room())
	}
	for name, c := range map[string]struct {
		do, undo func()
		want     event.Refusal
		noop     bool // may be signed
		room     int
	}{
		"everything is halted": {
			func() {
				w.flip(operator, safeguard.Throw{Scope: safeguard.Scope{Kind: safeguard.Deployment}, Actor: "ada", Reason: "fire", At: w.now()})
			},
			func() {
				w.flip(operator, safeguard.Resume{Scope: safeguard.Scope{Kind: safeguard.Deployment}, Actor: "ada", Reason: "out", At: w.now()})
			},
			safeguard.ErrHalted, false, 0,
		},
		"the client is halted": {
			func() {
				w.flip(operator, safeguard.Throw{Scope: safeguard.Scope{Kind: safeguard.OfClient, Client: "ann"}, Actor: "ada", Reason: "fire", At: w.now()})
			},
			func() {
				w.flip(operator, safeguard.Resume{Scope: safeguard.Scope{Kind: safeguard.OfClient, Client: "ann"}, Actor: "ada", Reason: "out", At: w.now()})
			},
			safeguard.ErrHalted, true, 7,
		},
		"another target": {
			func() {
				w.flip(operator, safeguard.SetTargets{Scope: safeguard.Scope{Kind: safeguard.OnChain, Chain: here}, Targets: chain.Targets{{To: &bob}}, Actor: "ada", Reason: "as agreed", At: w.now()})
			},
			func() {
				w.flip(operator, safeguard.SetTargets{Scope: safeguard.Scope{Kind: safeguard.OnChain, Chain: here}, Actor: "ada", Reason: "as agreed", At: w.now()})
			},
			safeguard.ErrTarget, true, 7,
		},
		"the signer is paused": {
			func() { w.order(operator, signer.Pause{Actor: "ada", Reason: "to look", At: w.now()}) },
			func() { w.order(operator, signer.Resume{Actor: "ada", Reason: "it is well", At: w.now()}) },
			guard.ErrStopped, false, 0,
		},
		"nothing is left": {
			func() { w.limit(operator, budget.Account{Kind: budget.OnChain}, 0) },
			func() { w.limit(operator, budget.Account{Kind: budget.OnChain}, 100) },
			budget.ErrOverLimit, false, 0,
		},
	} {
		c.do()
		if err := w.allow(g, alice, 1, r, 1); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		answers, err := g.Allow(ctx, laneOf(alice), 1, []*intent.Request{nil}, []budget.Charge{{Purpose: budget.Purpose{Nonce: 7}, Sum: budget.Sum{Fee: chain.NewAmount(1)}}})
		if err != nil || (answers[0] == nil) != c.noop {
			t.Errorf("%s: a no-op is answered %v, %v", name, answers, err)
		}
		if n := room(); n != c.room {
			t.Errorf("%s: there is room for %d, want %d", name, n, c.room)
		}
		c.undo()
		must(t, w.allow(g, alice, 1, r, 1))
	}
	if err := w.allow(g, bob, 1, r, 1); !errors.Is(err, guard.ErrStopped) {
		t.Errorf("a signer that nobody registered: %v", err)
	}
}

func (w *world) order(g *guard.Guard, c signer.Command) {
	w.t.Helper()
	_, err := g.Order(w.t.Context(), here, alice, c, meta)
	must(w.t, err)
}

func TestAccept(t *testing.T) {
	w := newWorld(t)
	g, operator := w.replica(), w.replica()
	ctx := t.Context()
	named := func(a chain.Address) intent.Request {
		r := request(1)
		r.From = intent.From{Signer: &a}
		return r
	}
	must(t, g.Accept(ctx, request(1))) // nobody is known yet
	w.register(operator, alice, bob)
	serve := func(a chain.Address, list chain.Targets) {
		_, err := operator.Serve(ctx, here, a, list, "ada", "as agreed", meta)
		must(t, err)
		w.pass(time.Second) // what is known is old
	}
	serve(alice, chain.Targets{{To: &bob}})
	if err := g.Accept(ctx, named(alice)); !errors.Is(err, signer.ErrTarget) {
		t.Errorf("a signer that may not: %v", err)
	}
	must(t, g.Accept(ctx, named(bob)))
	must(t, g.Accept(ctx, request(1))) // bob may
	serve(bob, chain.Targets{{To: &alice}})
	if err := g.Accept(ctx, request(1)); !errors.Is(err, signer.ErrTarget) {
		t.Errorf("a pool of which none may: %v", err)
	}
	other := request(1)
	other.Pool = "cold"
	if err := g.Accept(ctx, other); !errors.Is(err, signer.ErrPool) {
		t.Errorf("a pool that they are not in: %v", err)
	}
	// The targets stay when the signer is registered again.
	w.register(operator, bob)
	if err := g.Accept(ctx, named(bob)); !errors.Is(err, signer.ErrTarget) {
		t.Errorf("registered again: %v", err)
	}
	serve(bob, nil)
	must(t, g.Accept(ctx, named(bob)))

	w.limit(operator, budget.Account{Kind: budget.EachClient}, 0)
	w.pass(time.Second)
	if err := g.Accept(ctx, named(bob)); !errors.Is(err, budget.ErrOverLimit) {
		t.Errorf("no budget: %v", err)
	}
	w.limit(operator, budget.Account{Kind: budget.EachClient}, 5)
	w.pass(time.Second)
	must(t, w.allow(operator, bob, 1, request(8), 5))
	w.pass(time.Second)
	if err := g.Accept(ctx, named(bob)); !errors.Is(err, budget.ErrSpent) {
		t.Errorf("the budget is spent: %v", err)
	}
	w.pass(24 * time.Hour)
	must(t, g.Accept(ctx, named(bob)))
	w.flip(operator, safeguard.Throw{Scope: safeguard.Scope{Kind: safeguard.OnChain, Chain: here}, Actor: "ada", Reason: "fire", At: w.now()})
	w.pass(time.Second)
	if err := g.Accept(ctx, named(bob)); !errors.Is(err, safeguard.ErrHalted) {
		t.Errorf("halted: %v", err)
	}
}

// Rates count for everybody together, for each client, and for each subject; what is
// refused costs nothing.
func TestRates(t *testing.T) {
	w := newWorld(t)
	g := w.replica()
	rate := func(kind safeguard.ScopeKind, client string, perSecond, burst int) {
		w.flip(g, safeguard.SetRate{Scope: safeguard.Scope{Kind: kind, Client: client}, Rate: &safeguard.Rate{PerSecond: perSecond, Burst: burst}, Actor: "ada", Reason: "as agreed", At: w.now()})
	}
	rate(safeguard.Deployment, "", 10, 8)
	rate(safeguard.EachClient, "", 1, 5)
	rate(safeguard.OfClient, "bob", 1, 2)
	rate(safeguard.EachSubject, "", 1, 3)
	taken := func(client, subject string) (n int) {
		for range 20 {
			r := request(1)
			r.Client, r.Subject = client, subject
			err := g.Accept(t.Context(), r)
			if err == nil {
				n++
			} else if !errors.Is(err, guard.ErrRate) {
				t.Fatal(err)
			}
		}
		return n
	}
	got := []int{taken("ann", "x"), taken("ann", ""), taken("bob", ""), taken("cy", "")}
	if diff := cmp.Diff([]int{3, 2, 2, 1}, got); diff != "" {
		t.Error(diff)
	}
	w.pass(2 * time.Second)
	got = []int{taken("ann", "x"), taken("bob", ""), taken("cy", "")}
	if diff := cmp.Diff([]int{2, 2, 4}, got); diff != "" {
		t.Error(diff)
	}
}

// rows keep one snapshot a stream.
type rows struct {
	all map[event.Stream]event.Snapshot
}

func (r rows) Snapshot(_ context.Context, stream event.Stream) (event.Snapshot, bool, error) {
	s, ok := r.all[stream]
	return s, ok, nil
}

func (r rows) KeepSnapshot(_ context.Context, s event.Snapshot) error {
	r.all[s.Stream] = s
	return nil
}

// reads counts the events that are read of streams.
type reads struct {
	commands.Store
	n *int
}

func (r reads) ReadStream(ctx context.Context, stream event.Stream, after event.Version) iter.Seq2[event.Recorded, error] {
	return func(yield func(event.Recorded, error) bool) {
		for e, err := range r.Store.ReadStream(ctx, stream, after) {
			*r.n++
			if !yield(e, err) {
				return
			}
		}
	}
}

// After a restart a budget is read from its last snapshot on, though whoever worked on it
// has never read it as a whole.
func TestSnapshots(t *testing.T) {
	w := newWorld(t)
	kept, n := rows{map[event.Stream]event.Snapshot{}}, 0
	snapshots := func(c *guard.Config) {
		c.Budgets.Store = reads{c.Budgets.Store, &n}
		c.Budgets.Snapshots = &commands.Snapshots[budget.State]{
			Rows: kept, Every: 10, Schema: budget.SnapshotSchema, Encode: budget.State.Snapshot, Decode: budget.Restore,
			Failed: func(stream event.Stream, err error) { t.Error(stream, err) },
		}
	}
	g := w.replica(snapshots)
	w.register(g, alice)
	w.limit(g, budget.Account{Kind: budget.OnChain}, 1000)
	for i := range 100 {
		must(t, w.allow(g, alice, 1, request(i), 1))
	}
	if n > 50 {
		t.Errorf("%d events are read by who appended them", n)
	}
	n = 0
	s, err := w.replica(snapshots).Budget(t.Context(), here)
	must(t, err)
	if used := s.Used(budget.DayOf(w.now()), budget.Account{Kind: budget.OnChain}).Fee; used != chain.NewAmount(100) {
		t.Errorf("%s is used", used)
	}
	if n > 30 {
		t.Errorf("%d of 101 events are read", n)
	}
}

// money tells what accounts have, when it is asked to.
type money struct {
	heads chan struct{}
	asked chan struct{}

	mu   sync.Mutex
	have map[chain.Address]uint64
	err  error
}

func (m *money) Heads(context.Context) <-chan struct{} { return m.heads }

func (m *money) Balances(_ context.Context, of []chain.Address) ([]chain.Amount, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() { m.asked <- struct{}{} }()
	all := make([]chain.Amount, len(of))
	for i, a := range of {
		all[i] = chain.NewAmount(m.have[a])
	}
	return all, m.err
}

// Balances are asked for once at each block, and stop and start signers.
func TestWatch(t *testing.T) {
	w := newWorld(t)
	g := w.replica()
	w.register(g, alice, bob)
	w.order(g, signer.SetThreshold{Threshold: chain.NewAmount(100), Actor: "ada", Reason: "as it takes", At: w.now()})
	m := &money{heads: make(chan struct{}), asked: make(chan struct{}, 1), have: map[chain.Address]uint64{alice: 1000}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.Watch(t.Context(), here, m, []chain.Address{alice, bob})
	}()
	status := func(balance uint64, err error) signer.Status {
		t.Helper()
		m.mu.Lock()
		m.have[alice], m.err = balance, err
		m.mu.Unlock()
		m.heads <- struct{}{}
		<-m.asked
		m.heads <- struct{}{} // when it is taken, what was seen before is recorded
		<-m.asked
		s, err := g.Signer(t.Context(), here, alice)
		must(t, err)
		return s.Status()
	}
	var got []signer.Status
	got = append(got, status(100, nil), status(99, nil), status(105, nil), status(0, errors.New("no node")), status(110, nil))
	want := []signer.Status{signer.StatusServing, signer.StatusLow, signer.StatusLow, signer.StatusLow, signer.StatusServing}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	close(m.heads)
	<-ended
	events := 0
	for r, err := range w.db.Log().ReadStream(t.Context(), signer.Stream(here, bob), 0) {
		must(t, err)
		t.Log(r.Name)
		events++
	}
	if events != 1 {
		t.Errorf("%d events of a signer that nothing happened to", events)
	}
}

// A signer that drains is drained when no nonce of any of its lanes is open, whoever works
// on them.
func TestDrains(t *testing.T) {
	w := newWorld(t)
	g := w.replica()
	w.register(g, alice)
	ctx := t.Context()
	m := &money{asked: make(chan struct{}, 100)}
	lanes := commands.Handler[lane.State, lane.Command, lane.Event]{Store: w.db.Log(), Codec: lane.Codec()}
	other := chain.Sequence{Chain: here, Sender: alice, Key: chain.NonceKey{31: 9}}
	do := func(id chain.Sequence, all ...lane.Command) {
		for _, c := range all {
			o, err := commands.Begin(rand.Reader, meta)
			must(t, err)
			_, err = lanes.Handle(ctx, lane.Stream(id), c, o)
			must(t, err)
		}
	}
	learned := lane.Advance{Token: 1, Witness: lane.Witness{Block: chain.Block{Number: 1, Hash: chain.Hash{1}}, Endpoints: []string{"a"}, Needed: 1, Asked: 1}}
	wish := request(1).ID()
	do(laneOf(alice), lane.Open{Holder: "one", Token: 1}, learned)
	do(laneOf(bob), lane.Open{Holder: "one", Token: 1}, learned, lane.Reserve{Token: 1, Intents: []chain.IntentID{wish}, Budget: 9})
	do(other, lane.Open{Holder: "two", Token: 1}, learned, lane.Reserve{Token: 1, Intents: []chain.IntentID{wish}, Budget: 9})
	look := func() signer.Status {
		t.Helper()
		w.pass(10 * time.Second)
		heads := make(chan struct{}, 1)
		heads <- struct{}{}
		close(heads)
		m.heads = heads
		g.Watch(ctx, here, m, []chain.Address{alice})
		s, err := g.Signer(ctx, here, alice)
		must(t, err)
		return s.Status()
	}
	got := []signer.Status{look()}
	w.order(w.replica(), signer.Drain{Actor: "ada", Reason: "to rotate", At: w.now()})
	got = append(got, look())
	do(other, lane.Release{Token: 1, Intents: []chain.IntentID{wish}, Reason: "given up"})
	got = append(got, look()) // the nonce is free, and open
	do(other, lane.Reserve{Token: 1, Intents: []chain.IntentID{wish}, Budget: 9},
		lane.Attempt{Token: 1, Signed: []lane.Signed{{Nonce: 0, Intent: wish, Hash: chain.Hash{7}, Fee: chain.LegacyFee(chain.PriceOf(1))}}},
		lane.Land{Token: 1, Landings: []lane.Landing{{Nonce: 0, Hash: chain.Hash{7}, Block: chain.Block{Number: 2, Hash: chain.Hash{2}}, Status: 1, Final: true}}})
	got = append(got, look())
	want := []signer.Status{signer.StatusServing, signer.StatusDraining, signer.StatusDraining, signer.StatusDrained}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Failures close to each other count once; a wrong signature counts always.
func TestFailures(t *testing.T) {
	w := newWorld(t)
	g := w.replica(func(c *guard.Config) { c.Settings.Failures = 3 })
	w.register(g, alice)
	fail := func(kind signer.FailureKind) signer.State {
		t.Helper()
		must(t, g.Failed(t.Context(), laneOf(alice), kind, "no answer"))
		s, err := g.Signer(t.Context(), here, alice)
		must(t, err)
		return s
	}
	var got []int
	for _, d := range []time.Duration{0, time.Second, 3 * time.Second, 2 * time.Second} {
		w.pass(d)
		got = append(got, len(fail(signer.NoSignature).Failures))
	}
	if diff := cmp.Diff([]int{1, 1, 1, 2}, got); diff != "" {
		t.Error(diff)
	}
	must(t, g.Succeeded(t.Context(), laneOf(alice)))
	if s := fail(signer.WrongSignature); s.Status() != signer.StatusDisabled || len(s.Failures) != 1 {
		t.Errorf("it is %s after %d failures", s.Status(), len(s.Failures))
	}
	must(t, g.Succeeded(t.Context(), laneOf(alice)))
	must(t, g.Failed(t.Context(), laneOf(bob), signer.WrongSignature, "of nobody")) // who was never registered
	if s, err := g.Signer(t.Context(), here, alice); err != nil || s.Status() != signer.StatusDisabled {
		t.Errorf("it is %s, %v", s.Status(), err)
	}
}

// A signer that is not known cannot be given targets.
func TestServeUnknown(t *testing.T) {
	w := newWorld(t)
	if _, err := w.replica().Serve(t.Context(), here, alice, nil, "ada", "as agreed", meta); !errors.Is(err, signer.ErrUnknown) {
		t.Error(err)
	}
}
