package worker

import (
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

// goOnRefusing runs n turns and blocks. Nodes refuse a transaction with these answers, or
// take it if there are none.
func (w *world) goOnRefusing(a *actor, n int, of func(chain.Signed) []tx.Answer) {
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
			answers := of(signed)
			if len(answers) == 0 {
				w.hand(raw)
				answers = []tx.Answer{{Endpoint: "a", Class: tx.Taken}}
			}
			w.sends[signed.Hash] = max(w.sends[signed.Hash], s.Attempt) + 1
			w.deliver(signed.Hash, tx.Report{Attempt: w.sends[signed.Hash], Everyone: true, At: w.now(), Answers: answers})
		}
		w.block()
	}
	w.hold = false
}

// refused runs until intents are done, and returns how long that took.
func (w *world) refused(a *actor, ids []chain.IntentID, most time.Duration, of func(chain.Signed) []tx.Answer) time.Duration {
	w.t.Helper()
	began := w.clock.now()
	for done := func() bool {
		return !slices.ContainsFunc(ids, func(id chain.IntentID) bool { return w.intent(id).Status() != intent.StatusCompleted })
	}; !done(); {
		if w.clock.now().Sub(began) > most {
			w.t.Fatalf("after %s it is %s; the lane has %d open nonces", most, w.intent(ids[0]).Status(), w.state().Open())
		}
		w.goOnRefusing(a, 1, of)
	}
	return w.clock.now().Sub(began)
}

// anns reports whether a transaction makes a call of the request with a number below 10.
func anns(s chain.Signed) bool { return len(s.Calls[0].Input) == 2 && s.Calls[0].Input[1] < 10 }

func refusing(cause tx.Cause, message string) []tx.Answer {
	return []tx.Answer{{Endpoint: "a", Class: tx.Retry, Cause: cause, Message: message}}
}

var (
	overCap  = refusing(tx.FeeCap, "tx fee (1.20 ether) exceeds the configured cap (1.00 ether)")
	unlisted = []tx.Answer{
		{Endpoint: "a", Class: tx.Permanent, Message: "intrinsic gas too low"},
		{Endpoint: "b", Class: tx.Retry, Message: "gas that nobody has words for"},
	}
)

// Ann's intents do not limit how they pay, and no node takes them, for reasons that are not
// on the list of permanent refusals. Bob's intents behind them complete within the stall
// time. Ann's wait longer each time; her intents with estimated gas do not wait.
func TestUntakenHoldsNobody(t *testing.T) {
	for name, answers := range map[string][]tx.Answer{"a node's own fee cap": overCap, "words that nobody knows": unlisted} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.worker()
			refuse := func(s chain.Signed) []tx.Answer {
				if anns(s) {
					return answers
				}
				return nil
			}
			hers := w.ask(w.request(1, by("ann")), w.request(2, by("ann")))
			_ = w.turns(a, 1)
			his := w.ask(w.request(10, by("bob")), w.request(11, by("bob")))
			if took := w.refused(a, his, 2*w.settings.Stall, refuse); took > w.settings.Stall/2 {
				t.Errorf("bob's waited for %s", took)
			}
			if n := w.ways(hers...); n != 2 {
				t.Errorf("ann's gave way %d times, want both once", n)
			}
			more := w.ask(
				w.request(12, by("ann"), func(r *intent.Request) { r.Gas.Limit = 0 }), w.request(13, by("ann")), w.request(14, by("bob")))
			w.goOnRefusing(a, 8, refuse)
			w.is(more[0], intent.StatusCompleted)
			w.is(more[1], intent.StatusWaiting)
			w.is(more[2], intent.StatusCompleted)
			w.goOnRefusing(a, 600, refuse)
			if n := w.ways(hers...); n < 4 || n > 2*5 {
				t.Errorf("in ten minutes they gave way %d times, want each 2 to 5 times", n)
			}
			w.clock.pass(time.Hour)
			w.goOnRefusing(a, 12, func(chain.Signed) []tx.Answer { return nil })
			for _, id := range append(hers, more...) {
				w.is(id, intent.StatusCompleted)
			}
			w.judge()
		})
	}
}

// Ann's intents are in an ordering group, and later ones of it are signed. The first, which
// no node takes, fails, and the group continues in order. Bob's intent waits for the stall
// time once.
func TestUntakenInARow(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	row := w.ask(w.request(1, by("ann"), inRow), w.request(2, by("ann"), inRow), w.request(20, by("ann"), inRow))
	his := w.ask(w.request(10, by("bob")))
	took := w.refused(a, his, 2*w.settings.Stall, func(s chain.Signed) []tx.Answer {
		if anns(s) {
			return unlisted
		}
		return nil
	})
	if took > w.settings.Stall+10*time.Second {
		t.Errorf("bob's waited for %s", took)
	}
	for _, id := range row[:2] {
		w.is(id, intent.StatusFailed)
		if end := w.intent(id).End; end.Reason != intent.Refused || end.Detail != "no node has accepted it: gas that nobody has words for" {
			t.Errorf("it failed for %s: %s", end.Reason, end.Detail)
		}
	}
	w.is(row[2], intent.StatusCompleted)
	w.judge()
}

// Nodes want a higher fee than the policy offers at first: the fee is raised, and nothing
// gives way.
func TestLowFeeIsRaised(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	ids := w.ask(w.request(1))
	w.refused(a, ids, 5*w.settings.Stall, func(s chain.Signed) []tx.Answer {
		if s.MaxFee.Uint64() < 1400 {
			return refusing(tx.Fee, "transaction underpriced")
		}
		return nil
	})
	if n := w.ways(ids...); n != 0 {
		t.Errorf("it gave way %d times", n)
	}
	w.judge()
}

// For a minute nodes take no transaction of any client, and do not blame the transactions:
// nothing gives way. If only one transaction meets that, it gives way in the end.
func TestTroubleOfNodes(t *testing.T) {
	for name, answers := range map[string][]tx.Answer{
		"a rate":     refusing(tx.RateLimited, "too many requests"),
		"no answers": {{Endpoint: "a", Class: tx.Unknown, Cause: tx.Unreachable}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.worker()
			ids := w.ask(w.request(1, by("ann")), w.request(10, by("bob")))
			w.goOnRefusing(a, 60, func(chain.Signed) []tx.Answer { return answers })
			w.refused(a, ids, w.settings.Stall, func(chain.Signed) []tx.Answer { return nil })
			if n := w.ways(ids...); n != 0 {
				t.Errorf("they gave way %d times", n)
			}
			w.ask(w.request(2, by("ann")))
			his := w.ask(w.request(11, by("bob")))
			w.refused(a, his, 6*w.settings.Stall, func(s chain.Signed) []tx.Answer {
				if anns(s) {
					return answers
				}
				return nil
			})
			w.judge()
		})
	}
}

// The signer cannot pay for any intent. No intent is to blame, and nothing gives way until
// the signer has more.
func TestPoorSignerKeepsNonces(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.has(a, 1_000_000)
	ids := w.ask(w.request(1, by("ann")), w.request(10, by("bob")))
	w.goOnRefusing(a, 150, func(chain.Signed) []tx.Answer {
		return refusing(tx.Funds, "insufficient funds for gas * price + value")
	})
	w.has(a, plenty)
	w.refused(a, ids, w.settings.Stall, func(chain.Signed) []tx.Answer { return nil })
	if n := w.ways(ids...); n != 0 {
		t.Errorf("they gave way %d times", n)
	}
	w.judge()
}

// Neither urgency nor a speed-up, before an intent has a nonce or after, nor a no-op costs
// more than the operator's limit for one transaction.
func TestNothingCostsMoreThanTheLimit(t *testing.T) {
	const limit = 1_000_000_000
	w := newWorld(t)
	w.policy.MaxPerTransaction = chain.NewAmount(limit)
	w.settings.NoOpGas = 400_000
	a := w.worker()
	hers := w.ask(w.request(1, by("ann"), func(r *intent.Request) { r.Gas.Limit = 400_000 }), w.request(2, by("ann")))
	for _, id := range hers {
		w.wish(id, intent.SpeedUp{Fee: intent.NewAmount(30_000), At: w.now()})
	}
	w.feed()
	w.hold = true
	must(t, w.turns(a, 2))
	w.wish(hers[0], intent.Cancel{At: w.now()})
	w.wish(hers[1], intent.SpeedUp{Fee: intent.NewAmount(90_000), At: w.now()})
	_ = w.turns(a, 2)
	if n := len(w.accepted()); n < 3 {
		t.Errorf("%d are signed", n)
	}
	for _, s := range w.accepted() {
		signed, err := tempo.Decode(w.bytesOf(s.Accepted.Hash))
		must(t, err)
		if cost := signed.MaxFee.Uint64() * signed.Gas; cost > limit {
			t.Errorf("nonce %d: %d gas at %s cost %d", signed.Nonce, signed.Gas, signed.MaxFee, cost)
		}
	}
	w.hold = false
	w.until(a, "both have ended", func() bool { return w.state().Open() == 0 })
	w.judge()
}

// Gas becomes too expensive for an intent with much gas to stay below the limit for one
// transaction: it gives way as with a ceiling of its own.
func TestMuchGasGivesWay(t *testing.T) {
	w := newWorld(t)
	w.policy.MaxPerTransaction = chain.NewAmount(20_000_000_000)
	a := w.worker()
	w.hold = true
	hers := w.ask(w.request(1, by("ann"), func(r *intent.Request) { r.Gas.Limit = 1 << 24 }))
	must(t, w.turns(a, 2))
	w.costs(2000)
	his := w.ask(w.request(10, by("bob")))
	w.hold = false
	for i := 0; !w.ended(intent.StatusCompleted, his...)(); i++ {
		if i == 30 {
			t.Fatalf("bob's is %s", w.intent(his[0]).Status())
		}
		w.goOnDear(a, 1)
	}
	if n := w.ways(hers...); n != 1 {
		t.Errorf("ann's gave way %d times", n)
	}
	w.costs(500)
	w.clock.pass(w.settings.Stall)
	for range 12 {
		w.goOnDear(a, 1)
	}
	w.is(hers[0], intent.StatusCompleted)
	w.judge()
}
