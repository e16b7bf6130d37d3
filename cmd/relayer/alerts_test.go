package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/infra/keys/keystest"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// shownAlerts are the alerts that fired, in all tests of alerts together.
var shownAlerts struct {
	sync.Mutex
	names []string
	lives int // number of relayers, one per test
}

// shows makes an alert fire, and records that it did.
func (w *world) shows(t *testing.T, l *timeline, name string) {
	t.Helper()
	l.fires(t, w, name)
	shownAlerts.Lock()
	defer shownAlerts.Unlock()
	shownAlerts.names = append(shownAlerts.names, name)
}

// Every alert of the relay fires when its condition occurs on a running relayer and chain, and
// not before. It ends when operators have fixed the cause.
func TestAlerts(t *testing.T) {
	t.Parallel()
	t.Run("fire", func(t *testing.T) {
		t.Run("operators and chain", alertsOfOneRelayer)
		t.Run("webhooks", alertsOfWebhooks)
		t.Run("signers", alertsOfSigners)
		t.Run("leases", alertsOfLeases)
	})
	shownAlerts.Lock()
	defer shownAlerts.Unlock()
	if t.Failed() || shownAlerts.lives < 4 {
		return // not all tests ran
	}
	for _, a := range newTimeline(t).rules {
		if !slices.Contains(shownAlerts.names, a.Alert) {
			t.Errorf("%s never fired", a.Alert)
		}
	}
}

// started starts a relayer, and a timeline of its metrics.
func (w *world) started(t *testing.T) (*rig.Service, *timeline) {
	t.Helper()
	shownAlerts.Lock()
	shownAlerts.lives++
	shownAlerts.Unlock()
	s, l := w.relayer(t), newTimeline(t)
	check(t, s.Start(w.ctx))
	l.targets["a"] = s
	l.until(t, w, "it tells how far it has read", func() bool {
		return strings.Contains(w.figures(t, s).text, `watchtower_reader_lag_events{reader="intents"}`)
	})
	return s, l
}

// chain calls a method of the node.
func (w *world) chain(t *testing.T, method string, params ...any) {
	t.Helper()
	var answer struct{ Error *struct{ Message string } }
	body := map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
	if params == nil {
		body["params"] = []any{}
	}
	if _, err := (client{w.ctx, w.node.URL()}).do(http.MethodPost, "", body, &answer); err != nil || answer.Error != nil {
		t.Fatalf("%s: %+v, %v", method, answer.Error, err)
	}
}

func alertsOfOneRelayer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[1], inFiles, "--lane-stall=1s", "--lane-look=1s")
	s, l := w.started(t)
	c, operator := w.client(t, s), w.operator(s)
	w.create(t, []client{c}, w.one(0, "calm-0"), w.one(1, "calm-1"))
	w.done(t, s)
	l.until(t, w, "balances are seen", func() bool {
		_, seen := w.figures(t, s).sum("signer_balance")
		return seen
	})
	l.calm(t, w)

	everything := map[string]any{"kind": "deployment"}
	operator.order(t, http.MethodPost, "/safeguards/halt", map[string]any{"scope": everything})
	w.shows(t, l, "RelayHalted")
	operator.order(t, http.MethodPost, "/safeguards/resume", map[string]any{"scope": everything})
	l.ends(t, w, "RelayHalted")

	operator.order(t, http.MethodPut, w.key(1)+"/threshold", map[string]any{"threshold": w.signer(t, s, 1).Balance.Times(2)})
	w.shows(t, l, "RelaySignerLow")
	operator.order(t, http.MethodPut, w.key(1)+"/threshold", map[string]any{"threshold": chain.NewAmount(1)})
	l.ends(t, w, "RelaySignerLow")

	// A limit that the next attempt nearly uses up: the gas of a no-op at any fee that it has.
	budgets := fmt.Sprintf("/budgets/%d", w.id)
	account := map[string]any{"kind": "chain"}
	operator.order(t, http.MethodPut, budgets, map[string]any{"account": account, "fee": chain.NewAmount(1 << 63).Times(1 << 62)})
	w.create(t, []client{c}, w.one(0, "spends"))
	w.done(t, s)
	used := 0.0
	l.until(t, w, "something is used", func() bool {
		used, _ = w.figures(t, s).sum("budget_used", `money="fee"`)
		return used > 0
	})
	operator.order(t, http.MethodPut, budgets, map[string]any{"account": account, "fee": chain.NewAmount(uint64(used * 1.05))})
	w.shows(t, l, "RelayBudgetNearlyUsed")
	operator.order(t, http.MethodPut, budgets, map[string]any{"account": account})
	l.ends(t, w, "RelayBudgetNearlyUsed")

	w.dear(t, s, l)
	w.reverted(t, s, l)
	w.used(t, s, l)
	w.crowded(t, s, l)
	check(t, s.Stop(w.ctx))
}

// dear makes gas cost more than allowed, for a while.
func (w *world) dear(t *testing.T, s *rig.Service, l *timeline) {
	t.Helper()
	w.chain(t, "anvil_setNextBlockBaseFeePerGas", "0xe8d4a51000") // 1,000 gwei
	w.chain(t, "evm_mine")
	w.create(t, []client{w.client(t, s)}, w.one(0, "dear"))
	w.shows(t, l, "RelayFeeCeiling")
	w.chain(t, "anvil_setNextBlockBaseFeePerGas", "0x3b9aca00")
	w.done(t, s)
	l.ends(t, w, "RelayFeeCeiling")
}

// reverted submits an intent that reverts.
func (w *world) reverted(t *testing.T, s *rig.Service, l *timeline) {
	t.Helper()
	var bad []intent.Request
	for n := range 3 {
		r := w.one(0, fmt.Sprint("reverts-", n))
		r.Calls, r.Gas.Limit = []intent.Call{{Data: intent.Data{0xfe}}}, 100_000
		bad = append(bad, r)
	}
	w.create(t, []client{w.client(t, s)}, bad...)
	w.shows(t, l, "RelayIntentsFail")
}

// used makes another sender use an intent's nonce, on a chain without blocks.
func (w *world) used(t *testing.T, s *rig.Service, l *timeline) {
	t.Helper()
	alice := wallet.Dev(0).Address()
	w.chain(t, "evm_setIntervalMining", 0)
	next, _ := w.figures(t, s).sum("lane_next_nonce", alice.String())
	r := w.one(0, "rivaled")
	w.create(t, []client{w.client(t, s)}, r)
	w.stalls(t, s, l, alice, 12) // each is answered by a bump
	w.shows(t, l, "RelayManyBumps")
	w.shows(t, l, "RelayLaneStalled")
	w.chain(t, "eth_sendTransaction", map[string]any{
		"from": alice, "to": alice, "value": "0x5", "gas": "0x5208", "nonce": fmt.Sprintf("%#x", uint64(next)),
		"maxFeePerGas": "0x5d21dba000", "maxPriorityFeePerGas": "0x5d21dba000", // 400 gwei
	})
	w.chain(t, "evm_mine")
	w.shows(t, l, "RelayNonceDrift")
	w.chain(t, "evm_setIntervalMining", 1)
	w.shows(t, l, "RelayForeignNonces")
	w.done(t, s)
	l.ends(t, w, "RelayNonceDrift")
	l.ends(t, w, "RelayLaneStalled")
}

// stalls waits until the signer's nonce has stalled n times. On the timeline that happens
// between two samples: the stall's quarter of an hour may take one second.
func (w *world) stalls(t *testing.T, s *rig.Service, l *timeline, signer chain.Address, n float64) {
	t.Helper()
	count := func() float64 {
		sum, _ := w.figures(t, s).sum("lane_stalls_total", signer.String())
		return sum
	}
	began := count()
	l.look(t, w, nil)
	for count() < began+n {
		select {
		case <-w.ctx.Done():
			t.Fatalf("nonces stalled %v times, want %v", count()-began, n)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// crowded makes many intents wait for a paused signer.
func (w *world) crowded(t *testing.T, s *rig.Service, l *timeline) {
	t.Helper()
	w.operator(s).order(t, http.MethodPost, w.key(2)+"/pause", map[string]any{})
	var batch []any
	for n := range 501 {
		batch = append(batch, wish(w.one(2, fmt.Sprint("crowd-", n))))
	}
	var answer struct{ Results []struct{ OK bool } }
	status, err := w.client(t, s).do(http.MethodPost, "/v1/intents", batch, &answer)
	if err != nil || status != http.StatusAccepted || len(answer.Results) != len(batch) {
		t.Fatalf("a batch of %d is answered with %d, %v", len(batch), status, err)
	}
	w.shows(t, l, "RelayIntentsWait")
}

// hooked submits an intent with a webhook URL.
func (w *world) hooked(t *testing.T, c client, key, url string) {
	t.Helper()
	r := w.one(0, key)
	w.asked[r.ID()] = r
	var got shown
	body := map[string]any{"chainId": w.id, "key": key, "signer": r.Signer, "calls": r.Calls, "webhooks": []string{url}}
	if status, err := c.do(http.MethodPost, "/v1/intents", body, &got); err != nil || status != http.StatusAccepted {
		t.Fatalf("%d %+v, %v", status, got, err)
	}
}

func alertsOfWebhooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[1], inFiles, append(webhookFlags(t), "--webhooks-slots=1", "--webhooks-timeout=20s")...)
	stop := make(chan struct{})
	defer close(stop)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select { // slow, but the delivery succeeds
		case <-time.After(10 * time.Second):
		case <-r.Context().Done():
		case <-stop:
		}
	}))
	t.Cleanup(slow.Close)
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }))
	t.Cleanup(gone.Close)
	s, l := w.started(t)
	c := w.client(t, s)
	l.until(t, w, "the queue is looked at", func() bool {
		_, seen := w.figures(t, s).sum("notices", `stage="dead"`)
		return seen
	})
	l.calm(t, w)
	w.hooked(t, c, "gone", gone.URL)
	w.shows(t, l, "RelayWebhookDisabled")
	w.shows(t, l, "RelayDeadLetters")
	for n := range 8 {
		w.hooked(t, c, fmt.Sprint("slow-", n), slow.URL)
	}
	w.shows(t, l, "RelayWebhooksLag")
	s.Kill()
}

func alertsOfSigners(t *testing.T) {
	t.Parallel()
	key := &keystest.Key{Kind: chain.Secp256k1, Secret: []byte(strings.Repeat("k", 32))}
	remote := keystest.Serve(t, key)
	w := newWorld(t, kinds()[1], inFiles, "--signers-allowed="+wallet.Dev(0).Address().String()+","+wallet.Dev(1).Address().String()+","+
		wallet.Dev(2).Address().String()+","+key.Address().String(), "--signers-remote-url="+remote.URL, "--signers-failures=6") // enough failures to keep the lane in trouble
	w.chain(t, "anvil_setBalance", key.Address(), "0x56bc75e2d63100000")
	s, l := w.started(t)
	c := w.client(t, s)
	ask := func(name string) {
		r, a := w.one(0, name), key.Address()
		r.Signer = &a
		w.create(t, []client{c}, r)
	}
	ask("well")
	w.done(t, s)
	l.calm(t, w)
	remote.Misbehave(keystest.Trouble{Status: http.StatusInternalServerError})
	ask("waits")
	w.shows(t, l, "RelayLaneInTrouble")
	w.shows(t, l, "RelaySignerFails")
	w.shows(t, l, "RelaySignerDisabled")
	remote.Misbehave(keystest.Trouble{})
	w.operator(s).order(t, http.MethodPost, fmt.Sprintf("/signers/%d/%s/resume", w.id, key.Address()), map[string]any{})
	w.done(t, s)
	l.ends(t, w, "RelaySignerDisabled")
	l.ends(t, w, "RelayLaneInTrouble")
	check(t, s.Stop(w.ctx))
	w.judge(t)
}
