package worker

import (
	"net/http"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// status is the answer of an endpoint whose proxy refuses a request with an HTTP status.
func status(code int) []tx.Answer {
	return []tx.Answer{{Endpoint: "a", Class: tx.Unknown, Cause: tx.Unreachable, Code: code, Message: "HTTP status"}}
}

// A proxy before the node refuses ann's transactions with an HTTP status for their content. They
// give way within half the stall time, at the first fee, and fail at no time: the node may have
// them. Bob's intent behind them completes, and hers complete once the proxy lets them pass.
func TestContentRefusedByStatusHoldsNobody(t *testing.T) {
	for _, code := range []int{400, 403, 413, 414, 422} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			w := newWorld(t)
			a := w.worker()
			hers := w.ask(w.request(1, by("ann")), w.request(2, by("ann")))
			_ = w.turns(a, 1)
			his := w.ask(w.request(10, by("bob")))
			took := w.refused(a, his, 5*w.settings.Stall, func(s chain.Signed) []tx.Answer {
				if anns(s) {
					return status(code)
				}
				return nil
			})
			if took > w.settings.Stall/2 {
				t.Errorf("bob's waited for %s", took)
			}
			if n := w.ways(hers...); n != 2 {
				t.Errorf("ann's gave way %d times, want both once", n)
			}
			for _, id := range hers {
				if n := len(w.intent(id).Attempts); n != 1+1 {
					t.Errorf("%d attempts, want one and its no-op", n)
				}
			}
			w.clock.pass(time.Hour)
			w.goOnRefusing(a, 20, func(chain.Signed) []tx.Answer { return nil })
			for _, id := range hers {
				w.is(id, intent.StatusCompleted)
			}
			w.judge()
		})
	}
}

// A node's credential has expired, and it answers 403 to the transactions of all clients. No
// transaction is to blame, and nothing gives way.
func TestStatusForAllBlamesNobody(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	ids := w.ask(w.request(1, by("ann")), w.request(10, by("bob")))
	w.goOnRefusing(a, 60, func(chain.Signed) []tx.Answer { return status(http.StatusForbidden) })
	w.refused(a, ids, w.settings.Stall, func(chain.Signed) []tx.Answer { return nil })
	if n := w.ways(ids...); n != 0 {
		t.Errorf("they gave way %d times", n)
	}
	w.judge()
}
