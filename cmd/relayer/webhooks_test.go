package main_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
	"github.com/tempo-watchtower/watchtower/infra/webhook"
	"github.com/tempo-watchtower/watchtower/proof/promises/intents"
)

// hush is in the URLs of webhooks, and must appear nowhere else.
const hush = "hush-hush"

// hook is a receiver of webhooks.
type hook struct {
	t    *testing.T
	url  string
	mu   sync.Mutex
	came map[string]intent.Notice
	odd  int // number of repeated deliveries
}

func newHook(t *testing.T) *hook {
	h := &hook{t: t, came: map[string]intent.Notice{}}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	h.url = s.URL + "/" + hush + "?token=" + hush
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the relayer was killed
	}
	var n intent.Notice
	if err := json.Unmarshal(body, &n); err != nil || n.ID() != r.Header.Get(webhook.HeaderID) || r.RequestURI != "/"+hush+"?token="+hush {
		h.t.Errorf("%s %s %s: %v", r.RequestURI, r.Header.Get(webhook.HeaderID), body, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, again := h.came[n.ID()]; again {
		h.odd++
	}
	h.came[n.ID()] = n
}

func (h *hook) has(id chain.IntentID, seq uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.came[intent.Notice{Intent: id, Sequence: seq}.ID()]
	return ok
}

// lists returns an intent's confirmations received before its latest fork, and since.
func (h *hook) lists(id chain.IntentID) (before, since []chain.Block) {
	h.mu.Lock()
	defer h.mu.Unlock()
	forked := false
	for seq := uint64(1); ; seq++ {
		n, came := h.came[intent.Notice{Intent: id, Sequence: seq}.ID()]
		if !came {
			return before, since
		}
		said, ok := n.Said.(intent.TxConfirmed)
		switch {
		case !ok:
		case said.NewFork:
			forked, since = true, said.Confirmations
		case forked:
			since = append(since, said.Confirmations...)
		default:
			before = append(before, said.Confirmations...)
		}
	}
}

// told waits until a hook has received all events of intents in the log, and judges the
// deliveries.
func (w *world) told(t *testing.T, h *hook, of func(chain.IntentID) bool) {
	t.Helper()
	judge, consumer, last := intents.New(), &intents.Consumer{Name: h.url}, map[chain.IntentID]uint64{}
	for _, r := range w.events(t) {
		if strings.Contains(string(r.Data), hush) {
			t.Errorf("%s tells a webhook's secret: %s", r.Stream, r.Data)
		}
		judge.Event(r)
		if id, err := intent.ParseStream(r.Stream); err == nil && of(id) {
			e, err := intent.Codec().Decode(r.Name, r.Data)
			check(t, err)
			last[id] = max(last[id], intent.SequenceOf(e))
		}
	}
	for id, seq := range last {
		for n := uint64(1); n <= seq; n++ {
			for !h.has(id, n) {
				if err := pause.For(w.ctx, 10*time.Millisecond); err != nil {
					t.Fatalf("%s was never told %s, %d of %d", h.url, id, n, seq)
				}
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.came {
		if of(n.Intent) && n.Sequence > last[n.Intent] {
			continue // recorded since the log was read
		}
		for _, v := range consumer.Shown(n) {
			t.Error(v)
		}
	}
	for _, v := range consumer.Finish(judge, of) {
		t.Error(v)
	}
	t.Logf("%d notices came, %d of them again", len(h.came), h.odd)
}

func webhookFlags(t *testing.T) []string {
	t.Helper()
	secret, err := webhook.NewSecret(rand.Reader)
	check(t, err)
	file := filepath.Join(t.TempDir(), "webhook.secrets")
	check(t, os.WriteFile(file, []byte(secret.Reveal()+"\n"), 0o600))
	return []string{"--webhooks-secrets-file=" + file, "--webhooks-development", "--webhooks-timeout=1s", "--webhooks-poll=50ms"}
}

// Clients receive all webhooks of their intents through kills of the relayer, with one webhook
// or two, and none of their secrets is in the log.
func TestWebhooksThroughDeaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[0], inFiles, webhookFlags(t)...)
	both, one := newHook(t), newHook(t)
	second := map[chain.IntentID]bool{}
	var logs []string
	for i, point := range []string{"notices.enqueued", "notices.sent:3", ""} {
		for n := range 2 {
			a, b := w.pool(fmt.Sprintf("both-%d-%d", i, n)), w.one(0, fmt.Sprintf("one-%d-%d", i, n))
			a.Webhooks, b.Webhooks = []intent.Webhook{{URL: both.url}, {URL: one.url}}, []intent.Webhook{{URL: both.url}}
			second[a.ID()] = true
			w.ask(t, a, b)
		}
		s := w.relayer(t, "WATCHTOWER_CRASH_AT="+point)
		logs = append(logs, s.Log)
		if point == "" {
			check(t, s.Start(w.ctx))
			w.done(t, s)
			w.told(t, both, func(chain.IntentID) bool { return true })
			w.told(t, one, func(id chain.IntentID) bool { return second[id] })
			w.refuses(t, w.client(t, s))
			check(t, s.Stop(w.ctx))
			break
		}
		check(t, s.Launch())
		select {
		case <-s.Ended():
		case <-w.ctx.Done():
			t.Fatalf("the relayer never came to %s", point)
		}
	}
	w.judge(t)
	for _, path := range logs {
		if log, err := os.ReadFile(path); err != nil || strings.Contains(string(log), hush) {
			t.Errorf("the program's log tells a webhook's secret, or cannot be read: %v", err)
		}
	}
}

// refuses checks that the API refuses forbidden webhook URLs.
func (w *world) refuses(t *testing.T, c client) {
	t.Helper()
	for _, url := range []string{"https://10.0.0.1/" + hush, "http://169.254.169.254/", "https://metadata.google.internal./"} {
		var got struct{ Code, Detail string }
		body := map[string]any{"chainId": w.id, "key": "refused", "pool": "hot", "calls": []intent.Call{w.pay}, "webhooks": []string{url}}
		status, err := c.do(http.MethodPost, "/v1/intents", body, &got)
		if err != nil || status != http.StatusUnprocessableEntity || got.Code != "webhook-url" || strings.Contains(got.Detail, hush) {
			t.Errorf("%s: %d %+v, %v", url, status, got, err)
		}
	}
}

// Two replicas share the queue: a delivery interrupted by one's death is made by the other.
func TestReplicasTell(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[0], inPostgres, webhookFlags(t)...)
	h := newHook(t)
	first, second := w.relayer(t), w.relayer(t)
	check(t, first.Start(w.ctx))
	check(t, second.Start(w.ctx))
	for i := range 8 {
		r := w.pool(fmt.Sprint("pool-", i))
		r.Webhooks = []intent.Webhook{{URL: h.url}}
		w.ask(t, r)
		if i == 3 {
			first.Kill()
		}
	}
	w.done(t, second)
	w.told(t, h, func(chain.IntentID) bool { return true })
	check(t, second.Stop(w.ctx))
	w.judge(t)
}
