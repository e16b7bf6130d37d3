package main_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// The API reports why an intent has no attempt, and since when: an operator's halt, a budget,
// the gas price, the predecessor in its ordering group, or a full lane. An ended intent waits
// for nothing.
func TestClientsAreToldWhatIntentsWaitFor(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, kinds()[1], store, "--lane-claim=1s", "--lane-budget=1", "--lane-stall=10m")
		w.dearer(t, 1_000_000_000) // above the price that empty blocks would lead to
		s := w.relayer(t)
		check(t, s.Start(w.ctx))
		c, operator := w.client(t, s), w.operator(s)
		began := time.Now().Add(-time.Second).Unix()
		waits := func(r intent.Request, code, detail string, since bool) {
			t.Helper()
			var got shown
			w.becomes(t, r.Key+" waits for "+code, func() bool {
				got = c.must(t, http.StatusOK, http.MethodGet, at(r), nil)
				return got.WaitingFor != nil && got.WaitingFor.Code == code
			})
			if !strings.Contains(got.WaitingFor.Detail, detail) || since != (got.WaitingSince >= began) || !since && got.WaitingSince != 0 {
				t.Errorf("%s waits for %+v since %d", r.Key, got.WaitingFor, got.WaitingSince)
			}
		}
		comesOut := func(r intent.Request) {
			t.Helper()
			w.becomes(t, r.Key+" comes out", func() bool { return w.status(t, c, r) == intent.StatusCompleted })
			if got := c.must(t, http.StatusOK, http.MethodGet, at(r), nil); got.WaitingFor != nil {
				t.Errorf("%s waits for %+v", r.Key, got.WaitingFor)
			}
		}

		w.registered(t, s)
		for n := range keys {
			operator.order(t, http.MethodPost, w.key(n)+"/pause", map[string]any{})
		}
		paused, pooled := w.one(0, "paused"), w.pool("pooled")
		w.create(t, []client{c}, paused, pooled)
		waits(paused, "signer-stopped", wallet.Dev(0).Address().String()+" is paused", true)
		waits(pooled, "signer-stopped", wallet.Dev(1).Address().String()+" is paused; ", true)
		if out := w.asks(t, "intents", "get", paused.ID().String(), "--url="+c.url); !strings.Contains(out, "\nwaits for ") {
			t.Errorf("the command line tells %s", out)
		}
		everything := map[string]any{"scope": map[string]any{"kind": "deployment"}}
		operator.order(t, http.MethodPost, "/safeguards/halt", everything)
		waits(paused, "halted", "as agreed", true)
		operator.order(t, http.MethodPost, "/safeguards/resume", everything)
		for n := range keys {
			operator.order(t, http.MethodPost, w.key(n)+"/resume", map[string]any{})
		}
		comesOut(paused)
		comesOut(pooled)

		budgets, everybody := fmt.Sprintf("/budgets/%d", w.id), map[string]any{"kind": "chain"}
		operator.order(t, http.MethodPut, budgets, map[string]any{"account": everybody, "fee": "100"})
		broke := w.one(0, "broke")
		w.create(t, []client{c}, broke)
		waits(broke, "budget-over-limit", "", false)
		operator.order(t, http.MethodPut, budgets, map[string]any{"account": everybody, "fee": chain.NewAmount(1 << 62).Times(1 << 62)})
		comesOut(broke)

		poor := w.one(0, "poor")
		poor.Gas = intent.Gas{Limit: gasEnough, MaxFee: intent.NewAmount(100_000_000)}
		w.create(t, []client{c}, poor)
		waits(poor, "market-above-ceiling", "ceiling is 100000000", false)
		c.must(t, http.StatusOK, http.MethodPost, at(poor)+"/cancel", map[string]any{"reason": "it is poor"})
		w.canceled[poor.ID()] = true

		w.mining(t, false)
		first, second, third := w.one(0, "first"), w.one(0, "second"), w.one(0, "third")
		second.Order, third.Order = "row", "row"
		w.create(t, []client{c}, first)
		w.becomes(t, "the first is signed for", func() bool { return w.status(t, c, first) == intent.StatusSubmitted })
		w.create(t, []client{c}, second)
		waits(second, "lane-full", "1 nonces in flight", true)
		w.create(t, []client{c}, third)
		waits(third, "behind-another", second.ID().String(), true)
		w.mining(t, true)
		w.done(t, s)
		check(t, s.Stop(w.ctx))
		w.judge(t)
	}, "embedded", "postgres")
}
