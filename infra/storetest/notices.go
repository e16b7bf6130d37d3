package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// NoticeRows is the queue of notices.
type NoticeRows interface {
	Enqueue(ctx context.Context, reader string, from, to event.Position, news []notice.News) error
	Lease(ctx context.Context, holder string, ttl time.Duration, limit int) ([]notice.Sending, time.Duration, error)
	Done(ctx context.Context, holder string, reports []notice.Report) ([]notice.Endpoint, error)
	Find(ctx context.Context, k notice.Key) (notice.Notice, bool, error)
	Dead(ctx context.Context, endpoint notice.EndpointID, after notice.Key, limit int) ([]notice.Notice, error)
	Redeliver(ctx context.Context, endpoint notice.EndpointID, keys []notice.Key) (int, error)
	Endpoint(ctx context.Context, id notice.EndpointID) (notice.Endpoint, bool, error)
	Enable(ctx context.Context, id notice.EndpointID) error
	Disable(ctx context.Context, id notice.EndpointID, reason notice.Reason) error
	Forget(ctx context.Context, before time.Time, limit int) (int, error)
}

// noticePause is the first pause of NoticePolicy.
const noticePause = 200 * time.Millisecond

// NoticePolicy is the policy that the contract of notices is held under.
func NoticePolicy() notice.Policy {
	p := notice.DefaultPolicy()
	p.Pauses, p.Jitter, p.Concurrency, p.BreakAfter = []time.Duration{noticePause, time.Hour}, 0, 2, 1000
	return p
}

// Notices is the contract of the queue of notices. The store opened has NoticePolicy.
func Notices(t *testing.T, open func(t *testing.T) Opened[NoticeRows]) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, q *noticeQueue)
	}{
		{"one intent's notices go in order", noticeOrder},
		{"a dead notice lets the next one go", noticeDead},
		{"a failed notice waits, and others do not", noticeRetry},
		{"an endpoint's share", noticeShare},
		{"who has much due keeps nobody waiting", noticeFair},
		{"a lease lapses", noticeLapse},
		{"a paused endpoint", noticePaused},
		{"an endpoint that is gone", noticeGone},
		{"an operator disables and enables", noticeOperator},
		{"dead letters are listed and redelivered", noticeRedeliver},
		{"what is enqueued", noticeEnqueue},
		{"forget", noticeForget},
		{"notices outlive the process", noticeReopened},
		{"many workers", noticeWorkers},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := open(t)
			c.run(t, &noticeQueue{t: t, NoticeRows: o.Port, clock: o.Clock.orReal(), reopen: o.Reopen})
		})
	}
}

// noticeQueue is a queue under test, with its reader's checkpoint.
type noticeQueue struct {
	NoticeRows
	t      *testing.T
	clock  Clock
	reopen func() NoticeRows
	at     event.Position
}

// noticeKey names a notice by endpoint, intent and sequence.
func noticeKey(endpoint, intent byte, seq uint64) notice.Key {
	return notice.Key{Endpoint: notice.EndpointID{endpoint}, Intent: chain.IntentID{intent}, Seq: seq}
}

func noticeName(k notice.Key) string {
	return fmt.Sprintf("%d/%d/%d", k.Endpoint[0], k.Intent[0], k.Seq)
}

func noticeNews(keys ...notice.Key) (news []notice.News) {
	for _, k := range keys {
		news = append(news, notice.News{Key: k, URL: fmt.Sprintf("https://%d.example.org/", k.Endpoint[0]), Body: []byte(noticeName(k))})
	}
	return news
}

func (q *noticeQueue) enqueue(keys ...notice.Key) {
	q.t.Helper()
	check(q.t, q.Enqueue(soon(q.t), "notifier", q.at, q.at+1, noticeNews(keys...)))
	q.at++
}

// lease leases as "a" and expects these.
func (q *noticeQueue) lease(limit int, want ...notice.Key) {
	q.t.Helper()
	leased, _, err := q.Lease(soon(q.t), "a", time.Minute, limit)
	check(q.t, err)
	var got, wanted []string
	for _, n := range leased {
		got = append(got, noticeName(n.Key))
		if n.Stage != notice.Delivering || !bytes.Equal(n.Body, []byte(noticeName(n.Key))) || n.URL != fmt.Sprintf("https://%d.example.org/", n.Endpoint[0]) {
			q.t.Errorf("leased %+v", n)
		}
	}
	for _, k := range want {
		wanted = append(wanted, noticeName(k))
	}
	slices.Sort(got)
	slices.Sort(wanted)
	if diff := cmp.Diff(wanted, got); diff != "" {
		q.t.Fatalf("leased: %s", diff)
	}
}

var (
	noticeTaken  = notice.Outcome{Class: notice.Delivered, Status: 200}
	noticeFailed = notice.Outcome{Class: notice.Failed, Cause: notice.Status, Status: 500}
	noticeUnfit  = notice.Outcome{Class: notice.Failed, Cause: notice.Unfit}
)

// done reports as "a" and returns the endpoints that this has disabled.
func (q *noticeQueue) done(o notice.Outcome, keys ...notice.Key) []notice.Endpoint {
	q.t.Helper()
	var reports []notice.Report
	for _, k := range keys {
		reports = append(reports, notice.Report{Key: k, Outcome: o})
	}
	disabled, err := q.Done(soon(q.t), "a", reports)
	check(q.t, err)
	return disabled
}

func (q *noticeQueue) want(k notice.Key, stage notice.Stage, attempts int) notice.Notice {
	q.t.Helper()
	n, ok, err := q.Find(soon(q.t), k)
	check(q.t, err)
	if !ok || n.Stage != stage || n.Attempts != attempts {
		q.t.Fatalf("%s: %v, %s after %d attempts, not %s after %d", noticeName(k), ok, n.Stage, n.Attempts, stage, attempts)
	}
	return n
}

func (q *noticeQueue) endpoint(id byte) notice.Endpoint {
	q.t.Helper()
	e, ok, err := q.Endpoint(soon(q.t), notice.EndpointID{id})
	check(q.t, err)
	if !ok {
		q.t.Fatalf("endpoint %d is not there", id)
	}
	return e
}

func noticeOrder(_ *testing.T, q *noticeQueue) {
	a1, a2, a3, b1 := noticeKey(1, 1, 1), noticeKey(1, 1, 2), noticeKey(1, 1, 3), noticeKey(1, 2, 1)
	q.enqueue(a2, a1, b1)
	q.enqueue(a3)
	q.want(a1, notice.Queued, 0)
	q.lease(10, a1, b1)
	q.want(a1, notice.Delivering, 0)
	q.lease(10)
	q.done(noticeTaken, a1, b1)
	if n := q.want(a1, notice.Settled, 1); n.Last != noticeTaken || n.LastAt.IsZero() {
		q.t.Errorf("delivered: %+v", n)
	}
	q.lease(10, a2)
	q.done(noticeTaken, a2)
	q.lease(10, a3)
	q.done(noticeTaken, a2, a3) // once more is no report
	q.want(a2, notice.Settled, 1)
	q.lease(10)
}

func noticeDead(_ *testing.T, q *noticeQueue) {
	a1, a2 := noticeKey(1, 1, 1), noticeKey(1, 1, 2)
	q.enqueue(a1, a2)
	q.lease(10, a1)
	q.done(noticeUnfit, a1)
	if n := q.want(a1, notice.Dead, 1); n.Last != noticeUnfit {
		q.t.Errorf("dead: %+v", n)
	}
	q.lease(10, a2)
}

func noticeRetry(t *testing.T, q *noticeQueue) {
	a1, a2, b1, b2 := noticeKey(1, 1, 1), noticeKey(1, 1, 2), noticeKey(2, 1, 1), noticeKey(2, 1, 2)
	q.enqueue(a1, a2, b1, b2)
	q.lease(10, a1, b1)
	before := q.clock.Now()
	q.done(noticeFailed, a1)
	q.done(noticeTaken, b1)
	n := q.want(a1, notice.Queued, 1)
	if pause := n.NextAt.Sub(n.LastAt); pause != noticePause || n.Last != noticeFailed {
		t.Errorf("after a failure: %+v", n)
	}
	if e := q.endpoint(1); e.Failures != 1 || !e.FailingSince.Equal(n.LastAt) || e.FailingSince.Before(before.Add(-time.Minute)) {
		t.Errorf("the endpoint: %+v", e)
	}
	// The other endpoint has the same intent, and does not wait.
	var order []string
	for !slices.Contains(order, noticeName(a1)) {
		leased, until, err := q.Lease(soon(t), "a", time.Minute, 10)
		check(t, err)
		for _, l := range leased {
			if order = append(order, noticeName(l.Key)); l.Key == a1 && q.clock.Now().Before(n.NextAt) {
				t.Errorf("leased %s before its time", n.NextAt.Sub(q.clock.Now()))
			}
		}
		if len(leased) == 0 {
			if until > noticePause {
				t.Errorf("the next is due in %s", until)
			}
			q.clock.Elapse(until + time.Millisecond)
		}
	}
	if slices.Sort(order); !slices.Equal(order, []string{noticeName(a1), noticeName(b2)}) {
		t.Errorf("leased %v", order)
	}
	q.done(noticeTaken, a1)
	if e := q.endpoint(1); e.Failures != 0 || !e.FailingSince.IsZero() {
		t.Errorf("after a success: %+v", e)
	}
	q.lease(10, a2)
}

func noticeShare(_ *testing.T, q *noticeQueue) {
	var all []notice.Key
	for intent := range byte(5) {
		all = append(all, noticeKey(1, intent, 1))
	}
	q.enqueue(all[0], all[1])
	q.enqueue(all[2:]...)
	other := noticeKey(2, 1, 1)
	q.enqueue(other)
	q.lease(10, all[0], all[1], other)
	q.lease(10)
	q.done(noticeFailed, all[0])
	q.lease(10) // it fails: one at a time
	q.done(noticeFailed, all[1])
	leased, _, err := q.Lease(soon(q.t), "a", time.Minute, 10)
	check(q.t, err)
	if len(leased) != 1 {
		q.t.Fatalf("%d at a time at an endpoint that fails", len(leased))
	}
	q.done(noticeTaken, leased[0].Key)
	leased, _, err = q.Lease(soon(q.t), "a", time.Minute, 10)
	check(q.t, err)
	if len(leased) != 2 {
		q.t.Fatalf("%d at a time at an endpoint that works again", len(leased))
	}
}

func noticeFair(t *testing.T, q *noticeQueue) {
	var busy []notice.Key
	for intent := range byte(20) {
		busy = append(busy, noticeKey(1, intent, 1))
	}
	q.enqueue(busy...)
	q.enqueue(noticeKey(2, 1, 1))
	q.enqueue(noticeKey(3, 1, 1))
	seen := map[byte]bool{}
	for range 3 {
		leased, until, err := q.Lease(soon(t), "a", time.Minute, 1)
		check(t, err)
		if len(leased) != 1 || until != 0 {
			t.Fatalf("leased %d, the next in %s", len(leased), until)
		}
		seen[leased[0].Endpoint[0]] = true
		q.done(noticeTaken, leased[0].Key)
	}
	if len(seen) != 3 {
		t.Errorf("of three, the endpoints served are %v", seen)
	}
}

func noticeLapse(t *testing.T, q *noticeQueue) {
	k, next := noticeKey(1, 1, 1), noticeKey(1, 1, 2)
	q.enqueue(k, next)
	leased, _, err := q.Lease(soon(t), "b", noticePause, 10)
	check(t, err)
	if len(leased) != 1 {
		t.Fatalf("leased %+v", leased)
	}
	for leased = nil; len(leased) == 0; {
		var until time.Duration
		leased, until, err = q.Lease(soon(t), "a", time.Minute, 10)
		if check(t, err); until > noticePause && len(leased) == 0 {
			t.Fatalf("leased for %s, and the next is due in %s", noticePause, until)
		}
		if len(leased) == 0 {
			q.clock.Elapse(until)
		}
	}
	if len(leased) != 1 || leased[0].Key != k {
		t.Fatalf("leased %+v", leased)
	}
	if _, err := q.Done(soon(t), "b", []notice.Report{{Key: k, Outcome: noticeUnfit}}); err != nil {
		t.Fatal(err)
	}
	q.want(k, notice.Delivering, 0)
	q.done(noticeTaken, k)
	q.lease(10, next)
}

func noticePaused(t *testing.T, q *noticeQueue) {
	a, b := noticeKey(1, 1, 1), noticeKey(1, 2, 1)
	q.enqueue(a, b)
	q.lease(10, a, b)
	q.done(noticeTaken, b)
	c := noticeKey(1, 3, 1)
	q.enqueue(c)
	q.done(notice.Outcome{Class: notice.Later, Cause: notice.Status, Status: 429, RetryAfter: 20 * time.Second}, a)
	q.lease(10) // c was not sent yet, but its endpoint asked for a pause
	if e := q.endpoint(1); e.PausedUntil.Sub(e.FailingSince) != 20*time.Second {
		t.Errorf("%+v", e)
	}
	_, until, err := q.Lease(soon(t), "a", time.Minute, 10)
	check(t, err)
	if until > 20*time.Second || until < 10*time.Second {
		t.Errorf("the pause is over in %s", until)
	}
}

func noticeGone(t *testing.T, q *noticeQueue) {
	a1, a2, b1, c1 := noticeKey(1, 1, 1), noticeKey(1, 1, 2), noticeKey(1, 2, 1), noticeKey(2, 1, 1)
	q.enqueue(a1, a2, b1, c1)
	q.lease(10, a1, b1, c1)
	gone := q.done(notice.Outcome{Class: notice.Gone, Cause: notice.Status, Status: 410}, a1)
	if len(gone) != 1 || gone[0].ID != a1.Endpoint || gone[0].Disabled != notice.SaidGone || gone[0].DisabledAt.IsZero() {
		t.Fatalf("disabled: %+v", gone)
	}
	if diff := cmp.Diff(gone[0], q.endpoint(1)); diff != "" {
		t.Error(diff)
	}
	q.want(a1, notice.Dead, 1)
	if n := q.want(a2, notice.Dead, 0); n.Last.Cause != notice.Off {
		t.Errorf("not sent: %+v", n)
	}
	q.want(b1, notice.Dead, 0)
	if again := q.done(noticeTaken, b1, c1); len(again) != 0 {
		t.Errorf("disabled once more: %+v", again)
	}
	q.want(c1, notice.Settled, 1)
	late := noticeKey(1, 3, 1)
	q.enqueue(late)
	if n := q.want(late, notice.Dead, 0); n.Last.Cause != notice.Off {
		t.Errorf("enqueued at an endpoint that is gone: %+v", n)
	}
	q.lease(10)
	if n, err := q.Redeliver(soon(t), a1.Endpoint, []notice.Key{a1}); n != 0 || !errors.Is(err, notice.ErrDisabled) {
		t.Errorf("redelivered %d, %v", n, err)
	}
}

func noticeOperator(t *testing.T, q *noticeQueue) {
	a1, a2 := noticeKey(1, 1, 1), noticeKey(1, 1, 2)
	check(t, q.Disable(soon(t), a1.Endpoint, notice.Operator)) // of which nothing is known
	if _, ok, err := q.Endpoint(soon(t), a1.Endpoint); ok || err != nil {
		t.Fatalf("an endpoint came of nothing: %v", err)
	}
	q.enqueue(a1)
	check(t, q.Disable(soon(t), a1.Endpoint, notice.Operator))
	if e := q.endpoint(1); e.Disabled != notice.Operator || e.URL != "https://1.example.org/" {
		t.Errorf("%+v", e)
	}
	q.want(a1, notice.Dead, 0)
	q.lease(10)
	check(t, q.Enable(soon(t), a1.Endpoint))
	if e := q.endpoint(1); e != (notice.Endpoint{ID: a1.Endpoint, URL: e.URL}) {
		t.Errorf("%+v", e)
	}
	q.enqueue(a2)
	q.lease(10, a2)
}

func noticeRedeliver(t *testing.T, q *noticeQueue) {
	var all []notice.Key
	for _, intent := range []byte{3, 1, 2} {
		all = append(all, noticeKey(1, intent, 1), noticeKey(1, intent, 2))
	}
	q.enqueue(append(all, noticeKey(2, 1, 1))...)
	q.lease(10, all[0], all[2], noticeKey(2, 1, 1))
	q.done(noticeUnfit, all[0], all[2], noticeKey(2, 1, 1))
	q.lease(10, all[1], all[3])
	q.done(noticeUnfit, all[3])
	q.done(noticeTaken, all[1])
	var listed []string
	var after notice.Key
	for {
		page, err := q.Dead(soon(t), all[0].Endpoint, after, 2)
		check(t, err)
		for _, n := range page {
			listed, after = append(listed, noticeName(n.Key)), n.Key
		}
		if len(page) < 2 {
			break
		}
	}
	if diff := cmp.Diff([]string{"1/1/1", "1/1/2", "1/3/1"}, listed); diff != "" {
		t.Error(diff)
	}
	// A delivered one can be sent again, one of another endpoint and one that is queued
	// are not concerned.
	n, err := q.Redeliver(soon(t), all[0].Endpoint, []notice.Key{all[3], all[2], all[1], all[5], noticeKey(2, 1, 1), noticeKey(1, 9, 9)})
	if check(t, err); n != 3 {
		t.Errorf("%d are redelivered", n)
	}
	q.want(all[2], notice.Queued, 0)
	q.want(noticeKey(2, 1, 1), notice.Dead, 1)
	q.lease(1, all[4])
	q.done(noticeTaken, all[4])
	leased, _, err := q.Lease(soon(t), "a", time.Minute, 10)
	check(t, err)
	for _, n := range leased {
		if n.Key == all[3] {
			t.Error("a redelivered notice did not wait for the one before it")
		}
	}
	if len(leased) != 2 {
		t.Errorf("%d are leased", len(leased))
	}
}

func noticeEnqueue(t *testing.T, q *noticeQueue) {
	k := noticeKey(1, 1, 1)
	q.enqueue(k)
	for _, from := range []event.Position{0, 2} {
		if err := q.Enqueue(soon(t), "notifier", from, 9, noticeNews(noticeKey(1, 2, 1))); !errors.Is(err, event.ErrMoved) {
			t.Errorf("enqueued from %d: %v", from, err)
		}
	}
	if _, ok, err := q.Find(soon(t), noticeKey(1, 2, 1)); ok || err != nil {
		t.Errorf("a refused enqueue left a notice: %v", err)
	}
	q.lease(10, k)
	q.done(noticeTaken, k)
	q.enqueue(k) // from a reader that was set back
	q.want(k, notice.Settled, 1)
	q.enqueue()
	q.lease(10)
	if leased, until, err := q.Lease(soon(t), "a", time.Minute, 10); err != nil || len(leased) != 0 || until != horizon {
		t.Errorf("an empty queue: %d, the next in %s, %v", len(leased), until, err)
	}
	largest := notice.News{Key: notice.Key{Endpoint: notice.EndpointID{0xff}, Intent: chain.IntentID{0xff}, Seq: 1<<63 - 1}, URL: "u"}
	check(t, q.Enqueue(soon(t), "other reader", 0, 1, []notice.News{largest}))
	if n, ok, err := q.Find(soon(t), largest.Key); !ok || err != nil || n.Key != largest.Key || len(n.Body) != 0 {
		t.Errorf("%+v, %v", n, err)
	}
}

func noticeForget(t *testing.T, q *noticeQueue) {
	a, b, c := noticeKey(1, 1, 1), noticeKey(1, 2, 1), noticeKey(1, 3, 1)
	q.enqueue(a, b)
	q.lease(10, a, b)
	q.done(noticeTaken, a)
	q.done(noticeUnfit, b)
	q.enqueue(c)
	forget := func(before time.Time, limit, want int) {
		t.Helper()
		if n, err := q.Forget(soon(t), before, limit); err != nil || n != want {
			t.Errorf("forgot %d, %v; want %d", n, err, want)
		}
	}
	settled := q.want(a, notice.Settled, 1).LastAt
	forget(settled, 10, 0)
	forget(settled.Add(time.Hour), 1, 1)
	forget(settled.Add(time.Hour), 10, 1)
	forget(settled.Add(time.Hour), 10, 0)
	q.lease(10, c)
}

func noticeReopened(t *testing.T, q *noticeQueue) {
	a, b := noticeKey(1, 1, 1), noticeKey(1, 1, 2)
	q.enqueue(a, b)
	q.lease(10, a)
	q.done(noticeFailed, a)
	before, e := q.want(a, notice.Queued, 1), q.endpoint(1)
	q.NoticeRows = q.reopen()
	if diff := cmp.Diff(before, q.want(a, notice.Queued, 1)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(e, q.endpoint(1)); diff != "" {
		t.Error(diff)
	}
	q.clock.Elapse(noticePause + time.Millisecond)
	q.lease(10, a)
}

// Workers share a queue that is still being filled: nothing is held by two, an endpoint
// has no more at one time than its share, and every intent's notices come in order.
func noticeWorkers(t *testing.T, q *noticeQueue) {
	const endpoints, intents, each, workers = 4, 6, 4, 4
	ctx := soon(t)
	var mu sync.Mutex
	running := map[byte]int{}
	last := map[notice.Key]uint64{}
	left := endpoints * intents * each
	begin := func(n notice.Sending) {
		mu.Lock()
		defer mu.Unlock()
		of := notice.Key{Endpoint: n.Endpoint, Intent: n.Intent}
		if running[n.Endpoint[0]]++; running[n.Endpoint[0]] > NoticePolicy().Concurrency {
			t.Errorf("%d at endpoint %d", running[n.Endpoint[0]], n.Endpoint[0])
		}
		if last[of]+1 != n.Seq {
			t.Errorf("%s came after %d", noticeName(n.Key), last[of])
		}
		last[of] = n.Seq
	}
	work := func(holder string) error {
		for {
			leased, _, err := q.Lease(ctx, holder, time.Minute, 3)
			if err != nil {
				return err
			}
			var reports []notice.Report
			for _, n := range leased {
				begin(n)
				reports = append(reports, notice.Report{Key: n.Key, Outcome: noticeTaken})
			}
			mu.Lock()
			for _, n := range leased { // before Done: another may have the next one at once
				running[n.Endpoint[0]]--
			}
			left -= len(leased)
			over := left == 0
			mu.Unlock()
			if _, err := q.Done(ctx, holder, reports); err != nil || over {
				return err
			}
			mu.Lock()
			over = left == 0
			mu.Unlock()
			if over {
				return nil
			}
		}
	}
	var working sync.WaitGroup
	for w := range workers {
		working.Go(func() {
			if err := work(fmt.Sprint("worker ", w)); err != nil {
				t.Error(err)
			}
		})
	}
	for seq := range uint64(each) {
		for intent := range byte(intents) {
			var keys []notice.Key
			for endpoint := range byte(endpoints) {
				keys = append(keys, noticeKey(endpoint, intent, seq+1))
			}
			q.enqueue(keys...)
		}
	}
	working.Wait()
}
