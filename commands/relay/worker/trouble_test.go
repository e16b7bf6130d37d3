package worker

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// While intents wait for budget, the lane logs it about once a minute, and does not log
// recovery between their claims. It logs recovery when there is budget again. Turn.Troubled
// is set for as long.
func TestTroubleIsToldAgain(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	var text bytes.Buffer
	a.Log = slog.New(slog.NewTextHandler(&text, nil))
	w.limit(budget.Account{Kind: budget.OnChain}, 1, plenty)
	ids := w.ask(w.request(1), w.request(2), w.request(3))
	var last Turn
	a.Relayer.Told = func(turn Turn) { last = turn }
	step := func(seconds int) (troubles, ends int) {
		text.Reset()
		for range seconds {
			began := w.clock.now()
			err := w.turns(a, 1)
			a.report(began, err)
			a.tell(err, began)
			w.clock.pass(time.Second)
		}
		return strings.Count(text.String(), `"lane fails, retrying"`), strings.Count(text.String(), `"lane works again"`)
	}
	if began, ends := step(30); began != 1 || ends != 0 {
		t.Errorf("in half a minute it is told %d times, and %d times that it is over: %s", began, ends, text.String())
	}
	if !strings.Contains(text.String(), "budget-over-limit") {
		t.Errorf("it does not say why: %s", text.String())
	}
	if !last.Troubled {
		t.Error("the last turn is told as one in which all went well")
	}
	if again, ends := step(180); again < 2 || again > 4 || ends != 0 {
		t.Errorf("in three minutes it is told %d times again, and %d times that it is over: %s", again, ends, text.String())
	}
	w.limit(budget.Account{Kind: budget.OnChain}, plenty, plenty)
	if again, ends := step(60); again > 1 || ends != 1 {
		t.Errorf("after that it is told %d times, and %d times that it is over: %s", again, ends, text.String())
	}
	if last.Troubled {
		t.Error("the last turn is told as one with trouble")
	}
	w.until(a, "all are done", w.ended(intent.StatusCompleted, ids...))
	w.judge()
}
