package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

// goOn runs n turns and blocks, in which the guard may refuse.
func (w *world) goOn(a *actor, n int) {
	w.t.Helper()
	for range n {
		if err := w.turns(a, 1); err != nil && !isKept(err) {
			w.t.Fatal(err)
		}
		w.block()
	}
}

func (w *world) is(id chain.IntentID, want intent.Status) {
	w.t.Helper()
	if s := w.intent(id); s.Status() != want {
		w.t.Errorf("the intent is %s, want %s: %+v", s.Status(), want, s.End)
	}
}

func by(client string) func(*intent.Request) {
	return func(r *intent.Request) { r.Client = client }
}

// While a client is halted, none of its intents is signed, and no other client waits. While
// all clients are halted, none is signed. Signed attempts continue.
func TestHalted(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	before := w.ask(w.request(1, by("ann")))
	must(t, w.turns(a, 1))
	w.halt(ofClient("ann"))
	ids := w.ask(w.request(2, by("ann")), w.request(3, by("bob")))
	w.goOn(a, 6)
	w.is(before[0], intent.StatusCompleted)
	w.is(ids[0], intent.StatusWaiting)
	w.is(ids[1], intent.StatusCompleted)

	w.halt(everything)
	w.resume(ofClient("ann"))
	more := w.ask(w.request(4, by("bob")))
	w.clock.pass(w.settings.Claim)
	w.goOn(a, 4)
	w.is(ids[0], intent.StatusWaiting)
	w.is(more[0], intent.StatusWaiting)

	w.resume(everything)
	w.until(a, "all are done", w.ended(intent.StatusCompleted, ids[0], more[0]))
	w.judge()
}

// A halt between the nonce and the signature: the nonce is given back, and others use it.
func TestHaltedWithNonce(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	ids := w.ask(w.request(1, by("ann")), w.request(2, by("bob")))
	for _, step := range []func(context.Context) error{a.poll, a.look, a.take, a.place} {
		must(t, step(t.Context()))
	}
	w.halt(ofClient("ann"))
	w.goOn(a, 1)
	if s := w.intent(ids[0]); s.Place != nil || len(s.Attempts) > 0 {
		t.Errorf("it has the place %+v, and %d attempts", s.Place, len(s.Attempts))
	}
	w.goOn(a, 5)
	w.is(ids[1], intent.StatusCompleted)
	w.is(ids[0], intent.StatusWaiting)
	w.resume(ofClient("ann"))
	w.clock.pass(w.settings.Claim)
	w.until(a, "it is done", w.ended(intent.StatusCompleted, ids...))
	w.judge()
}

// Ordering groups keep their order when one of their intents has to wait.
func TestHaltedRow(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	row := func(r *intent.Request) { r.Client, r.Order = "ann", "row" }
	ids := w.ask(w.request(1, row), w.request(2, row), w.request(3, row))
	for _, step := range []func(context.Context) error{a.poll, a.look, a.take, a.place} {
		must(t, step(t.Context()))
	}
	w.halt(ofClient("ann"))
	w.goOn(a, 3)
	w.resume(ofClient("ann"))
	w.clock.pass(w.settings.Claim)
	w.until(a, "it is done", w.ended(intent.StatusCompleted, ids...))
	w.rising(ids...)
	w.judge()
}

// An accepted intent whose target is no longer allowed ends.
func TestTargetNotAllowed(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.targets(chain.Targets{{To: &chain.Address{0xaa}}})
	to := chain.Address{0xaa}
	ids := w.ask(w.request(1), w.request(2, func(r *intent.Request) { r.Calls[0].To = &to }))
	w.goOn(a, 6)
	w.is(ids[0], intent.StatusFailed)
	w.is(ids[1], intent.StatusCompleted)
	w.judge()
}

// A paused signer signs nothing, not even a bump. A draining signer finishes its intents
// and gets no new ones.
func TestPausedAndDrained(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.chain.SetBaseFee(1500)
	first := w.ask(w.request(1))
	must(t, w.turns(a, 1))
	w.order(signer.Pause{Actor: "ada", Reason: "to look", At: w.now()})
	w.fee.MaxFee = chain.PriceOf(3000)
	for range 3 {
		w.clock.pass(w.settings.Stall)
		w.goOn(a, 1)
	}
	if n := len(w.attempted()); n != 1 {
		t.Errorf("%d attempts while it is paused", n)
	}
	w.order(signer.Drain{Actor: "ada", Reason: "to rotate", At: w.now()})
	second := w.ask(w.request(2))
	w.clock.pass(w.settings.Stall)
	w.until(a, "it has finished what it had", w.ended(intent.StatusCompleted, first...))
	w.is(second[0], intent.StatusWaiting)
	w.order(signer.Resume{Actor: "ada", Reason: "it is well", At: w.now()})
	w.until(a, "the second is done", w.ended(intent.StatusCompleted, second...))
	w.judge()
}

// A budget admits the intents that fit, and the rest on the next day. Unused reservations
// are released, and the recorded use equals the cost on the chain.
func TestBudget(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	const worst = 50_000 * 1000
	w.limit(budget.Account{Kind: budget.EachClient}, 2*worst+worst/2, plenty)
	var requests []intent.Request
	for n := range 4 {
		requests = append(requests, w.request(n, by("ann")))
	}
	ids := w.ask(append(requests, w.request(9, by("bob")))...)
	if err := w.turns(a, 1); !errors.Is(err, budget.ErrSpent) {
		t.Errorf("nobody says that the budget is spent: %v", err)
	}
	if n := len(w.attempted()); n != 3 { // two of hers, and his
		t.Errorf("%d are signed", n)
	}
	today := budget.DayOf(w.now())
	ann := budget.Account{Kind: budget.OfClient, Client: "ann"}
	if used := w.budget().Used(today, ann); used.Fee != chain.NewAmount(2*worst) {
		t.Errorf("%s is set aside", used.Fee)
	}
	for n := 0; n < 60 && w.state().Open() > 0; n++ {
		w.goOn(a, 1)
		w.clock.pass(w.settings.Claim)
	}
	if w.state().Open() > 0 {
		t.Fatal("what was signed is not final")
	}
	if used, spent := w.budget().Used(today, budget.Account{Kind: budget.OnChain}).Fee, w.spent(); used != spent || spent.IsZero() {
		t.Errorf("%s is used, and the chain has taken %s", used, spent)
	}
	w.clock.pass(24 * time.Hour)
	w.until(a, "the rest is done", w.ended(intent.StatusCompleted, ids...))
	w.judge()
}

// failing is a signer that fails.
type failing struct {
	Signer
	err error
}

func (f *failing) Sign(ctx context.Context, payload []byte) ([]byte, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.Signer.Sign(ctx, payload)
}

// A signer that fails for long, or returns one wrong signature, is disabled until an
// operator acts. Its intents are not affected.
func TestSignerFails(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		turns int // until it is disabled
	}{
		"it does not answer":    {errors.New("no answer"), 12},
		"it signs with another": {fmt.Errorf("signer: %w", ErrWrongKey.Because("of somebody")), 1},
		"it has lost the key":   {ErrUnknownKey, 12},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, l := w.live(0, false)
			bad := &failing{l.Signer, c.err}
			l.Signer = bad
			a, err := w.opened(l)
			must(t, err)
			ids := w.ask(w.request(1), w.request(2))
			for n := 1; n <= c.turns; n++ {
				if err := w.turns(a, 1); err == nil {
					t.Fatal("nobody complains")
				}
				if got, want := w.key().Status(), n >= c.turns; (got == signer.StatusDisabled) != want {
					t.Fatalf("after %d failures it is %s", n, got)
				}
				w.clock.pass(10 * time.Second)
				w.block()
			}
			bad.err = nil
			w.goOn(a, 5)
			w.is(ids[0], intent.StatusWaiting)
			if n := len(w.attempted()); n > 0 {
				t.Errorf("%d are signed though it is disabled", n)
			}
			w.order(signer.Resume{Actor: "ada", Reason: "it is well", At: w.now()})
			w.clock.pass(w.settings.Claim)
			w.until(a, "they are done", w.ended(intent.StatusCompleted, ids...))
			w.judge()
		})
	}
}

// Failures that end in time are forgotten.
func TestSignerRecovers(t *testing.T) {
	w := newWorld(t)
	_, l := w.live(0, false)
	bad := &failing{l.Signer, errors.New("no answer")}
	l.Signer = bad
	a, err := w.opened(l)
	must(t, err)
	ids := w.ask(w.request(1))
	for range 3 {
		_ = w.turns(a, 1) // it returns the signer's error
		w.clock.pass(10 * time.Second)
	}
	if n := len(w.key().Failures); n != 3 {
		t.Errorf("%d failures are counted", n)
	}
	bad.err = nil
	w.until(a, "it is done", w.ended(intent.StatusCompleted, ids...))
	if n := len(w.key().Failures); n != 0 {
		t.Errorf("%d failures are left", n)
	}
	w.judge()
}

// A node's refusal for lack of funds teaches the guard the threshold: the signer gets no
// intents until it has more, and then continues by itself.
func TestLacksFunds(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.hold = true
	seen := func(balance uint64) {
		must(t, a.Guard.(keeper).Seen(t.Context(), moderato, w.lane.Sender, chain.NewAmount(balance)))
	}
	seen(1_000_000)
	first := w.ask(w.request(1))
	must(t, w.turns(a, 1))
	w.deliver(w.attempted()[0], tx.Report{Attempt: 1, Everyone: true, At: w.now(), Answers: []tx.Answer{
		{Endpoint: "a", Class: tx.Retry, Cause: tx.Funds, Message: "insufficient funds for gas * price + value"},
	}})
	must(t, w.turns(a, 1))
	const needed = 50_000 * 1000
	if k := w.key(); k.Status() != signer.StatusLow || k.Threshold != chain.NewAmount(needed) {
		t.Fatalf("it is %s below %s", k.Status(), k.Threshold)
	}
	second := w.ask(w.request(2))
	w.goOn(a, 2)
	w.is(second[0], intent.StatusWaiting)
	seen(needed)
	w.goOn(a, 1)
	w.is(second[0], intent.StatusWaiting) // it costs a tenth more
	seen(needed + needed/10)
	w.hold = false
	w.until(a, "both are done", w.ended(intent.StatusCompleted, first[0], second[0]))
	w.judge()
}

// A client whose intent moves more value than the balance stops no other client's intents.
func TestLacksValue(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.hold = true
	must(t, a.Guard.(keeper).Seen(t.Context(), moderato, w.lane.Sender, chain.NewAmount(1_000_000_000)))
	w.ask(w.request(1))
	must(t, w.turns(a, 1))
	w.deliver(w.attempted()[0], tx.Report{Attempt: 1, Everyone: true, At: w.now(), Answers: []tx.Answer{
		{Endpoint: "a", Class: tx.Retry, Cause: tx.Funds, Message: "insufficient funds for gas * price + value"},
	}})
	must(t, w.turns(a, 1))
	if k := w.key(); k.Status() != signer.StatusServing {
		t.Errorf("it is %s below %s", k.Status(), k.Threshold)
	}
}

// A holder that was fenced by its successor's reservations gives the lane up.
func TestFencedByBudget(t *testing.T) {
	w := newWorld(t)
	old := w.worker()
	ids := w.ask(w.request(1))
	must(t, w.turns(old, 1))
	a := w.worker()
	w.chain.SetBaseFee(1500)
	w.fee.MaxFee = chain.PriceOf(3000)
	w.clock.pass(w.settings.Stall)
	w.wish(ids[0], intent.SpeedUp{Fee: intent.NewAmount(2000), At: w.now()})
	must(t, w.turns(a, 1)) // it reserves more
	err := old.spend(t.Context(), []budget.Spent{{Purpose: budget.Purpose{Intent: ids[0]}}}, nil)
	if !errors.Is(err, budget.ErrFenced) || !errors.As(err, new(overError)) {
		t.Errorf("the old holder settles: %v", err)
	}
	w.until(a, "it is done", w.ended(intent.StatusCompleted, ids...))
	w.judge()
}

// No no-op is signed while all clients are halted; released nonces are filled afterwards.
func TestHaltedNoOps(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.hold = true
	ids := w.ask(w.request(1), w.request(2))
	must(t, w.turns(a, 1))
	w.wish(ids[0], intent.Cancel{At: w.now()})
	w.halt(onChain)
	w.goOn(a, 3)
	if n := len(w.attempted()); n != 2 {
		t.Errorf("%d attempts while the chain is halted", n)
	}
	w.resume(onChain)
	w.hold = false
	w.until(a, "both have ended", func() bool {
		return w.state().Open() == 0 && w.intent(ids[0]).End != nil && w.intent(ids[1]).End != nil
	})
	w.is(ids[1], intent.StatusCompleted)
	w.judge()
}

// An intent that gives its nonce back leaves its budget to the no-op there: others spend the
// rest of the day's money, and the signed intent behind it lands all the same.
func TestBudgetOfAHole(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	first := w.ask(w.request(1)) // the first transaction of an account needs more gas
	w.until(a, "the account exists", w.ended(intent.StatusCompleted, first...))
	ask := func(n int, client string) intent.Request {
		return w.request(n, by(client), func(r *intent.Request) { r.Gas.Limit = w.settings.NoOpGas })
	}
	ids := w.ask(ask(2, "ann"), ask(3, "bob"))
	a.claim = true
	for _, step := range []func(context.Context) error{a.poll, a.look, a.take, a.place} {
		must(t, step(t.Context()))
	}
	if w.intent(ids[0]).Place.Nonce > w.intent(ids[1]).Place.Nonce {
		slices.Reverse(ids)
	}
	w.halt(ofClient(w.intent(ids[0]).Requested.Request.Client))
	w.goOn(a, 1)
	for _, step := range []func(context.Context) error{a.fill, a.square} {
		must(t, step(t.Context()))
	}
	purse := w.budget()
	w.limit(budget.Account{Kind: budget.OnChain}, purse.Used(purse.Day, budget.Account{Kind: budget.OnChain}).Fee.Int().Uint64(), plenty)
	w.goOn(a, 12)
	w.is(ids[0], intent.StatusWaiting)
	w.is(ids[1], intent.StatusCompleted)
	w.judge()
}
