package main_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/app"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// limit sets budgets for everything, above the amounts in use, while no relayer runs.
func (w *world) limit(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(w.ctx)
	log := slog.New(slog.DiscardHandler)
	storage, err := delivery.OpenStorage(ctx, w.settings.Delivery, delivery.StorageOptions{Log: log})
	check(t, err)
	plenty := chain.NewAmount(1 << 63).Times(1 << 62)
	_, err = app.Guard(w.settings, storage.Log, nil, nil, time.Now, rand.Reader, log).Limit(ctx, w.id, budget.SetLimit{
		Account: budget.Account{Kind: budget.EachClient}, Limit: budget.Limit{Fee: &plenty, Value: &plenty}, Actor: "ada", Reason: "as agreed", At: time.Now(),
	}, eventlog.Meta{Actor: "ada"})
	check(t, errors.Join(err, storage.Close(ctx)))
}

// operator is a client of a relayer's internal listener.
func (w *world) operator(s *rig.Service) client { return client{w.ctx, s.Metrics} }

// order sends an operator's change.
func (c client) order(t *testing.T, method, path string, body map[string]any) {
	t.Helper()
	body["reason"] = "as agreed"
	var answer map[string]any
	if status, err := c.do(method, "/admin"+path, body, &answer); err != nil || status != http.StatusOK {
		t.Fatalf("%s answers %d %v, %v", path, status, answer, err)
	}
}

// signerShown is a signer in the operators' API.
type signerShown struct {
	Status  signer.Status
	Balance *chain.Amount
}

// The operators' changes take effect and survive a kill. A paused signer signs nothing while
// others go on. Halted intents are not accepted. Intents that exceed a budget are refused. A
// signer with low balance, or a draining signer, accepts nothing.
func TestOperators(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, k, inFiles)
			s := w.relayer(t)
			check(t, s.Start(w.ctx))
			w.heeds(t, s)
			s.Kill()
			s = w.relayer(t)
			check(t, s.Start(w.ctx))
			w.goesOn(t, s)
			w.done(t, s)
			check(t, s.Stop(w.ctx))
			w.judge(t)
		})
	}
}

// key is the API path of a signer.
func (w *world) key(n int) string {
	return fmt.Sprintf("/signers/%d/%s", w.id, wallet.Dev(n).Address())
}

func (w *world) signer(t *testing.T, s *rig.Service, n int) (shown signerShown) {
	t.Helper()
	if status, err := w.operator(s).do(http.MethodGet, "/admin"+w.key(n), nil, &shown); err != nil || status != http.StatusOK {
		t.Fatalf("a signer is answered with %d, %v", status, err)
	}
	return shown
}

func (w *world) status(t *testing.T, c client, r intent.Request) intent.Status {
	t.Helper()
	return c.must(t, http.StatusOK, http.MethodGet, at(r), nil).Status
}

// registered waits until operators see all signers and their balances.
func (w *world) registered(t *testing.T, s *rig.Service) {
	t.Helper()
	for n := range keys {
		w.becomes(t, "it is registered, and its balance is seen", func() bool {
			var shown signerShown
			status, err := w.operator(s).do(http.MethodGet, "/admin"+w.key(n), nil, &shown)
			return err == nil && status == http.StatusOK && shown.Balance != nil
		})
	}
}

// heeds pauses one signer, makes another low, and lets a third drain.
func (w *world) heeds(t *testing.T, s *rig.Service) {
	t.Helper()
	c, operator := w.client(t, s), w.operator(s)
	w.registered(t, s)
	operator.order(t, http.MethodPost, w.key(0)+"/pause", map[string]any{})
	operator.order(t, http.MethodPut, w.key(1)+"/threshold", map[string]any{"threshold": w.signer(t, s, 1).Balance.Times(2)})
	w.becomes(t, "the second is low", func() bool { return w.signer(t, s, 1).Status == signer.StatusLow })
	paused, low, good := w.one(0, "paused"), w.one(1, "low"), w.one(2, "good")
	w.create(t, []client{c}, paused, low, good)
	w.becomes(t, "the third serves", func() bool { return w.status(t, c, good) == intent.StatusCompleted })
	for _, r := range []intent.Request{paused, low} {
		if got := w.status(t, c, r); got != intent.StatusWaiting {
			t.Errorf("%s is %s", r.Key, got)
		}
	}
	operator.order(t, http.MethodPost, w.key(2)+"/drain", map[string]any{})
	w.becomes(t, "the third is drained", func() bool { return w.signer(t, s, 2).Status == signer.StatusDrained })

	refused := func(what string, want int, code string) {
		t.Helper()
		var p struct{ Code string }
		if status, err := c.do(http.MethodPost, "/v1/intents", wish(w.one(0, what)), &p); err != nil || status != want || p.Code != code {
			t.Errorf("%s: %d %s, %v", what, status, p.Code, err)
		}
	}
	everything := map[string]any{"kind": "deployment"}
	operator.order(t, http.MethodPost, "/safeguards/halt", map[string]any{"scope": everything})
	refused("halted", http.StatusServiceUnavailable, "halted")
	operator.order(t, http.MethodPost, "/safeguards/resume", map[string]any{"scope": everything})
	here := map[string]any{"kind": "chain", "chain": w.id}
	operator.order(t, http.MethodPut, "/safeguards/targets", map[string]any{"scope": here, "targets": []any{map[string]any{"to": wallet.Dev(5).Address()}}})
	refused("not-allowed", http.StatusForbidden, "target-not-allowed")
	operator.order(t, http.MethodPut, "/safeguards/targets", map[string]any{"scope": here, "targets": []any{}})
	budgets := fmt.Sprintf("/budgets/%d", w.id)
	each := map[string]any{"kind": "each-client"}
	operator.order(t, http.MethodPut, budgets, map[string]any{"account": each, "fee": "0"})
	refused("no-budget", http.StatusUnprocessableEntity, "budget-over-limit")
	operator.order(t, http.MethodPut, budgets, map[string]any{"account": each, "fee": chain.NewAmount(1 << 63).Times(1 << 62)})
}

// goesOn checks that all is as before, and resumes it.
func (w *world) goesOn(t *testing.T, s *rig.Service) {
	t.Helper()
	operator := w.operator(s)
	for n, want := range []signer.Status{signer.StatusPaused, signer.StatusLow, signer.StatusDrained} {
		if got := w.signer(t, s, n).Status; got != want {
			t.Errorf("signer %d is %s, not %s", n, got, want)
		}
	}
	operator.order(t, http.MethodPost, w.key(0)+"/resume", map[string]any{})
	operator.order(t, http.MethodPost, w.key(2)+"/resume", map[string]any{})
	operator.order(t, http.MethodPut, w.key(1)+"/threshold", map[string]any{"threshold": "1"})
	w.becomes(t, "the second serves", func() bool { return w.signer(t, s, 1).Status == signer.StatusServing })
	w.create(t, []client{w.client(t, s)}, w.pool("after"))
}

// Two relayers on one database get a batch each at once. Together they accept the rate's amount,
// not each of them.
func TestRateOfAllReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[1], inPostgres)
	first := w.relayer(t)
	check(t, first.Start(w.ctx))
	const burst = 20
	scope, rate := map[string]any{"kind": "each-client"}, map[string]any{"perSecond": 1, "burst": burst}
	w.operator(first).order(t, http.MethodPut, "/safeguards/rate", map[string]any{"scope": scope, "rate": rate})
	second := w.relayer(t)
	check(t, second.Start(w.ctx))

	var asking sync.WaitGroup
	var taken atomic.Int64
	began := time.Now()
	for n, c := range []client{w.client(t, first), w.client(t, second)} {
		var batch []any
		for i := range 2 * burst {
			batch = append(batch, wish(w.one(0, fmt.Sprintf("rated-%d-%d", n, i))))
		}
		asking.Go(func() {
			var answer struct{ Results []struct{ OK bool } }
			if _, err := c.do(http.MethodPost, "/v1/intents", batch, &answer); err != nil || len(answer.Results) != len(batch) {
				t.Errorf("%d answers, %v", len(answer.Results), err)
			}
			for _, r := range answer.Results {
				if r.OK {
					taken.Add(1)
				}
			}
		})
	}
	asking.Wait()
	most := burst + int64(time.Since(began)/time.Second) + 1 // tokens added to the bucket meanwhile
	if n := taken.Load(); n < burst || n > most {
		t.Errorf("%d are taken on, not %d to %d", n, burst, most)
	}
	check(t, first.Stop(w.ctx))
	check(t, second.Stop(w.ctx))
}
