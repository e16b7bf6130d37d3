package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// noticeDepth checks the counts while notices are sent, fail, are given up and are disabled.
// Only notices that a worker could send now are due.
func noticeDepth(t *testing.T, q *noticeQueue) {
	depth := func(what string, want notice.Depth) {
		t.Helper()
		got, err := q.Depth(soon(t))
		check(t, err)
		if got.OldestDue < 0 || got.Due == 0 && got.OldestDue != 0 || got.OldestDue > time.Minute {
			t.Errorf("%s: the oldest has been due for %s", what, got.OldestDue)
		}
		got.OldestDue = 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	depth("empty", notice.Depth{})
	a1, a2, b1, c1, d1 := noticeKey(1, 1, 1), noticeKey(1, 1, 2), noticeKey(1, 2, 1), noticeKey(2, 1, 1), noticeKey(3, 1, 1)
	q.enqueue(a1, a2, b1, c1, d1)
	depth("queued", notice.Depth{Queued: 5, Due: 4, Working: 3}) // a2 waits behind a1
	q.clock.Elapse(time.Second)
	if got, err := q.Depth(soon(t)); err != nil || got.OldestDue < time.Second {
		t.Errorf("after a second the oldest has been due for %s, %v", got.OldestDue, err)
	}
	q.lease(10, a1, b1, c1, d1)
	depth("under way", notice.Depth{Queued: 1, Delivering: 4, Working: 3})
	q.done(noticeTaken, a1, b1)
	depth("two are delivered", notice.Depth{Queued: 1, Delivering: 2, Due: 1, Working: 3})
	q.done(noticeFailed, c1)
	depth("one has failed", notice.Depth{Queued: 2, Delivering: 1, Due: 1, Working: 2, Failing: 1})
	q.done(noticeUnfit, d1)
	depth("one is given up", notice.Depth{Queued: 2, Dead: 1, Due: 1, Working: 2, Failing: 1})
	q.disable(2)
	q.sweep()
	depth("an endpoint is disabled", notice.Depth{Queued: 1, Dead: 2, Due: 1, Working: 2, Disabled: 1})
}
