package notifier_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/notifier"
	"github.com/tempo-watchtower/watchtower/commands/relay/messages"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/webhook"
	"github.com/tempo-watchtower/watchtower/proof/promises/intents"
)

// patience bounds a test over sockets, which normally ends far sooner.
const patience = 5 * time.Minute

// hands are a clock that is set by hand.
type hands struct {
	mu sync.Mutex
	at time.Time
}

func (h *hands) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *hands) set(to time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if to.After(h.at) {
		h.at = to
	}
}

// telling is the path from clients' commands to their endpoints: the log, the feeder, the
// queue, workers, and a sender that makes connections.
type telling struct {
	t      *testing.T
	ctx    context.Context
	clock  *hands
	db     *embedded.DB
	rows   *embedded.Notices
	guard  *webhook.Guard
	caller webhook.Caller
}

func newTelling(t *testing.T, rules webhook.Rules, more func(*webhook.Options)) *telling {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	w := &telling{t: t, ctx: ctx, clock: &hands{at: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}}
	var err error
	w.db, err = embedded.Open("", embedded.Options{Now: w.clock.now})
	check(t, err)
	t.Cleanup(func() { check(t, w.db.Close()) })
	w.rows = w.db.Notices(notice.DefaultPolicy())
	w.guard, err = webhook.NewGuard(rules)
	check(t, err)
	o := webhook.Options{Guard: w.guard, Timeout: 30 * time.Second, Agent: "test", Now: w.clock.now}
	if more != nil {
		more(&o)
	}
	sender, err := webhook.New(o)
	check(t, err)
	t.Cleanup(sender.Close)
	seal, err := notice.NewSealer(bytes.Repeat([]byte{3}, notice.SealKeyBytes))
	check(t, err)
	seed, err := webhook.NewSecret(rand.Reader)
	check(t, err)
	w.caller = webhook.Caller{Sender: sender, Seal: seal, Seeds: []webhook.Secret{seed}}
	return w
}

// local returns rules that allow sinks on this machine.
func local() webhook.Rules { return webhook.Rules{Development: true} }

// intentsOf handles the commands about intents.
type intentsOf = handler.Handler[intent.State, intent.Command, intent.Event]

// ask requests an intent of a client, as the intake does: webhooks are checked, and
// recorded sealed.
func (w *telling) ask(key string, urls ...string) chain.IntentID {
	w.t.Helper()
	r := intent.Request{Client: "shop", Key: key, From: intent.From{Pool: "hot"}, Chain: 1, Calls: []intent.Call{{To: &chain.Address{9}}}}
	for _, u := range urls {
		check(w.t, w.guard.CheckNow(w.ctx, u))
		r.Webhooks = append(r.Webhooks, intent.Webhook{URL: u})
	}
	w.command(r.ID(), intent.Create{Request: intent.Sealed(w.caller.Seal, r)})
	return r.ID()
}

func (w *telling) endpoint(url string) notice.EndpointID { return w.caller.Endpoint("shop", url) }

// command handles commands on an intent, as the relayer does.
func (w *telling) command(id chain.IntentID, all ...intent.Command) {
	w.t.Helper()
	for _, c := range all {
		o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
		check(w.t, err)
		_, err = intentsOf{Store: w.db.Log(), Codec: intent.Codec(), Random: rand.Reader}.Handle(w.ctx, intent.Stream(id), c, o)
		check(w.t, err)
	}
}

func assignment(n int) intent.Command {
	return intent.Assign{Assignment: 1, Place: intent.Place{Signer: chain.Address{1}, Nonce: uint64(n)}, Token: 1}
}

func hashOf(n int) chain.Hash { return chain.Keccak(fmt.Append(nil, "attempt ", n)) }

// live runs an intent to its end: five deliveries.
func (w *telling) live(id chain.IntentID, n int) {
	w.t.Helper()
	block := chain.Block{Number: uint64(n), Hash: chain.Keccak(fmt.Append(nil, n)), Time: 7}
	w.command(id, assignment(n),
		intent.Attempt{Assignment: 1, Kind: intent.First, Hash: hashOf(n)},
		intent.Announce{Hash: hashOf(n), Receipt: chain.Receipt{Block: block, Status: 1}, Confirmations: []chain.Block{block}, Settled: true})
}

// lifeNotices is the number of deliveries that [telling.live] causes.
const lifeNotices = 5

func (w *telling) feeder() *notifier.Feeder {
	return &notifier.Feeder{
		Store: w.db.Log(), Rows: w.rows, Checkpoints: w.db.Work(),
		Reader: notifier.Reader, Sources: []notifier.Source{{Prefix: intent.StreamPrefix, News: messages.New(w.db.Log(), 1000).News}}, Wishes: notice.Codec(),
		Log: slog.New(slog.DiscardHandler),
	}
}

func (w *telling) operator() notifier.Operator {
	return notifier.Operator{
		Endpoints: notifier.Endpoints{Store: w.db.Log(), Codec: notice.Codec(), Random: rand.Reader}, Rows: w.rows, Now: w.clock.now,
	}
}

// leaseTime is the duration of a worker's lease, by the clock that is set by hand.
const leaseTime = time.Minute

func (w *telling) worker(holder string, q notifier.Queue) *notifier.Worker {
	return &notifier.Worker{
		Queue: q, Holder: holder, Send: w.caller.Call, Lease: leaseTime, Poll: 2 * time.Millisecond, Slots: 16,
		Disabled: func(ctx context.Context, e notice.Endpoint) {
			w.operator().Record(ctx, e, slog.New(slog.DiscardHandler))
		},
		Log: slog.New(slog.DiscardHandler),
	}
}

// start runs a feeder and workers until the test ends.
func (w *telling) start(workers ...*notifier.Worker) {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(w.ctx))
	var working sync.WaitGroup
	feeder := w.feeder()
	feeder.Fed = workers[0].Wake
	working.Go(func() {
		if err := feeder.Run(ctx); !errors.Is(err, context.Canceled) {
			w.t.Error(err)
		}
	})
	for _, worker := range workers {
		working.Go(func() { worker.Run(ctx) })
	}
	w.t.Cleanup(func() {
		stop()
		working.Wait()
	})
}

// until waits for a condition.
func (w *telling) until(what string, is func() bool) {
	w.t.Helper()
	for !is() {
		if err := pause.For(w.ctx, time.Millisecond); err != nil {
			w.t.Fatalf("%s: %v", what, err)
		}
	}
}

// noticeAt waits until a delivery is in a stage after a number of attempts.
func (w *telling) noticeAt(k notice.Key, stage notice.Stage, attempts int) (n notice.Notice) {
	w.t.Helper()
	w.until(fmt.Sprintf("%s after %d attempts", stage, attempts), func() bool {
		var err error
		n, _, err = w.rows.Find(w.ctx, k)
		check(w.t, err)
		return n.Stage == stage && n.Attempts == attempts
	})
	return n
}

// wait advances the clock to the time at which an endpoint may be tried again.
func (w *telling) wait(n notice.Notice) {
	w.t.Helper()
	e, _, err := w.rows.Endpoint(w.ctx, n.Endpoint)
	check(w.t, err)
	w.clock.set(n.NextAt)
	w.clock.set(e.PausedUntil)
}

// hook is an endpoint whose answers the test chooses.
type hook struct {
	t    *testing.T
	w    *telling
	url  string
	mu   sync.Mutex
	all  []arrival
	does func(n int, rw http.ResponseWriter, r *http.Request) // the n-th answer, from 1 on; nil accepts everything
}

type arrival struct {
	id     string
	notice intent.Notice
	good   bool // its signature is valid
}

// newHook returns an endpoint on this machine.
func (w *telling) newHook(does func(n int, rw http.ResponseWriter, r *http.Request)) *hook {
	h := &hook{t: w.t, w: w, does: does}
	s := httptest.NewServer(h)
	w.t.Cleanup(s.Close)
	h.url = s.URL + "/hush-hush?token=hush-hush"
	return h
}

func (h *hook) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		h.t.Error(err)
	}
	a := arrival{id: r.Header.Get(webhook.HeaderID)}
	if err := json.Unmarshal(body, &a.notice); err != nil {
		h.t.Errorf("%s: %v", body, err)
	}
	at, err := strconv.ParseInt(r.Header.Get(webhook.HeaderTimestamp), 10, 64)
	secrets := h.w.caller.Secrets(h.w.endpoint(h.url))
	a.good = err == nil && r.Header.Get(webhook.HeaderSignature) == webhook.Sign(secrets, a.id, time.Unix(at, 0), body) &&
		a.id == a.notice.ID() && strings.HasSuffix(h.url, r.RequestURI)
	h.mu.Lock()
	h.all = append(h.all, a)
	n := len(h.all)
	h.mu.Unlock()
	if h.does != nil {
		h.does(n, rw, r)
	}
}

// came returns the deliveries that have arrived so far.
func (h *hook) came() []arrival {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]arrival(nil), h.all...)
}

// waits waits until n deliveries have arrived.
func (h *hook) waits(n int) []arrival {
	h.t.Helper()
	h.w.until(fmt.Sprintf("%d notices at %s", n, h.url), func() bool { return len(h.came()) >= n })
	return h.came()
}

// judge checks the arrivals against the log. None is missing, no id has two contents, and
// applying them by sequence reproduces the log's state.
func (w *telling) judge(h *hook, of ...chain.IntentID) {
	w.t.Helper()
	judge, consumer := intents.New(), &intents.Consumer{Name: h.url, InOrder: true}
	for batch, err := range w.db.Log().ReadAll(w.ctx, 0, eventlog.Filter{Streams: []string{intent.StreamPrefix}}, 1000) {
		check(w.t, err)
		for _, r := range batch.Events {
			for _, v := range judge.Event(r) {
				w.t.Error(v)
			}
		}
	}
	for _, a := range h.came() {
		if !a.good {
			w.t.Errorf("%s is not signed as it should be, or not what it says", a.id)
		}
		for _, v := range consumer.Shown(a.notice) {
			w.t.Error(v)
		}
	}
	for _, v := range consumer.Finish(judge, func(id chain.IntentID) bool { return slices.Contains(of, id) }) {
		w.t.Error(v)
	}
}

// recorded returns the names of an endpoint's events.
func (w *telling) recorded(id notice.EndpointID) (names []string) {
	w.t.Helper()
	for r, err := range w.db.Log().ReadStream(w.ctx, notice.Stream(id), 0) {
		check(w.t, err)
		names = append(names, r.Name)
	}
	return names
}
