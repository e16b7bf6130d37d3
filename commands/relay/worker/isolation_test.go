package worker

import (
	"slices"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

// Each test here is an attack of one client, ann, on a lane that she shares with bob.

// fate is the nodes' treatment of a transaction.
type fate int

const (
	mined   fate = iota
	unpaid       // nodes refuse it for lack of funds
	ignored      // no block includes it
)

// goOnAs runs n turns and blocks. Each transaction meets its fate.
func (w *world) goOnAs(a *actor, n int, of func(chain.Signed) fate) {
	w.t.Helper()
	w.hold = true
	for range n {
		_ = w.turns(a, 1)
		all := slices.DeleteFunc(w.accepted(), func(s tx.State) bool { return !s.Sendable() })
		slices.SortStableFunc(all, func(x, y tx.State) int { return int(x.Accepted.Nonce) - int(y.Accepted.Nonce) })
		for _, s := range all {
			raw := w.bytesOf(s.Accepted.Hash)
			signed, err := tempo.Decode(raw)
			must(w.t, err)
			switch of(signed) {
			case mined:
				w.hand(raw)
			case unpaid:
				w.deliver(signed.Hash, tx.Report{Attempt: s.Attempt + 1, Everyone: true, At: w.now(), Answers: []tx.Answer{
					{Endpoint: "a", Class: tx.Retry, Cause: tx.Funds, Message: "insufficient funds for gas * price + value"},
				}})
			}
		}
		w.block()
	}
	w.hold = false
}

// ways counts how often intents gave way.
func (w *world) ways(ids ...chain.IntentID) (n int) {
	for _, id := range ids {
		n += len(w.intent(id).GaveWay)
	}
	return n
}

// Nodes refuse ann's intents because the balance that she chose to pay from is empty. Bob's
// behind them complete within the stall time, and hers when there is money.
func TestUnpaidHoldsNobody(t *testing.T) {
	for name, change := range map[string]func(*intent.Request){
		"a fee token": func(r *intent.Request) { r.Gas.FeeToken = &chain.Address{0x20, 0xc1} },
		"the sponsor": func(r *intent.Request) { r.Gas.Sponsored = true },
	} {
		t.Run(name, func(t *testing.T) {
			w, l, _ := newSponsored(t)
			w.policy.Tokens = append(w.policy.Tokens, chain.Address{0x20, 0xc1})
			a, err := w.opened(l)
			must(t, err)
			hers := w.ask(w.request(1, by("ann"), change), w.request(2, by("ann"), change))
			his := w.ask(w.request(3, by("bob")))
			poor := func(s chain.Signed) fate {
				if s.FeePayer != nil || *s.FeeToken == (chain.Address{0x20, 0xc1}) {
					return unpaid
				}
				return mined
			}
			began := w.clock.now()
			for i := 0; !w.ended(intent.StatusCompleted, his...)(); i++ {
				if i == 60 {
					t.Fatalf("bob's still waits; ann's are %s and %s", w.intent(hers[0]).Status(), w.intent(hers[1]).Status())
				}
				w.goOnAs(a, 1, poor)
			}
			if took := w.clock.now().Sub(began); took > w.settings.Stall/2 {
				t.Errorf("bob's waited for %s", took)
			}
			if n := w.ways(hers...); n != 2 {
				t.Errorf("they gave way %d times, want both once", n)
			}
			w.clock.pass(w.settings.Stall)
			w.until(a, "all are done", w.ended(intent.StatusCompleted, append(hers, his...)...))
			w.judge()
		})
	}
}

// The sponsor has no funds, so that ann's intent gives way, and then the signer has none:
// the next no-op is the sponsor's again.
func TestNoOpsArePaidInTurn(t *testing.T) {
	w, l, _ := newSponsored(t)
	a, err := w.opened(l)
	must(t, err)
	ids := w.ask(w.request(1, by("ann"), func(r *intent.Request) { r.Gas.Sponsored = true }))
	poor := func(s chain.Signed) fate {
		if noOps := len(w.made(0)) - 1; noOps < 2 && s.Nonce == 0 && (s.FeePayer != nil) == (noOps == 0) {
			return unpaid
		}
		return ignored
	}
	for i := 0; len(w.made(0)) < 3; i++ {
		if i == 120 {
			t.Fatalf("nonce 0 has the attempts %+v", w.made(0))
		}
		w.goOnAs(a, 1, poor)
	}
	for i, made := range w.made(0) {
		signed, err := tempo.Decode(w.bytesOf(made.Hash))
		must(t, err)
		if sponsors := signed.FeePayer != nil; sponsors != (i != 1) || made.Intent.IsZero() == (i == 0) {
			t.Errorf("attempt %d is for %s, and the sponsor pays: %t", i, made.Intent, sponsors)
		}
	}
	w.until(a, "the nonce is used", func() bool { return w.state().Open() == 0 })
	w.is(ids[0], intent.StatusWaiting)
	w.judge()
}

// Ann's intents offer too little of a tip, again and again. All of them give way together,
// and the more often they do, the longer she waits.
func TestWaitsLongerEachTime(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	var theirs []intent.Request
	for i := range 8 {
		theirs = append(theirs, w.request(i, by("ann"), func(r *intent.Request) { r.Gas.MaxPriorityFee = intent.NewAmount(100) }))
	}
	hers := w.ask(theirs...)
	never := func(s chain.Signed) fate {
		if len(s.Calls) == 1 && len(s.Calls[0].Input) == 2 && s.Calls[0].Input[1] < 8 {
			return ignored
		}
		return mined
	}
	w.goOnAs(a, 50, never)
	if n := w.ways(hers...); n != 8 {
		t.Errorf("%d of 8 gave way at first", n)
	}
	w.goOnAs(a, 550, never)
	if n := w.ways(hers...); n < 16 || n > 8*5 {
		t.Errorf("in ten minutes they gave way %d times, want each 2 to 5 times", n)
	}
	ids := w.ask(w.request(100, by("bob")))
	for i := 0; !w.ended(intent.StatusCompleted, ids...)(); i++ {
		if i == 60 {
			t.Fatal("bob's still waits")
		}
		w.goOnAs(a, 1, never)
	}
}

// The guard refuses the value of ann's intents. They count for no other client: bob's
// intent of the same value is signed.
func TestRefusedValuesCountForNobody(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.hold = true
	w.has(a, 1_000_000_000)
	w.limit(budget.Account{Kind: budget.OfClient, Client: "ann"}, plenty, 1)
	moving := func(r *intent.Request) { r.Calls[0].Value = chain.NewAmount(600_000_000) }
	ids := w.ask(w.request(1, by("ann"), moving), w.request(2, by("bob"), moving))
	_ = w.turns(a, 1)
	if s := w.intent(ids[1]); len(s.Attempts) == 0 {
		t.Error("bob's is not signed for")
	}
}

// Ann's intents together move more than the balance. Her second intent takes no budget of
// the chain from bob's, about which the guard is asked in the same turn.
func TestUnpayableTakesNoBudget(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.hold = true
	w.has(a, 1_140_000_000) // fees are 50,000,000 for each
	w.limit(budget.Account{Kind: budget.OnChain}, plenty, 1_500_000_000)
	moves := func(n int, client string, value uint64) intent.Request {
		return w.request(n, by(client), func(r *intent.Request) { r.Calls[0].Value = chain.NewAmount(value) })
	}
	ids := w.ask(moves(1, "ann", 600_000_000), moves(2, "ann", 600_000_000), moves(3, "bob", 100_000_000), moves(4, "bob", 250_000_000))
	_ = w.turns(a, 1)
	for i, signed := range []bool{true, false, true, true} {
		if s := w.intent(ids[i]); len(s.Attempts) > 0 != signed {
			t.Errorf("intent %d has %d attempts", i, len(s.Attempts))
		}
	}
}

// A claim far behind the queue's head met intents with too much gas. The next claim begins
// at the head again.
func TestCrowdedSweepEnds(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.hold = true
	heavy := func(r *intent.Request) { r.Gas.Limit = 1 << 24 }
	var theirs []intent.Request
	for i := range 6 {
		theirs = append(theirs, w.request(i, by("ann"), heavy))
	}
	w.ask(theirs...)
	_ = w.turns(a, 1)
	a.sweep, a.wider = sweep{at: 1, due: true}, claimMax
	_ = w.turns(a, 1)
	if a.weighed == 0 {
		t.Fatal("the client has not too much gas in flight: the test does not try it")
	}
	if a.sweep != (sweep{}) || a.wider != 0 {
		t.Errorf("the next claim begins after %d", a.after())
	}
}

// A new holder of the lane gets no estimate for ann's intent, which is signed and stalls.
// It raises the fee with the gas limit that was signed.
func TestBumpNeedsNoEstimate(t *testing.T) {
	w := newWorld(t)
	first := w.request(1, by("ann"), estimated)
	ids := w.ask(first)
	w.hold = true
	must(t, w.turns(w.worker(), 2))
	if n := len(w.made(0)); n != 1 {
		t.Fatalf("%d attempts", n)
	}
	release := w.slowly(first)
	defer release()
	w.clock.pass(2 * w.settings.Stall)
	a := w.worker()
	for i := 0; len(w.made(0)) < 2; i++ {
		if i == 60 {
			t.Fatal("the fee was not raised")
		}
		_ = w.turns(a, 1)
		w.block()
	}
	for _, made := range w.made(0) {
		signed, err := tempo.Decode(w.bytesOf(made.Hash))
		must(t, err)
		if made.Intent != ids[0] || signed.Gas != 60_000 {
			t.Errorf("signed for %s with %d gas", made.Intent, signed.Gas)
		}
	}
}
