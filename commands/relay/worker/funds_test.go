package worker

import (
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

func (w *world) has(a *actor, balance uint64) {
	w.t.Helper()
	must(w.t, a.Guard.(keeper).Seen(w.t.Context(), moderato, w.lane.Sender, chain.NewAmount(balance)))
}

// goOnPoor runs n turns and blocks, and ignores errors about the signer's balance.
func (w *world) goOnPoor(a *actor, n int) {
	w.t.Helper()
	for range n {
		if err := w.turns(a, 1); err != nil && !strings.Contains(err.Error(), "the signer has") {
			w.t.Fatal(err)
		}
		w.block()
	}
}

// An intent that uses more gas than the signer can pay for waits without a nonce, and
// others complete. With more money it completes too.
func TestGasLimitHoldsNobody(t *testing.T) {
	for name, change := range map[string]func(*intent.Request){
		"in a row":    func(r *intent.Request) { r.Order = "payroll" },
		"in a pool":   func(r *intent.Request) {},
		"by a signer": func(r *intent.Request) { r.From = intent.From{Signer: new(chain.Address)} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.worker()
			w.has(a, 1_000_000_000)
			dear := w.ask(w.request(1, by("ann"), change, func(r *intent.Request) {
				if r.Gas.Limit = 16_000_000; r.Signer != nil {
					*r.Signer = w.lane.Sender
				}
			}))
			w.goOnPoor(a, 3)
			ids := w.ask(w.request(2, by("bob")))
			w.goOnPoor(a, 8)
			w.is(ids[0], intent.StatusCompleted)
			w.is(dear[0], intent.StatusWaiting)
			if s := w.intent(dear[0]); s.Assignment != 0 {
				t.Errorf("it has had a nonce: %+v", s.Place)
			}
			if k := w.key(); k.Status() != signer.StatusServing {
				t.Errorf("the signer is %s below %s", k.Status(), k.Threshold)
			}
			w.has(a, 20_000_000_000)
			w.clock.pass(2 * w.settings.Claim)
			w.until(a, "it is done", w.ended(intent.StatusCompleted, dear...))
			w.judge()
		})
	}
}

// An intent with much gas got its nonce while the balance was sufficient. Then the balance
// falls: that does not stop the signer, which can still pay for ordinary intents.
func TestGasLimitTeachesNoThreshold(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.hold = true
	w.has(a, 20_000_000_000)
	ids := w.ask(w.request(1, func(r *intent.Request) { r.Gas.Limit = 16_000_000 }))
	must(t, w.turns(a, 1))
	w.has(a, 1_000_000_000)
	w.deliver(w.attempted()[0], tx.Report{Attempt: 1, Everyone: true, At: w.now(), Answers: []tx.Answer{
		{Endpoint: "a", Class: tx.Retry, Cause: tx.Funds, Message: "insufficient funds for gas * price + value"},
	}})
	must(t, w.turns(a, 1))
	if k := w.key(); k.Status() != signer.StatusServing {
		t.Errorf("it is %s below %s", k.Status(), k.Threshold)
	}
	w.has(a, 1000) // not enough for any intent
	w.deliver(w.attempted()[0], tx.Report{Attempt: 2, Everyone: true, At: w.now(), Answers: []tx.Answer{
		{Endpoint: "a", Class: tx.Retry, Cause: tx.Funds, Message: "insufficient funds for gas * price + value"},
	}})
	must(t, w.turns(a, 1))
	if k := w.key(); k.Status() != signer.StatusLow || k.Threshold != chain.NewAmount(ordinaryGas*1000) {
		t.Errorf("it is %s below %s", k.Status(), k.Threshold)
	}
	w.has(a, plenty)
	w.hold = false
	w.until(a, "it is done", w.ended(intent.StatusCompleted, ids...))
	w.judge()
}

// If intents together move more value than the balance, the later ones wait without a
// nonce.
func TestValuesTogetherHoldNobody(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.hold = true
	w.has(a, 1_000_000_000)
	moving := func(r *intent.Request) { r.Calls[0].Value = chain.NewAmount(600_000_000) }
	w.ask(w.request(1, by("ann"), moving), w.request(2, by("ann"), moving), w.request(3, by("bob")))
	_ = w.turns(a, 1)
	if n := len(w.attempted()); n != 2 {
		t.Errorf("%d were signed for, want ann's first and bob's", n)
	}
}

// A signer that cannot pay for anything is marked low although no intent got a nonce. It
// serves again by itself once it has more.
func TestTooPoorForAnything(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.has(a, 5)
	ids := w.ask(w.request(1, func(r *intent.Request) { r.Calls[0].Value = chain.NewAmount(1) }))
	w.goOnPoor(a, 2)
	if k := w.key(); k.Status() != signer.StatusLow {
		t.Errorf("it is %s below %s", k.Status(), k.Threshold)
	}
	if n := len(w.attempted()); n != 0 {
		t.Errorf("%d were signed for", n)
	}
	w.has(a, plenty)
	w.clock.pass(2 * w.settings.Claim)
	w.until(a, "it is done", w.ended(intent.StatusCompleted, ids...))
	w.judge()
}
