package main_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// The doctor explains why intents wait: a budget is not enough for them, though not used up. It
// reserves nothing, and when the budget is enough the intents are carried out without findings.
func TestDoctorTellsWhyIntentsWait(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, kinds()[1], store, "--lane-claim=1s")
		s := w.relayer(t)
		check(t, s.Start(w.ctx))
		c, operator := w.client(t, s), w.operator(s)
		budgets, everybody := fmt.Sprintf("/budgets/%d", w.id), map[string]any{"kind": "chain"}
		operator.order(t, http.MethodPut, budgets, map[string]any{"account": everybody, "fee": "100"})
		asked := []intent.Request{w.one(0, "first"), w.one(0, "second"), w.one(0, "third")}
		w.create(t, []client{c}, asked...)
		var d diagnosis
		why := func(what string) bool {
			return slices.ContainsFunc(d.Findings, func(f struct{ Code, Says, Next, Do string }) bool {
				return f.Code == "waits" && strings.Contains(f.Says, what)
			})
		}
		w.becomes(t, "it is told why three wait", func() bool {
			d = w.doctor(t, 0)
			return why("3 of the 3 oldest waiting intents get no nonce of this lane: budget-over-limit") && len(d.Findings) == 2
		})
		oldest := func(r intent.Request) bool { return why(r.ID().String()) } // any of them, as they are submitted at once
		if !d.has("budget-spent") || !slices.ContainsFunc(asked, oldest) {
			t.Errorf("it is told %+v", d.Findings)
		}
		w.says(t, 1, "relayer budgets set "+w.id.String(), nil, "doctor", wallet.Dev(0).Address().String())
		operator.order(t, http.MethodPut, budgets, map[string]any{"account": everybody, "fee": chain.NewAmount(1 << 62).Times(1 << 62)})
		w.done(t, s)
		w.becomes(t, "all is well", func() bool { return w.doctor(t, 0).Well })
		check(t, s.Stop(w.ctx))
		if out := w.says(t, 1, "[not-held]", nil, "doctor", wallet.Dev(0).Address().String()); !strings.Contains(out, "has no valid lease") {
			t.Errorf("it says %s", out)
		}
		w.judge(t)
	}, "embedded", "postgres")
}
