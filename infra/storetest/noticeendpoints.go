package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

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
	q.lease(10) // it is failing: one at a time
	q.done(noticeFailed, all[1])
	leased, _, err := q.Lease(soon(q.t), notice.Claim{Holder: "a", TTL: time.Minute, Limit: 10})
	check(q.t, err)
	if len(leased) != 1 {
		q.t.Fatalf("%d at a time at an endpoint that fails", len(leased))
	}
	q.done(noticeTaken, leased[0].Key)
	leased, _, err = q.Lease(soon(q.t), notice.Claim{Holder: "a", TTL: time.Minute, Limit: 10})
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
		leased, until, err := q.Lease(soon(t), notice.Claim{Holder: "a", TTL: time.Minute, Limit: 1})
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
	_, until, err := q.Lease(soon(t), notice.Claim{Holder: "a", TTL: time.Minute, Limit: 10})
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
	q.sweep()
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
	q.redeliver(1, a1)
	q.redeliver(1)
	q.sweep()
	q.want(a1, notice.Dead, 1)
}

func noticeOperator(t *testing.T, q *noticeQueue) {
	a1, a2 := noticeKey(1, 1, 1), noticeKey(1, 1, 2)
	q.disable(1) // an unknown endpoint
	if _, ok, err := q.Endpoint(soon(t), a1.Endpoint); ok || err != nil {
		t.Fatalf("an endpoint came of nothing: %v", err)
	}
	q.enqueue(a1)
	q.disable(1)
	q.sweep()
	if e := q.endpoint(1); e.Disabled != notice.Operator || e.URL != "https://1.example.org/" {
		t.Errorf("%+v", e)
	}
	q.want(a1, notice.Dead, 0)
	q.lease(10)
	q.enable(1)
	if e := q.endpoint(1); e != (notice.Endpoint{ID: a1.Endpoint, URL: e.URL, Client: e.Client}) {
		t.Errorf("%+v", e)
	}
	q.enqueue(a2)
	q.lease(10, a2)
}

func noticeEndpoints(t *testing.T, q *noticeQueue) {
	q.enqueue(noticeKey(3, 1, 1), noticeKey(0xff, 1, 1), noticeKey(1, 1, 1), noticeKey(2, 1, 1))
	q.disable(2)
	var listed []string
	var after notice.EndpointID
	for {
		page, err := q.Endpoints(soon(t), nil, after, 3)
		check(t, err)
		for _, e := range page {
			listed, after = append(listed, fmt.Sprintf("%d %q", e.ID[0], e.Disabled)), e.ID
			if diff := cmp.Diff(q.endpoint(e.ID[0]), e); diff != "" {
				t.Error(diff)
			}
		}
		if len(page) < 3 {
			break
		}
	}
	if diff := cmp.Diff([]string{`1 ""`, `2 "operator"`, `3 ""`, `255 ""`}, listed); diff != "" {
		t.Error(diff)
	}
}

// An endpoint counts its attempts. A client lists its own endpoints alone.
func noticeAttempts(t *testing.T, q *noticeQueue) {
	q.ofClientAt("c", []byte{1, 3}, 1)
	q.ofClientAt("v", []byte{2}, 1)
	one, two, three := noticeKey(1, 0, 1), noticeKey(2, 0, 1), noticeKey(3, 0, 1)
	if e := q.endpoint(1); e.Attempts != 0 || !e.LastAt.IsZero() || e.Last != (notice.Outcome{}) {
		t.Errorf("without an attempt: %+v", e)
	}
	q.lease(10, one, two, three)
	failed := notice.Outcome{Class: notice.Later, Cause: notice.Status, Status: 429, RetryAfter: time.Second}
	q.done(failed, two)
	q.done(noticeTaken, one, three)
	failed.RetryAfter = 0
	if e := q.endpoint(1); e.Attempts != 1 || e.Delivered != 1 || e.LastAt.IsZero() || e.Last != noticeTaken {
		t.Errorf("after a delivery: %+v", e)
	}
	before := q.endpoint(2)
	if before.Attempts != 1 || before.Delivered != 0 || before.LastAt.IsZero() || before.Last != failed {
		t.Errorf("after a failure: %+v", before)
	}
	q.disable(2)
	q.enable(2)
	if e := q.endpoint(2); e.Attempts != 1 || e.Delivered != 0 || e.Last != failed || !e.LastAt.Equal(before.LastAt) {
		t.Errorf("enabled again: %+v", e)
	}
	for client, want := range map[string][]byte{"c": {1, 3}, "v": {2}, "": nil} {
		var got []byte
		for after, more := (notice.EndpointID{}), true; more; {
			page, err := q.Endpoints(soon(t), &client, after, 1)
			check(t, err)
			for _, e := range page {
				got, after = append(got, e.ID[0]), e.ID
			}
			more = len(page) == 1
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("endpoints of %q: %s", client, diff)
		}
	}
}
