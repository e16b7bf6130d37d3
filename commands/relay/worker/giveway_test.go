package worker

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// most sets the intent's own fee ceiling.
func most(fee uint64) func(*intent.Request) {
	return func(r *intent.Request) { r.Gas.MaxFee = intent.NewAmount(fee) }
}

// goOnDear runs n turns and blocks, and ignores errors about the price of gas.
func (w *world) goOnDear(a *actor, n int) {
	w.t.Helper()
	for range n {
		_ = w.turns(a, 1)
		w.block()
	}
}

// costs sets the price of gas from the next block on, with a tip of 100.
func (w *world) costs(fee uint64) {
	w.fee = asking(fee, 100)
	w.chain.SetBaseFee(fee - 100)
}

// Gas becomes more expensive than the ceiling of one client's signed intents. The intents
// of another client behind them in the lane complete within the stall time. The first
// client's intents complete once, later, when gas is cheaper.
func TestGivesWay(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.hold = true
	cheap := w.ask(w.request(1, by("ann"), most(1200)), w.request(2, by("ann"), most(1200)))
	must(t, w.turns(a, 2))
	if n := len(w.attempted()); n != 2 {
		t.Fatalf("%d were signed for", n)
	}
	w.costs(2000)
	others := w.ask(w.request(3, by("bob")), w.request(4, by("bob")))
	w.hold = false
	began := w.clock.now()
	for i := 0; !w.ended(intent.StatusCompleted, others...)(); i++ {
		if i == 60 {
			t.Fatalf("others still wait; theirs is %s", w.intent(cheap[0]).Status())
		}
		w.goOnDear(a, 1)
	}
	if took := w.clock.now().Sub(began); took > w.settings.Stall {
		t.Errorf("others waited for %s", took)
	}
	for _, id := range cheap {
		w.until(a, "it waits", func() bool { return w.intent(id).Status() == intent.StatusWaiting })
		if s := w.intent(id); len(s.GaveWay) != 1 || s.Place != nil {
			t.Errorf("it is %s, and gave way at %v", s.Status(), s.GaveWay)
		}
	}
	w.costs(500)
	w.clock.pass(w.settings.Stall) // ann's next such intents wait as long
	for range 20 {
		w.goOnDear(a, 1)
	}
	for _, id := range append(cheap, others...) {
		w.is(id, intent.StatusCompleted)
	}
	w.judge()
}

// Later intents of an ordering group get no nonce while the first may give way, so the
// group keeps its order.
func TestGivesWayInARow(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.hold = true
	row := w.ask(w.request(1, by("ann"), inRow, most(1200)), w.request(2, by("ann"), inRow), w.request(3, by("ann"), inRow))
	must(t, w.turns(a, 3))
	if n := len(w.attempted()); n != 1 {
		t.Fatalf("%d were signed for", n)
	}
	w.costs(2000)
	others := w.ask(w.request(4, by("bob")))
	w.hold = false
	for i := 0; !w.ended(intent.StatusCompleted, others...)() || w.intent(row[0]).Place != nil; i++ {
		if i == 60 {
			t.Fatalf("bob's still waits; ann's is %s", w.intent(row[0]).Status())
		}
		w.goOnDear(a, 1)
	}
	for _, id := range row {
		w.is(id, intent.StatusWaiting)
	}
	w.costs(500)
	for range 20 {
		w.clock.pass(w.settings.Claim)
		w.goOnDear(a, 2)
	}
	for i, id := range row {
		if w.is(id, intent.StatusCompleted); i > 0 && w.intent(id).Receipt.Block.Number < w.intent(row[i-1]).Receipt.Block.Number {
			t.Errorf("%s landed before the one in front of it", id)
		}
	}
	w.judge()
}

// In an ordering group, the next intent gets no nonce until an intent that limits how it
// pays is mined. Before that, gas may rise above any ceiling, and a balance may be used up.
func TestLimitsInARow(t *testing.T) {
	for name, change := range map[string]func(*intent.Request){
		"a far ceiling": most(9000),
		"a far tip":     func(r *intent.Request) { r.Gas.MaxPriorityFee = intent.NewAmount(9000) },
		"a fee token":   func(r *intent.Request) { r.Gas.FeeToken = &chain.Address{0x20, 0xc0} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.policy.Tokens = []chain.Address{{0x20, 0xc0}}
			a := w.worker()
			row := w.ask(w.request(1, inRow, change), w.request(2, inRow, change), w.request(3, inRow))
			w.hold = true
			must(t, w.turns(a, 3))
			if n := len(w.attempted()); n != 1 {
				t.Errorf("%d were signed for, want the first", n)
			}
			w.hold = false
			for range 20 {
				w.goOnDear(a, 1)
			}
			for i, id := range row {
				if w.is(id, intent.StatusCompleted); i > 0 && w.intent(id).Receipt.Block.Number < w.intent(row[i-1]).Receipt.Block.Number {
					t.Errorf("%s landed before the one in front of it", id)
				}
			}
			w.judge()
		})
	}
}

// gives returns a world with an intent that gives way: its no-op is signed, and not sent.
func gives(t *testing.T) (*world, *actor, chain.IntentID) {
	w := newWorld(t)
	a := w.worker()
	w.hold = true
	id := w.ask(w.request(1, most(1200)))[0]
	must(t, w.turns(a, 2))
	w.costs(2000)
	for i := 0; len(w.made(0)) < 2; i++ {
		if i == 60 {
			t.Fatal("no no-op was signed")
		}
		w.goOnDear(a, 1)
	}
	return w, a, id
}

// Gas becomes cheaper before the no-op is sent, and the intent's own transaction is mined:
// the intent completes, and is not executed again.
func TestLandsWhileItGivesWay(t *testing.T) {
	w, a, id := gives(t)
	w.costs(1000)
	w.hand(w.bytesOf(w.made(0)[0].Hash))
	w.until(a, "it is done", w.ended(intent.StatusCompleted, id))
	w.hold = false
	for range 5 {
		w.goOnDear(a, 1)
	}
	if s := w.intent(id); s.Assignment != 1 {
		t.Errorf("it had %d nonces", s.Assignment)
	}
	w.judge()
}

// The no-op's block is reorged out, and the intent's own transaction is mined instead. The
// intent keeps its nonce until a block is final.
func TestLandsInAnotherBlock(t *testing.T) {
	w, a, id := gives(t)
	w.chain.StallFinality(true)
	w.hold = false
	w.goOnDear(a, 3)
	if s := w.intent(id); s.Place == nil || s.Receipt != nil {
		t.Fatalf("it is %s, told %+v", s.Status(), s.Receipt)
	}
	w.costs(1000)
	first := w.bytesOf(w.made(0)[0].Hash)
	must(t, w.chain.Reorg(3, false, first))
	w.watch()
	w.chain.StallFinality(false)
	w.until(a, "it is done", w.ended(intent.StatusCompleted, id))
	if s := w.intent(id); s.Assignment != 1 {
		t.Errorf("it had %d nonces", s.Assignment)
	}
	w.judge()
}

// A cancel of an intent that gives way ends it as canceled, by the no-op.
func TestCanceledWhileItGivesWay(t *testing.T) {
	w, a, id := gives(t)
	w.wish(id, intent.Cancel{At: w.clock.now()})
	w.hold = false
	for i := 0; w.intent(id).End == nil; i++ {
		if i == 30 {
			t.Fatalf("it is %s", w.intent(id).Status())
		}
		w.goOnDear(a, 1)
	}
	w.is(id, intent.StatusCanceled)
	w.judge()
}
