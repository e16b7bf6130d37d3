package storetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// NoticeRows is the queue of notices (webhook deliveries).
type NoticeRows interface {
	Enqueue(ctx context.Context, reader string, from, to eventlog.Position, news []notice.News) error
	Lease(ctx context.Context, c notice.Claim) ([]notice.Sending, time.Duration, error)
	Done(ctx context.Context, holder string, reports []notice.Report) ([]notice.Endpoint, error)
	Find(ctx context.Context, k notice.Key) (notice.Notice, bool, error)
	Dead(ctx context.Context, endpoint notice.EndpointID, after notice.Key, limit int) ([]notice.Notice, error)
	Endpoint(ctx context.Context, id notice.EndpointID) (notice.Endpoint, bool, error)
	Endpoints(ctx context.Context, client *string, after notice.EndpointID, limit int) ([]notice.Endpoint, error)
	CarryOut(ctx context.Context, reader string, from, to eventlog.Position, wishes []notice.Event, news []notice.News) error
	Sweep(ctx context.Context, turn string, most int) (client string, found bool, err error)
	Count(ctx context.Context, endpoint notice.EndpointID, stage notice.Stage, most int) (int, error)
	Forget(ctx context.Context, before time.Time, limit int) (int, error)
	Depth(ctx context.Context) (notice.Depth, error)
	Queued(ctx context.Context, client string, most int) (int, error)
	InUse(ctx context.Context, client string, most int) ([]notice.EndpointID, error)
}

// noticePause is the first pause of NoticePolicy.
const noticePause = 200 * time.Millisecond

// NoticePolicy is the policy under which the contract of notices is tested.
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
		{"a client's endpoints, and their attempts", noticeAttempts},
		{"one intent's notices go in order", noticeOrder},
		{"a dead notice lets the next one go", noticeDead},
		{"a failed notice waits, and others do not", noticeRetry},
		{"an endpoint's share", noticeShare},
		{"a client with many due deliveries delays no other", noticeFair},
		{"a crowd of another client's keeps nobody waiting", noticeCrowd},
		{"turns of clients go on from lease to lease", noticeTurns},
		{"slow endpoints of a client leave slots to others", noticeSlots},
		{"a client's endpoints in use", noticeInUse},
		{"a client's queued deliveries", noticeQueued},
		{"a lease lapses", noticeLapse},
		{"a paused endpoint", noticePaused},
		{"an endpoint that is gone", noticeGone},
		{"an operator disables and enables", noticeOperator},
		{"endpoints are listed", noticeEndpoints},
		{"dead letters are listed and redelivered", noticeRedeliver},
		{"very many are given up and redelivered some at a time", noticeSwept},
		{"sweeps of many deliveries take turns", noticeSweepTurns},
		{"an endpoint changes while its notices are swept", noticeSweepChanged},
		{"commands are carried out many at a time", noticeWishes},
		{"deliveries come with commands", noticeWishesAndNews},
		{"enqueued deliveries", noticeEnqueue},
		{"forget", noticeForget},
		{"queued deliveries are counted", noticeDepth},
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
	at     eventlog.Position
}

// noticeKey makes a notice's key from endpoint, intent and sequence.
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

// lease leases as "a" and expects these notices.
func (q *noticeQueue) lease(limit int, want ...notice.Key) {
	q.t.Helper()
	leased, _, err := q.Lease(soon(q.t), notice.Claim{Holder: "a", TTL: time.Minute, Limit: limit})
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

// done reports as "a" and returns the endpoints that became disabled.
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
	q.done(noticeTaken, a2, a3) // a second report changes nothing
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
		leased, until, err := q.Lease(soon(t), notice.Claim{Holder: "a", TTL: time.Minute, Limit: 10})
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

func noticeLapse(t *testing.T, q *noticeQueue) {
	k, next := noticeKey(1, 1, 1), noticeKey(1, 1, 2)
	q.enqueue(k, next)
	leased, _, err := q.Lease(soon(t), notice.Claim{Holder: "b", TTL: noticePause, Limit: 10})
	check(t, err)
	if len(leased) != 1 {
		t.Fatalf("leased %+v", leased)
	}
	for leased = nil; len(leased) == 0; {
		var until time.Duration
		leased, until, err = q.Lease(soon(t), notice.Claim{Holder: "a", TTL: time.Minute, Limit: 10})
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
