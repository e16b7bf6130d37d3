package notifier_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/commands/notifier"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var (
	taken   = notice.Outcome{Class: notice.Delivered, Status: 200}
	timeout = notice.Outcome{Class: notice.Unknown, Cause: notice.Timeout}
)

// attemptTime is the duration of an attempt that times out.
const attemptTime = 15 * time.Second

// world is a worker, its queue, and endpoints that answer as the test chooses.
type world struct {
	t     *testing.T
	queue *embedded.Notices
	wake  func()
	at    eventlog.Position
	log   bytes.Buffer

	mu       sync.Mutex
	answer   map[byte]notice.Outcome // by endpoint; others accept every delivery
	sent     []sent
	running  map[byte]int
	most     map[byte]int
	disabled []notice.Endpoint
}

type sent struct {
	notice.Key
	id string
	at time.Time
}

func (w *world) send(ctx context.Context, n notice.Sending) notice.Outcome {
	e := n.Endpoint[0]
	w.mu.Lock()
	w.sent = append(w.sent, sent{n.Key, n.MessageID(), time.Now()})
	w.running[e]++
	w.most[e] = max(w.most[e], w.running[e])
	o, ok := w.answer[e]
	w.mu.Unlock()
	if !ok {
		o = taken
	}
	if o.Cause == notice.Timeout {
		select {
		case <-time.After(attemptTime):
		case <-ctx.Done():
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[e]--
	return o
}

// to returns the deliveries sent to an endpoint.
func (w *world) to(endpoint byte) (of []sent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sent {
		if s.Endpoint[0] == endpoint {
			of = append(of, s)
		}
	}
	return of
}

func (w *world) set(endpoint byte, o notice.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer[endpoint] = o
}

func key(endpoint, intent byte, seq uint64) notice.Key {
	return notice.Key{Endpoint: notice.EndpointID{endpoint}, Intent: chain.IntentID{intent}, Seq: seq}
}

const canary = "canary-in-a-url"

func (w *world) enqueue(keys ...notice.Key) {
	w.t.Helper()
	var news []notice.News
	for _, k := range keys {
		news = append(news, notice.News{Key: k, URL: "https://example.org/" + canary, Body: []byte(canary)})
	}
	check(w.t, w.queue.Enqueue(w.t.Context(), "notifier", w.at, w.at+1, news))
	w.at++
	w.wake()
}

func (w *world) want(k notice.Key, stage notice.Stage) notice.Notice {
	w.t.Helper()
	n, ok, err := w.queue.Find(w.t.Context(), k)
	check(w.t, err)
	if !ok || n.Stage != stage {
		w.t.Fatalf("%v is %s after %d attempts, not %s", k, n.Stage, n.Attempts, stage)
	}
	return n
}

func (w *world) worker(q notifier.Queue) *notifier.Worker {
	return &notifier.Worker{
		Queue: q, Holder: "a", Send: w.send, Lease: time.Minute, Poll: time.Minute, Slots: 8,
		Log: slog.New(slog.NewTextHandler(&w.log, nil)),
		Disabled: func(_ context.Context, e notice.Endpoint) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.disabled = append(w.disabled, e)
		},
	}
}

// policy is the default without its last pause, which makes two days of retries.
func policy() notice.Policy {
	p := notice.DefaultPolicy()
	p.Pauses = p.Pauses[:len(p.Pauses)-1]
	return p
}

func newWorld(t *testing.T, db *embedded.DB) *world {
	return &world{
		t: t, queue: db.Notices(policy()), wake: func() {},
		answer: map[byte]notice.Outcome{}, running: map[byte]int{}, most: map[byte]int{},
	}
}

// inWorld runs a test in a bubble, with a running worker.
func inWorld(t *testing.T, wrap func(notifier.Queue) notifier.Queue, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		db, err := embedded.Open("", embedded.Options{})
		check(t, err)
		defer func() { check(t, db.Close()) }()
		w := newWorld(t, db)
		worker := w.worker(wrap(w.queue))
		w.wake = worker.Wake
		ctx, stop := context.WithCancel(t.Context())
		var working sync.WaitGroup
		working.Go(func() { worker.Run(ctx) })
		defer func() {
			stop()
			working.Wait()
			if strings.Contains(w.log.String(), canary) {
				t.Errorf("the log quotes URLs or bodies: %s", w.log.String())
			}
		}()
		test(t, w)
	})
}

func asIs(q notifier.Queue) notifier.Queue { return q }

// An endpoint that does not answer is tried for two days, at the policy's times and under
// one id. Its other intents take their turns meanwhile, and other endpoints are not
// affected. Then the delivery is dead, and the intent's next one is sent. The dead one is
// redelivered when the endpoint is back.
func TestDaysOfRetries(t *testing.T) {
	inWorld(t, asIs, func(t *testing.T, w *world) {
		p := policy()
		w.set(1, timeout)
		first, second := key(1, 1, 1), key(1, 1, 2)
		began := time.Now()
		w.enqueue(first, second)
		for hour := range 48 {
			w.enqueue(key(2, byte(hour), 1))
			time.Sleep(time.Hour)
			synctest.Wait()
			if got := len(w.to(2)); got != hour+1 {
				t.Fatalf("hour %d: %d notices of the other endpoint", hour, got)
			}
		}
		for len(w.to(1)) <= len(p.Pauses) {
			time.Sleep(time.Minute)
		}
		time.Sleep(p.BreakMax + attemptTime)
		tries := w.to(1)
		for i, s := range tries[:len(p.Pauses)+1] {
			if s.Key != first || s.id != tries[0].id {
				t.Errorf("attempt %d is of %+v", i, s)
			}
			if i == 0 {
				continue
			}
			pause, listed := s.at.Sub(tries[i-1].at)-attemptTime, p.Pauses[i-1]
			if pause < listed || pause > listed+listed/10+time.Minute {
				t.Errorf("pause %d was %s, listed are %s", i, pause, listed)
			}
		}
		if n := w.want(first, notice.Dead); n.Attempts != len(p.Pauses)+1 || n.Last != timeout {
			t.Errorf("%+v", n)
		}
		if last := tries[len(tries)-1]; last.Key != second || w.most[1] != 1 {
			t.Errorf("after %s: %+v, at most %d at a time", time.Since(began), last, w.most[1])
		}
		w.set(1, taken)
		again := notice.RedeliveryAsked{Endpoint: first.Endpoint, Notices: []notice.Ref{{Intent: first.Intent, Seq: first.Seq}}}
		check(t, w.queue.CarryOut(t.Context(), "notifier", w.at, w.at+1, []notice.Event{again}, nil))
		w.at++
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		w.want(first, notice.Settled)
		w.want(second, notice.Settled)
		if sum := w.to(1); sum[len(sum)-1].Key != second || sum[len(sum)-2].Key != first || sum[len(sum)-2].id != tries[0].id {
			t.Errorf("at last: %+v", sum[len(sum)-2:])
		}
	})
}

// Slow endpoints share a worker's slots with a fast one, and an endpoint with many waiting
// intents gets no more than its share of attempts.
func TestSlowEndpointsHoldUpNobody(t *testing.T) {
	inWorld(t, asIs, func(t *testing.T, w *world) {
		w.set(1, timeout)
		var slow []notice.Key
		for intent := range byte(100) {
			slow = append(slow, key(1, intent, 1), key(1, intent, 2))
		}
		w.enqueue(slow...)
		for i := range byte(50) {
			began := time.Now()
			w.enqueue(key(2, i, 1))
			time.Sleep(10 * time.Second)
			synctest.Wait()
			got := w.to(2)
			if len(got) != int(i)+1 || got[i].at.Sub(began) > time.Second {
				t.Fatalf("notice %d of the quick endpoint: %d were sent", i, len(got))
			}
		}
		if most := w.most[1]; most != notice.DefaultPolicy().Concurrency {
			t.Errorf("%d at a time at the slow endpoint", most)
		}
		if e, _, err := w.queue.Endpoint(t.Context(), notice.EndpointID{1}); err != nil || e.Failures < 5 || e.PausedUntil.IsZero() {
			t.Errorf("the slow endpoint: %+v, %v", e, err)
		}
		if len(w.to(1)) > 30 {
			t.Errorf("%d attempts within 500 s at an endpoint that always fails", len(w.to(1)))
		}
	})
}

// An endpoint that answers Gone gets no more deliveries, and Disabled is called.
func TestGone(t *testing.T) {
	inWorld(t, asIs, func(t *testing.T, w *world) {
		w.set(1, notice.Outcome{Class: notice.Gone, Cause: notice.Status, Status: 410})
		w.enqueue(key(1, 1, 1), key(1, 1, 2))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(w.to(1)) != 1 || len(w.disabled) != 1 || w.disabled[0].Disabled != notice.SaidGone {
			t.Errorf("%d attempts, disabled %+v", len(w.to(1)), w.disabled)
		}
		_, _, err := w.queue.Sweep(t.Context(), "", 10) // as the feeder does
		check(t, err)
		w.want(key(1, 1, 2), notice.Dead)
	})
}

// breaking is a queue that fails at intervals, before or after executing a call. The two
// kinds of calls are counted separately, because their interleaving is random.
type breaking struct {
	notifier.Queue
	leases, dones int
}

var errBroken = errors.New("broken")

func (b *breaking) Lease(ctx context.Context, c notice.Claim) ([]notice.Sending, time.Duration, error) {
	b.leases++
	switch b.leases % 5 {
	case 1:
		return nil, 0, errBroken
	case 3: // leased, and the answer is lost
		_, _, err := b.Queue.Lease(ctx, c)
		return nil, 0, errors.Join(err, errBroken)
	}
	return b.Queue.Lease(ctx, c)
}

func (b *breaking) Done(ctx context.Context, holder string, reports []notice.Report) ([]notice.Endpoint, error) {
	b.dones++
	switch b.dones % 4 {
	case 2:
		return nil, errBroken
	case 0: // done, and the answer is lost
		_, err := b.Queue.Done(ctx, holder, reports)
		return nil, errors.Join(err, errBroken)
	}
	return b.Queue.Done(ctx, holder, reports)
}

// With any losses between worker and queue, every delivery arrives, and none before its
// predecessor.
func TestBreakingQueue(t *testing.T) {
	inWorld(t, func(q notifier.Queue) notifier.Queue { return &breaking{Queue: q} }, func(t *testing.T, w *world) {
		const intents, each = 10, 5
		for seq := range uint64(each) {
			for intent := range byte(intents) {
				w.enqueue(key(intent%3, intent, seq+1))
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		last := map[notice.Key]uint64{}
		for _, s := range w.sent {
			of := notice.Key{Endpoint: s.Endpoint, Intent: s.Intent}
			if s.Seq != last[of] && s.Seq != last[of]+1 {
				t.Errorf("%v came after %d", s.Key, last[of])
			}
			last[of] = s.Seq
		}
		for intent := range byte(intents) {
			for seq := range uint64(each) {
				w.want(key(intent%3, intent, seq+1), notice.Settled)
			}
		}
		if len(w.sent) <= intents*each {
			t.Error("nothing was sent twice: nothing was lost")
		}
	})
}

// A stop waits for the attempts in progress, and leaves no lease behind.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := embedded.Open("", embedded.Options{})
		check(t, err)
		defer func() { check(t, db.Close()) }()
		w := newWorld(t, db)
		w.set(1, timeout)
		w.enqueue(key(1, 1, 1))
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			w.worker(w.queue).Run(ctx)
		}()
		time.Sleep(time.Second)
		synctest.Wait()
		w.want(key(1, 1, 1), notice.Delivering)
		stop()
		began := time.Now()
		<-stopped
		if waited := time.Since(began); waited < 10*time.Second || waited > attemptTime {
			t.Errorf("stopped after %s", waited)
		}
		if n := w.want(key(1, 1, 1), notice.Queued); n.Attempts != 1 {
			t.Errorf("%+v", n)
		}
	})
}
