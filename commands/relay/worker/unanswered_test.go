package worker

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// silence is the result of a broadcast to a node that does not answer.
func silence(node string) []tx.Answer {
	return []tx.Answer{{Endpoint: node, Class: tx.Unknown, Cause: tx.Unreachable, Message: "EOF"}}
}

// A proxy before the node closes the connection on ann's transactions, and the node takes bob's. Ann's
// give way together within half the stall time, at the first fee; bob's behind them completes. Hers
// complete once the proxy lets them pass.
func TestUnansweredHoldsNobody(t *testing.T) {
	for _, hears := range []bool{true, false} {
		w := newWorld(t)
		w.hears = hears
		a := w.worker()
		hers := w.ask(w.request(1, by("ann")), w.request(2, by("ann")), w.request(3, by("ann")))
		_ = w.turns(a, 1)
		his := w.ask(w.request(10, by("bob")), w.request(11, by("bob")))
		a.box.call()
		took := w.refused(a, his, 10*w.settings.Stall, func(s chain.Signed) []tx.Answer {
			if anns(s) {
				return silence("a")
			}
			return nil
		})
		if took > w.settings.Stall/2 {
			t.Errorf("bob's waited for %s", took)
		}
		for _, id := range hers {
			if n, ways := len(w.intent(id).Attempts), w.ways(id); n != 2 || ways != 1 {
				t.Errorf("%d attempts, and it gave way %d times", n, ways)
			}
		}
		w.hears = false
		w.clock.pass(time.Hour)
		w.goOnRefusing(a, 20, func(chain.Signed) []tx.Answer { return nil })
		for _, id := range hers {
			w.is(id, intent.StatusCompleted)
		}
		w.judge()
	}
}

// No node answers a broadcast of ann's, and bob's intent behind hers was taken by another node, or
// before the outage began. No intent is to blame, and nothing gives way within two stall times.
func TestOutageOfOneNodeBlamesNobody(t *testing.T) {
	for name, of := range map[string]struct{ bobs, second []tx.Answer }{
		"another node":      {[]tx.Answer{{Endpoint: "b", Class: tx.Taken}}, []tx.Answer{{Endpoint: "b", Class: tx.Taken}}},
		"before the outage": {[]tx.Answer{{Endpoint: "a", Class: tx.Taken}}, silence("a")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.worker()
			ids := w.ask(w.request(1, by("ann")), w.request(10, by("bob")))
			for n := range 50 {
				w.goOnRefusing(a, 1, func(s chain.Signed) []tx.Answer {
					switch {
					case anns(s) && n > 0:
						return silence("a")
					case anns(s):
						return refusing(tx.RateLimited, "too many requests")
					case n == 0:
						return of.bobs
					}
					return of.second
				})
			}
			if n := w.ways(ids...); n != 0 {
				t.Errorf("they gave way %d times", n)
			}
			w.refused(a, ids, w.settings.Stall, func(chain.Signed) []tx.Answer { return nil })
			w.judge()
		})
	}
}

// Nodes limit the rate of ann's transactions alone. When the first gives way, the others do so in the
// same turn, and bob's behind them waits no longer than for one.
func TestUntakenGiveWayTogether(t *testing.T) {
	w := newWorld(t)
	w.hears = true
	a := w.worker()
	hers := w.ask(w.request(1, by("ann")), w.request(2, by("ann")), w.request(3, by("ann")))
	_ = w.turns(a, 1)
	his := w.ask(w.request(10, by("bob")))
	a.box.call()
	took := w.refused(a, his, 20*w.settings.Stall, func(s chain.Signed) []tx.Answer {
		if anns(s) {
			return refusing(tx.RateLimited, "too many requests")
		}
		return nil
	})
	if took > (untakenMost+1)*w.settings.Stall {
		t.Errorf("bob's waited for %s", took)
	}
	if n := w.ways(hers...); n != len(hers) {
		t.Errorf("ann's gave way %d times, want each once", n)
	}
	w.judge()
}

// An intent of ann's gives way, and nodes have taken another one of hers: that one keeps its nonce.
func TestTakenStaysWhenOthersGiveWay(t *testing.T) {
	w := newWorld(t)
	w.hears = true
	a := w.worker()
	hers := w.ask(w.request(1, by("ann")), w.request(20, by("ann")))
	_ = w.turns(a, 1)
	his := w.ask(w.request(10, by("bob")))
	a.box.call()
	w.refused(a, his, w.settings.Stall, func(s chain.Signed) []tx.Answer {
		if anns(s) {
			return silence("a")
		}
		return nil
	})
	if first, second := w.ways(hers[0]), w.ways(hers[1]); first != 1 || second != 0 {
		t.Errorf("they gave way %d and %d times", first, second)
	}
	w.is(hers[1], intent.StatusCompleted)
	w.judge()
}
