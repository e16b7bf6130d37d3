package worker

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// nowhere is an account whose calls nodes take and blocks leave out, in the worlds of newLeaving.
var nowhere = chain.Address{0xaa}

// newLeaving returns a world whose blocks leave out calls to nowhere, with its worker.
func newLeaving(t *testing.T) (*world, *actor) {
	w := newWorld(t)
	w.hears = true
	w.chain.SetLeftOut(nowhere, true)
	return w, w.worker()
}

func toNowhere(r *intent.Request) { r.Calls[0].To = &nowhere }

// taking is the answer of nodes that take everything.
func taking(chain.Signed) []tx.Answer { return nil }

// asks records requests of one client, and lets the lane sign for them.
func (w *world) asks(a *actor, requests ...intent.Request) []chain.IntentID {
	ids := w.ask(requests...)
	a.box.call()
	_ = w.turns(a, 1)
	return ids
}

// whyWay returns why an intent gave way last.
func (w *world) whyWay(id chain.IntentID) (why string) {
	w.t.Helper()
	for r, err := range w.db.Log().ReadStream(w.t.Context(), intent.Stream(id), 0) {
		must(w.t, err)
		e, err := intent.Codec().Decode(r.Name, r.Data)
		must(w.t, err)
		if e, is := e.(intent.GiveWayRequested); is {
			why = e.Detail
		}
	}
	return why
}

// Nodes take ann's intents, and no block includes them. Bob's behind them complete after the
// first two of hers have given way; the third gives way with the second. A later one of hers does
// so after one stall. When blocks include them, all are executed once.
func TestLeftOutHoldsNobody(t *testing.T) {
	w, a := newLeaving(t)
	hers := w.asks(a, w.request(1, by("ann"), toNowhere), w.request(2, by("ann"), toNowhere), w.request(3, by("ann"), toNowhere))
	his := w.asks(a, w.request(10, by("bob")), w.request(11, by("bob")))
	took, stalls := w.refused(a, his, 20*w.settings.Stall, taking), time.Duration(leftOutMost+leftOutMost/2)
	if most := stalls*w.settings.Stall + w.settings.Stall/2; took > most {
		t.Errorf("bob's waited for %s, more than %s", took, most)
	}
	if first, second, third := w.ways(hers[0]), w.ways(hers[1]), w.ways(hers[2]); first < 1 || second != 1 || third != 1 {
		t.Errorf("ann's gave way %d, %d and %d times", first, second, third)
	}
	w.clock.pass(time.Hour)
	w.goOnRefusing(a, 3, taking)
	more := w.asks(a, w.request(12, by("bob")))
	if took, most := w.refused(a, more, 20*w.settings.Stall, taking), 2*w.settings.Stall; took > most {
		t.Errorf("bob's next waited for %s, more than %s", took, most)
	}
	w.chain.SetLeftOut(nowhere, false)
	w.clock.pass(time.Hour)
	w.hears = false
	w.goOnRefusing(a, 20, taking)
	for _, id := range hers {
		w.is(id, intent.StatusCompleted)
	}
	w.judge()
}

// One node takes ann's intent, and another refuses it for good: it gives way after one stall.
// Delivery's verdict stays open.
func TestLeftOutAndRefused(t *testing.T) {
	w, a := newLeaving(t)
	hers := w.asks(a, w.request(1, by("ann"), toNowhere))
	his := w.asks(a, w.request(10, by("bob")))
	took := w.refused(a, his, 20*w.settings.Stall, func(s chain.Signed) []tx.Answer {
		if !anns(s) {
			return nil
		}
		w.hand(w.bytesOf(s.Hash))
		return []tx.Answer{
			{Endpoint: "a", Class: tx.Taken},
			{Endpoint: "b", Class: tx.Permanent, Message: "insufficient gas for floor data gas cost"},
		}
	})
	if took > 3*w.settings.Stall/2 {
		t.Errorf("bob's waited for %s", took)
	}
	if n, made := w.ways(hers...), w.intent(hers[0]).Attempts; n != 1 || len(made) != 2 {
		t.Errorf("ann's gave way %d times, after %d attempts", n, len(made))
	}
	for _, s := range w.accepted() {
		if s.Status == tx.StatusInvalid {
			t.Errorf("delivery gave up %s", s.Accepted.Hash)
		}
	}
	w.judge()
}

// An endpoint's refusal counts until it takes the transaction, and only if it is for the content.
func TestDenials(t *testing.T) {
	for name, c := range map[string]struct {
		answers []tx.Answer
		want    string
	}{
		"refused":              {[]tx.Answer{{Endpoint: "b", Class: tx.Permanent, Message: "too little gas"}}, "too little gas"},
		"no answer after that": {[]tx.Answer{{Endpoint: "b", Class: tx.Permanent, Message: "too little gas"}, {Endpoint: "b", Class: tx.Unknown}}, "too little gas"},
		"taken after that":     {[]tx.Answer{{Endpoint: "b", Class: tx.Permanent, Message: "too little gas"}, {Endpoint: "b", Class: tx.Known}}, ""},
		"another took it":      {[]tx.Answer{{Endpoint: "b", Class: tx.Permanent, Message: "too little gas"}, {Endpoint: "a", Class: tx.Taken}}, "too little gas"},
		"a cause":              {[]tx.Answer{{Endpoint: "b", Class: tx.Permanent, Cause: tx.NonceTooLow}}, ""},
		"may change":           {[]tx.Answer{{Endpoint: "b", Class: tx.Retry, Message: "gas limit reached"}}, ""},
	} {
		var d denials
		for _, answer := range c.answers {
			d.see([]tx.Answer{answer})
		}
		hash := chain.Hash{1}
		s := standing{lane.Slot{Attempts: []lane.Made{{Hash: hash}}}, &job{txs: map[chain.Hash]delivered{hash: {denials: d}}}}
		if got := s.denial(); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// An intent that blocks left out is mined after all, after its no-op was signed: it completes at
// its nonce, and gets no other.
func TestLeftOutIsMinedAfterAll(t *testing.T) {
	w, a := newLeaving(t)
	id := w.asks(a, w.request(1, toNowhere))[0]
	for i := 0; w.intent(id).Attempts[len(w.intent(id).Attempts)-1].Kind != intent.NoOp; i++ {
		if i == 300 {
			t.Fatal("no no-op was signed")
		}
		w.goOnRefusing(a, 1, func(s chain.Signed) []tx.Answer {
			if len(s.Calls[0].Input) == 0 {
				return refusing(tx.RateLimited, "too many requests") // the no-op reaches no node
			}
			return nil
		})
	}
	w.chain.SetLeftOut(nowhere, false)
	w.hold, w.hears = true, false // nothing more is sent
	w.until(a, "it is done", w.ended(intent.StatusCompleted, id))
	if s := w.intent(id); s.Assignment != 1 {
		t.Errorf("it had %d nonces", s.Assignment)
	}
	w.judge()
}

// Later intents of ann's ordering group are signed. The first, which blocks leave out, fails, and
// the others complete.
func TestLeftOutInARow(t *testing.T) {
	w, a := newLeaving(t)
	row := w.asks(a, w.request(1, by("ann"), inRow, toNowhere), w.request(2, by("ann"), inRow))
	his := w.asks(a, w.request(10, by("bob")))
	w.refused(a, append(his, row[1]), (leftOutMost+2)*w.settings.Stall, taking)
	w.is(row[0], intent.StatusFailed)
	if end := w.intent(row[0]).End; end.Reason != intent.Refused || end.Detail != reasonLeftOut {
		t.Errorf("it failed for %s: %s", end.Reason, end.Detail)
	}
	w.judge()
}

// Without new blocks nothing was left out, and nothing gives way, however long that lasts.
func TestNoBlocksLeaveNothingOut(t *testing.T) {
	w, a := newLeaving(t)
	id := w.asks(a, w.request(1, toNowhere))[0]
	w.goOnRefusing(a, 2, taking)
	for range 3 * leftOutMost {
		w.clock.pass(w.settings.Stall)
		_ = w.turns(a, 2)
	}
	if n := w.ways(id); n != 0 {
		t.Errorf("it gave way %d times", n)
	}
	w.chain.SetLeftOut(nowhere, false)
	w.hears = false
	w.until(a, "it is done", w.ended(intent.StatusCompleted, id))
	w.judge()
}

// Gas costs more than the attempts offer each time that they are in a block's reach: the fee is
// raised, and nothing gives way. After the last raise a no-op follows all the same.
func TestRaisedToTheEnd(t *testing.T) {
	w, a := newLeaving(t)
	id := w.asks(a, w.request(1, by("ann"), toNowhere))[0]
	price, raises := uint64(1000), 0
	for w.ways(id) == 0 {
		if raises = len(w.intent(id).Attempts); raises > lane.BumpsMax {
			t.Fatalf("%d attempts", raises)
		}
		price += price / 4 // more than a raise
		w.costs(price)
		w.goOnRefusing(a, 1, taking)
		w.clock.pass(w.settings.Stall)
		if w.clock.now().Sub(time.Unix(1_800_000_000, 0)) > 200*w.settings.Stall {
			t.Fatalf("nothing gave way after %d attempts", raises)
		}
	}
	if raises != lane.BumpsMax {
		t.Errorf("it gave way after %d attempts", raises)
	}
	his := w.asks(a, w.request(10, by("bob")))
	w.refused(a, his, 2*w.settings.Stall, taking)
	w.judge()
}

// Nodes take ann's intent at the operator's ceiling, and no block includes it: a no-op follows.
func TestLeftOutAtTheCeiling(t *testing.T) {
	w, a := newLeaving(t)
	w.policy.Ceiling = chain.PriceOf(1200)
	hers := w.asks(a, w.request(1, by("ann"), toNowhere))
	his := w.asks(a, w.request(10, by("bob")))
	w.refused(a, his, (leftOutMost+2)*w.settings.Stall, taking)
	made := w.intent(hers[0]).Attempts
	if last, why := made[len(made)-1], w.whyWay(hers[0]); last.Kind != intent.NoOp || why != reasonLeftOut {
		t.Errorf("%+v; it gave way for %q", made, why)
	}
	w.judge()
}
