package notifier_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/commands/notifier"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/webhook"
)

// Two webhooks of one intent, and one of another, get all their deliveries in order. An
// intent without webhooks is reported to none, and no URL's secret is in the log.
func TestTold(t *testing.T) {
	w := newTelling(t, local(), nil)
	a, b := w.newHook(nil), w.newHook(nil)
	w.start(w.worker("a", w.rows))
	both, one, none := w.ask("both", a.url, b.url), w.ask("one", b.url), w.ask("none")
	for i, id := range []chain.IntentID{both, one, none} {
		w.live(id, i)
	}
	a.waits(lifeNotices)
	b.waits(2 * lifeNotices)
	w.judge(a, both)
	w.judge(b, both, one)
	for batch, err := range w.db.Log().ReadAll(w.ctx, 0, eventlog.Filter{}, 1000) {
		check(t, err)
		for _, r := range batch.Events {
			if strings.Contains(string(r.Data), "hush") {
				t.Errorf("%s: %s", r.Name, r.Data)
			}
		}
	}
	found, err := w.rows.Endpoints(w.ctx, nil, notice.EndpointID{}, 10)
	check(t, err)
	for _, e := range found {
		if strings.Contains(e.URL, "hush") {
			t.Errorf("the queue has %s", e.URL)
		}
	}
	if len(found) != 2 {
		t.Errorf("%d endpoints", len(found))
	}
}

// An endpoint that answers 500 for days is tried at the policy's times, under one id, and
// given up. Dead deliveries are listed, and redelivered on demand, with the later ones in
// order.
func TestDaysOf500(t *testing.T) {
	w := newTelling(t, local(), nil)
	var well atomic.Bool
	h := w.newHook(func(_ int, rw http.ResponseWriter, _ *http.Request) {
		if !well.Load() {
			rw.WriteHeader(http.StatusInternalServerError)
		}
	})
	w.start(w.worker("a", w.rows))
	id := w.ask("days", h.url)
	w.live(id, 1)
	key, began := notice.Key{Endpoint: w.endpoint(h.url), Intent: id, Seq: 1}, w.clock.now()
	tries := len(notice.DefaultPolicy().Pauses) + 1
	for n := 1; n < tries; n++ {
		w.wait(w.noticeAt(key, notice.Queued, n))
	}
	dead := w.noticeAt(key, notice.Dead, tries)
	if took := dead.LastAt.Sub(began); took < 75*time.Hour || dead.Last.Status != http.StatusInternalServerError {
		t.Errorf("given up after %s: %+v", took, dead)
	}
	for i, a := range h.came()[:tries] {
		if a.id != key.MessageID() {
			t.Errorf("attempt %d is of %s", i, a.id)
		}
	}
	listed, err := w.rows.Dead(w.ctx, key.Endpoint, notice.Key{}, 10)
	if check(t, err); len(listed) == 0 || listed[0].Key != key {
		t.Errorf("dead: %+v", listed)
	}
	well.Store(true)
	check(t, w.operator().Redeliver(w.ctx, key.Endpoint, nil, eventlog.Meta{Actor: "test"}))
	for seq := uint64(1); seq <= lifeNotices; seq++ {
		k := key
		k.Seq = seq
		w.until("delivered", func() bool {
			n, _, err := w.rows.Find(w.ctx, k)
			check(t, err)
			if n.Stage != notice.Settled {
				w.wait(n)
			}
			return n.Stage == notice.Settled
		})
	}
	w.judge(h, id)
	if d := cmp.Diff([]string{"webhook.redelivery_asked.v1"}, w.recorded(key.Endpoint)); d != "" {
		t.Error(d)
	}
}

// cut hangs up before it has answered.
func cut(rw http.ResponseWriter, _ *http.Request) {
	if conn, _, err := rw.(http.Hijacker).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// After any single failure of an endpoint its deliveries arrive in the end, under the same
// ids. A healthy endpoint is not delayed by them.
func TestHostile(t *testing.T) {
	w := newTelling(t, local(), func(o *webhook.Options) { o.Timeout = 2 * time.Second })
	elsewhere := w.newHook(nil)
	status := func(code int, header ...string) func(http.ResponseWriter, *http.Request) {
		return func(rw http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				rw.Header().Set(header[i], header[i+1])
			}
			rw.WriteHeader(code)
		}
	}
	cases := []struct {
		name  string
		first func(http.ResponseWriter, *http.Request)
		want  notice.Outcome
		pause time.Duration
	}{
		{"slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, notice.Outcome{Class: notice.Unknown, Cause: notice.Timeout}, 5 * time.Second},
		{"cut", cut, notice.Outcome{Class: notice.Unknown, Cause: notice.Cut}, 5 * time.Second},
		{"500", status(500), notice.Outcome{Class: notice.Failed, Cause: notice.Status, Status: 500}, 5 * time.Second},
		{"redirect", status(302, "Location", "http://169.254.169.254/latest/meta-data/"), notice.Outcome{Class: notice.Failed, Cause: notice.Status, Status: 302}, 5 * time.Second},
		{"redirect home", status(307, "Location", elsewhere.url), notice.Outcome{Class: notice.Failed, Cause: notice.Status, Status: 307}, 5 * time.Second},
		// The last: when its time has come, no lease of the others' may lapse.
		{"429", status(429, "Retry-After", "7200"), notice.Outcome{Class: notice.Later, Cause: notice.Status, Status: 429}, 2 * time.Hour},
	}
	w.start(w.worker("a", w.rows))
	good := w.newHook(nil)
	hooks, ids := make([]*hook, len(cases)), make([]chain.IntentID, len(cases))
	for i, c := range cases {
		hooks[i] = w.newHook(func(n int, rw http.ResponseWriter, r *http.Request) {
			if n == 1 {
				c.first(rw, r)
			}
		})
		ids[i] = w.ask(fmt.Sprint(i), hooks[i].url)
		w.live(ids[i], i)
	}
	quick := w.ask("quick", good.url)
	w.live(quick, 99)
	good.waits(lifeNotices)
	w.judge(good, quick)
	var failed []notice.Notice
	for i, c := range cases {
		n := w.noticeAt(notice.Key{Endpoint: w.endpoint(hooks[i].url), Intent: ids[i], Seq: 1}, notice.Queued, 1)
		if d := cmp.Diff(c.want, n.Last); d != "" || n.NextAt.Sub(n.LastAt) < c.pause {
			t.Errorf("%s: %s, the next attempt comes after %s", c.name, d, n.NextAt.Sub(n.LastAt))
		}
		failed = append(failed, n)
	}
	for i, n := range failed {
		w.wait(n)
		hooks[i].waits(1 + lifeNotices)
		w.judge(hooks[i], ids[i])
	}
	if came := elsewhere.came(); len(came) != 0 {
		t.Errorf("a redirect led to %+v", came)
	}
}

// An endpoint that answers Gone is disabled, which is recorded. It gets no deliveries until
// an operator enables it; missed ones are redelivered on demand.
func TestGoneForNow(t *testing.T) {
	w := newTelling(t, local(), nil)
	h := w.newHook(func(n int, rw http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			rw.WriteHeader(http.StatusGone)
		}
	})
	w.start(w.worker("a", w.rows))
	id := w.ask("gone", h.url)
	w.live(id, 1)
	of := w.endpoint(h.url)
	w.noticeAt(notice.Key{Endpoint: of, Intent: id, Seq: 1}, notice.Dead, 1)
	w.noticeAt(notice.Key{Endpoint: of, Intent: id, Seq: lifeNotices}, notice.Dead, 0)
	w.until("the record", func() bool { return slices.Contains(w.recorded(of), "webhook.disabled.v1") })
	o, meta := w.operator(), eventlog.Meta{Actor: "test"}
	if err := o.Redeliver(w.ctx, of, nil, meta); !errors.Is(err, notice.ErrDisabled) {
		t.Errorf("redelivered to what is disabled: %v", err)
	}
	check(t, o.Enable(w.ctx, of, meta))
	w.until("enabled", func() bool {
		e, _, err := w.rows.Endpoint(w.ctx, of)
		check(t, err)
		return e.Disabled == notice.Enabled
	})
	check(t, o.Redeliver(w.ctx, of, nil, meta))
	h.waits(1 + lifeNotices)
	w.judge(h, id)

	check(t, o.Disable(w.ctx, of, meta))
	again := w.ask("again", h.url)
	w.live(again, 2)
	w.noticeAt(notice.Key{Endpoint: of, Intent: again, Seq: lifeNotices}, notice.Dead, 0)
	if came := h.came(); len(came) != 1+lifeNotices {
		t.Errorf("%d came to an endpoint that is disabled", len(came))
	}
	want := []string{"webhook.disabled.v1", "webhook.enabled.v1", "webhook.redelivery_asked.v1", "webhook.disabled.v1"}
	if d := cmp.Diff(want, w.recorded(of)); d != "" {
		t.Error(d)
	}
	if err := o.Enable(w.ctx, notice.EndpointID{1}, meta); !errors.Is(err, notice.ErrEndpoint) {
		t.Errorf("what there is not was enabled: %v", err)
	}
}

// A name resolves to a public address when the intent is requested, and to an internal one
// when it is called: nothing is sent there. 127.0.0.1 stands for the public address here.
func TestRebinding(t *testing.T) {
	var inside atomic.Bool
	rules := webhook.Rules{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	rules.Lookup = func(context.Context, string) ([]netip.Addr, error) {
		if inside.Load() {
			return []netip.Addr{netip.MustParseAddr("127.0.0.2")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	h := &hook{t: t}
	s := httptest.NewTLSServer(h)
	defer s.Close()
	u, err := url.Parse(s.URL)
	check(t, err)
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	check(t, err)
	rules.Ports = []uint16{uint16(port)}
	h.url = "https://hooks.example.com:" + u.Port() + "/hush-hush"
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	w := newTelling(t, rules, func(o *webhook.Options) { o.Roots = roots })
	h.w = w
	id := w.ask("rebinding", h.url)
	w.command(id, assignment(1))
	inside.Store(true)
	w.start(w.worker("a", w.rows))
	n := w.noticeAt(notice.Key{Endpoint: w.endpoint(h.url), Intent: id, Seq: 1}, notice.Queued, 1)
	if n.Last != (notice.Outcome{Class: notice.Failed, Cause: notice.Forbidden}) || len(h.came()) != 0 {
		t.Errorf("%+v, %d came", n.Last, len(h.came()))
	}
	inside.Store(false)
	w.wait(n)
	h.waits(1)
	w.judge(h, id)
}

// Two workers share the queue: each delivery arrives once, and in order.
func TestTwoWorkers(t *testing.T) {
	w := newTelling(t, local(), nil)
	a, b := w.newHook(nil), w.newHook(nil)
	w.start(w.worker("a", w.rows), w.worker("b", w.rows))
	var ids []chain.IntentID
	for i := range 20 {
		ids = append(ids, w.ask(fmt.Sprint(i), a.url, b.url))
		w.live(ids[i], i)
	}
	for _, h := range []*hook{a, b} {
		if came := h.waits(20 * lifeNotices); len(came) != 20*lifeNotices {
			t.Errorf("%d came", len(came))
		}
		w.judge(h, ids...)
	}
}

// dying is a queue whose worker dies before it reports its first attempt.
type dying struct {
	notifier.Queue
	died atomic.Bool
}

func (d *dying) Done(ctx context.Context, holder string, reports []notice.Report) ([]notice.Endpoint, error) {
	if d.died.CompareAndSwap(false, true) {
		return nil, context.Canceled
	}
	return d.Queue.Done(ctx, holder, reports)
}

// A delivery whose worker died after sending is sent again when the lease has lapsed, under
// the same id, and no other is.
func TestDiesAfterSending(t *testing.T) {
	w := newTelling(t, local(), nil)
	h := w.newHook(nil)
	queue := &dying{Queue: w.rows}
	w.start(w.worker("a", queue))
	id := w.ask("dies", h.url)
	w.command(id, assignment(1))
	h.waits(1)
	w.until("the worker has died", queue.died.Load) // else the report of the second attempt is lost
	w.clock.set(w.clock.now().Add(leaseTime + time.Second))
	came := h.waits(2)
	w.noticeAt(notice.Key{Endpoint: w.endpoint(h.url), Intent: id, Seq: 1}, notice.Settled, 1)
	if came[0].id != came[1].id || len(h.came()) != 2 {
		t.Errorf("%+v", h.came())
	}
	w.judge(h, id)
}

// A feeder that dies after any step is followed by another: deliveries are queued once, and
// a redelivery is sent once more, under the same id.
func TestFeederDies(t *testing.T) {
	for _, point := range notifier.CrashPoints()[:2] { // the third is the worker's
		t.Run(point, func(t *testing.T) {
			w := newTelling(t, local(), nil)
			h := w.newHook(nil)
			ctx, stop := context.WithCancel(context.WithoutCancel(w.ctx))
			worker := w.worker("a", w.rows)
			var working sync.WaitGroup
			working.Go(func() { worker.Run(ctx) })
			defer func() {
				stop()
				working.Wait()
			}()
			id := w.ask("feeder", h.url)
			w.command(id, assignment(1))
			w.dies("notices.enqueued", 1) // so that there is something to redeliver
			h.waits(1)
			w.noticeAt(notice.Key{Endpoint: w.endpoint(h.url), Intent: id, Seq: 1}, notice.Settled, 1)
			again := []notice.Ref{{Intent: id, Seq: 1}}
			check(t, w.operator().Redeliver(w.ctx, w.endpoint(h.url), again, eventlog.Meta{Actor: "test"}))
			w.command(id, intent.Attempt{Assignment: 1, Kind: intent.First, Hash: hashOf(1)})
			w.dies(point, 1)
			h.waits(2)
			w.start(w.worker("b", w.rows))
			w.noticeAt(notice.Key{Endpoint: w.endpoint(h.url), Intent: id, Seq: 2}, notice.Settled, 1)
			count := map[string]int{}
			for _, a := range h.came() {
				count[a.id]++
			}
			first, second := notice.Key{Intent: id, Seq: 1}.MessageID(), notice.Key{Intent: id, Seq: 2}.MessageID()
			if count[first] != 2 || count[second] != 1 || len(count) != 2 {
				t.Errorf("%v", count)
			}
			w.judge(h, id)
		})
	}
}

// dies runs a feeder until it reaches a point for the n-th time, where it dies.
func (w *telling) dies(at string, n int) {
	w.t.Helper()
	feeder := w.feeder()
	died := make(chan struct{})
	feeder.Crash = func(point string) {
		if point == at {
			if n--; n == 0 {
				panic(died)
			}
		}
	}
	go func() {
		defer close(died)
		defer func() {
			if r := recover(); r != any(died) {
				w.t.Errorf("ended with %v", r)
			}
		}()
		_ = feeder.Run(w.ctx)
	}()
	<-died
}
