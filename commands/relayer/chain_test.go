package relayer

import (
	"errors"
	"slices"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/fee"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/lane"
)

// What had landed in a block that leaves the chain is told so, and lands again.
func TestReorg(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	ids := w.ask(w.request(1), w.request(2))
	must(t, w.turns(a, 1))
	w.block()
	must(t, w.turns(a, 1))
	for _, id := range ids {
		if s := w.intent(id); s.Status() != intent.StatusMined || len(s.Told) != 1 {
			t.Fatalf("after a block: %s, %d confirmations", s.Status(), len(s.Told))
		}
	}
	must(t, w.chain.Reorg(1, true))
	w.watch()
	must(t, w.turns(a, 1))
	for _, id := range ids {
		if s := w.intent(id); s.Status() != intent.StatusSubmitted || s.Receipt != nil {
			t.Errorf("after the block has left the chain: %s", s.Status())
		}
	}
	for slot := range w.state().Slots() {
		if slot.Landed != nil {
			t.Errorf("nonce %d is in block %d, which has left the chain", slot.Nonce, slot.Landed.Block.Number)
		}
	}
	w.until(a, "they land again", w.ended(intent.StatusCompleted, ids...))
	w.judge()
	if n := w.appends["intent.reorged.v1"]; n != 0 {
		t.Errorf("%d ends were taken back; none had been told", n)
	}
}

// An end that was trusted after some blocks is taken back with them.
func TestTrustedTooSoon(t *testing.T) {
	w := newWorld(t)
	w.settings.Trusted = 1
	a := w.worker()
	ids := w.ask(w.request(1))
	must(t, w.turns(a, 1))
	w.block()
	must(t, w.turns(a, 1))
	if s := w.intent(ids[0]); s.Status() != intent.StatusCompleted {
		t.Fatalf("after a block: %s", s.Status())
	}
	must(t, w.chain.Reorg(1, true))
	w.watch()
	must(t, w.turns(a, 1))
	if s := w.intent(ids[0]); s.Status() != intent.StatusSubmitted {
		t.Errorf("after the block has left the chain: %s", s.Status())
	}
	w.until(a, "it lands again", w.ended(intent.StatusCompleted, ids...))
	w.judge()
}

// Confirmations are told as they come, and all anew when the first ones have changed.
func TestConfirmations(t *testing.T) {
	w := newWorld(t)
	w.settings.Confirmations = 3
	a := w.worker()
	w.chain.StallFinality(true)
	id := w.ask(w.request(1))[0]
	must(t, w.turns(a, 1))
	for n := 1; n <= 4; n++ {
		w.block()
		must(t, w.turns(a, 1))
		if s := w.intent(id); len(s.Told) != min(n, 3) || s.End != nil {
			t.Fatalf("after %d blocks: %d confirmations", n, len(s.Told))
		}
	}
	told := w.intent(id).Told
	must(t, w.chain.Reorg(2, true))
	w.watch()
	must(t, w.turns(a, 1))
	if s := w.intent(id); len(s.Told) != 3 || s.Told[0] != told[0] || s.Told[2] == told[2] {
		t.Errorf("after a fork above it: %+v, was %+v", s.Told, told)
	}
	w.chain.StallFinality(false)
	w.until(a, "it is final", w.ended(intent.StatusCompleted, id))
	w.judge()
}

// Whoever else signs with the key uses nonces up: what was to stand there gets others,
// and the cursor goes on from where the chain is.
func TestRivals(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.hold = true
	ids := w.ask(w.request(1), w.request(2), w.request(3))
	must(t, w.turns(a, 1))
	raws := [][]byte{w.rival(0), w.rival(1)}
	_, err := w.chain.Mine(raws...)
	must(t, err)
	w.watch()
	must(t, w.turns(a, 1))
	if n := w.appends["lane.lost.v1"]; n != 0 {
		t.Errorf("%d nonces are lost by a block that is not final", n)
	}
	w.hold = false
	w.until(a, "all are done", w.ended(intent.StatusCompleted, ids...))
	w.judge()
	if n, m := w.appends["lane.lost.v1"], w.appends["intent.requeued.v1"]; n != 2 || m != 2 {
		t.Errorf("%d nonces lost, %d intents requeued", n, m)
	}
	for _, id := range ids {
		s := w.intent(id)
		if slices.Contains([]uint64{0, 1}, s.Place.Nonce) {
			t.Errorf("done with nonce %d", s.Place.Nonce)
		}
	}

	_, err = w.chain.Mine(w.rival(5), w.rival(6))
	must(t, err)
	w.clock.pass(w.settings.Look)
	more := w.ask(w.request(4))
	w.until(a, "it gets the next nonce", w.ended(intent.StatusCompleted, more...))
	if s := w.intent(more[0]); s.Place.Nonce != 7 {
		t.Errorf("nonce %d, the chain was at 7", s.Place.Nonce)
	}
	w.judge()
}

// A jump that rested on lies is undone: what the chain wants all the same is used first.
func TestReclaims(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.lied = &lane.Witness{Nonce: 3, Block: w.chain.Head(), Endpoints: []string{"a", "b"}, Needed: 2, Asked: 3}
	ids := w.ask(w.request(1))
	must(t, w.turns(a, 1))
	if s := w.intent(ids[0]); s.Place == nil || s.Place.Nonce != 3 {
		t.Fatalf("its place is %+v", s.Place)
	}
	w.lied = nil
	w.clock.pass(w.settings.Look)
	w.until(a, "the gap is filled", w.ended(intent.StatusCompleted, ids...))
	if n := w.appends["lane.filled.v1"]; n != 3 {
		t.Errorf("%d no-ops for a gap of 3", n)
	}
	w.judge()
}

// While the chain cannot be asked, nothing is handed out that nobody knows to be free;
// what was is delivered.
func TestChainIsAway(t *testing.T) {
	w := newWorld(t)
	w.away = errors.New("no endpoint answers")
	a := w.worker()
	ids := w.ask(w.request(1))
	if err := w.turns(a, 1); !errors.Is(err, w.away) {
		t.Fatalf("the trouble is %v", err)
	}
	if s := w.state(); s.Known || s.Open() != 0 {
		t.Errorf("known: %t, %d nonces are open", s.Known, s.Open())
	}
	w.away = nil
	must(t, w.turns(a, 1))
	w.away = errors.New("no endpoint answers")
	for range 3 {
		w.block()
		if err := w.turns(a, 1); err != nil && !errors.Is(err, w.away) {
			t.Fatal(err)
		}
	}
	if !w.ended(intent.StatusCompleted, ids...)() {
		t.Errorf("it is %s", w.intent(ids[0]).Status())
	}
	w.judge()
}

// A mined revert has used its nonce, and is not tried again.
func TestReverted(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	ids := w.ask(w.request(1), w.request(2))
	must(t, w.turns(a, 1))
	w.chain.Revert(w.intent(ids[0]).Attempts[0].Hash, true)
	w.until(a, "one is done", w.ended(intent.StatusCompleted, ids[1]))
	if s := w.intent(ids[0]); s.Status() != intent.StatusFailed || s.End.Reason != intent.Reverted {
		t.Errorf("%s, %+v", s.Status(), s.End)
	}
	w.judge()
}

// The first nonce that makes no progress is signed for again, for more, up to the ceiling;
// those behind it are not.
func TestStalls(t *testing.T) {
	w := newWorld(t)
	w.policy.Ceiling = chain.PriceOf(2000)
	a := w.worker()
	w.chain.SetBaseFee(1300)
	ids := w.ask(w.request(1), w.request(2))
	must(t, w.turns(a, 1))
	attempts := func() (first, second int) { return len(w.intent(ids[0]).Attempts), len(w.intent(ids[1]).Attempts) }
	for range 3 {
		w.clock.pass(w.settings.Stall)
		w.block()
		must(t, w.turns(a, 1))
	}
	if first, second := attempts(); first != 3 || second != 1 {
		t.Errorf("%d and %d attempts", first, second)
	}
	var fees []string
	slot, _ := a.held.State.Slot(0)
	for _, made := range slot.Attempts {
		fees = append(fees, made.Fee.MaxFee.String()+"/"+made.Fee.MaxPriorityFee.String())
	}
	if want := []string{"1000/100", "1200/120", "1440/144"}; !slices.Equal(fees, want) {
		t.Errorf("offered %v, want %v", fees, want)
	}
	w.chain.SetBaseFee(3000)
	for range 3 {
		w.clock.pass(w.settings.Stall)
		w.block()
		if err := w.turns(a, 1); err != nil && !errors.Is(err, fee.ErrCeiling) {
			t.Fatal(err)
		}
	}
	if slot, _ = a.held.State.Slot(0); slot.Attempts[len(slot.Attempts)-1].Fee.MaxFee.Int().Uint64() > 2000 {
		t.Errorf("offered %s, over the ceiling", slot.Attempts[len(slot.Attempts)-1].Fee.MaxFee)
	}
	w.chain.SetBaseFee(0)
	w.until(a, "both are done", w.ended(intent.StatusCompleted, ids...))
	w.judge()
}

// A holder that stood still knows the first attempt at a nonce and not the bump, and finds
// that the chain has used the nonce by another than the first: it leaves the intent be.
func TestOldHolderMeetsBump(t *testing.T) {
	for name, end := range map[string]func(w *world, first chain.Hash){
		"which is final":                 func(w *world, _ chain.Hash) { w.block(); w.block() },
		"and delivery refuses the first": func(w *world, first chain.Hash) { w.refuse(first) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.chain.SetBaseFee(1100)
			id := w.ask(w.request(1))[0]
			old := w.worker()
			must(t, w.turns(old, 1))
			young := w.worker()
			must(t, w.turns(young, 1))
			w.clock.pass(w.settings.Stall)
			must(t, w.turns(young, 1))
			s := w.intent(id)
			if len(s.Attempts) != 2 {
				t.Fatalf("%d attempts", len(s.Attempts))
			}
			end(w, s.Attempts[0].Hash)
			if err := w.turns(old, 1); !errors.Is(err, lane.ErrFenced) {
				t.Errorf("the old holder: %v", err)
			}
			if s := w.intent(id); s.Assignment != 1 || s.Place == nil || s.Stop.Reason != "" {
				t.Errorf("it was taken away: %+v, %+v", s.Place, s.Stop)
			}
			w.until(young, "it is done", w.ended(intent.StatusCompleted, id))
			w.judge()
		})
	}
}

// What no endpoint will ever take ends its intent, and a no-op uses its nonce.
func TestRefusedByAll(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.hold = true
	ids := w.ask(w.request(1), w.request(2))
	must(t, w.turns(a, 1))
	w.refuse(w.intent(ids[0]).Attempts[0].Hash)
	must(t, w.turns(a, 2))
	w.hold = false
	w.until(a, "the other one is done", w.ended(intent.StatusCompleted, ids[1]))
	if s := w.intent(ids[0]); s.Status() != intent.StatusFailed || s.End.Reason != intent.Refused {
		t.Errorf("%s, %+v", s.Status(), s.End)
	}
	w.judge()
}

// What the chain contradicts after it was final is left alone.
func TestFinalityViolated(t *testing.T) {
	w := newWorld(t)
	w.settings.Trusted = 0
	a := w.worker()
	w.hold = true
	id := w.ask(w.request(1))[0]
	must(t, w.turns(a, 1))
	hash := w.intent(id).Attempts[0].Hash
	raw := w.bytesOf(hash)
	_, err := w.chain.Mine(w.rival(0))
	must(t, err)
	w.block()
	w.block()
	must(t, w.turns(a, 1)) // the rival is final
	w.feed()
	must(t, w.turns(a, 1)) // the intent goes on with another nonce
	if s := w.intent(id); s.Assignment != 2 {
		t.Fatalf("%d assignments", s.Assignment)
	}
	must(t, w.chain.ReorgBelowFinal(3, false, raw))
	w.watch()
	must(t, w.turns(a, 2))
	if s := w.intent(id); s.Assignment != 2 || s.End != nil {
		t.Errorf("what was ruled out for ever has led to %+v", s.End)
	}
}
