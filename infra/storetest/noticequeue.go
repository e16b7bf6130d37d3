package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

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
	// A delivered notice can be redelivered. A notice of another endpoint, and a queued one,
	// are not affected.
	q.redeliver(1, all[3], all[2], all[1], all[5], noticeKey(1, 9, 9))
	if d, err := q.Depth(soon(t)); err != nil || d.Queued != 5 {
		t.Errorf("%d are queued, %v", d.Queued, err)
	}
	q.want(all[2], notice.Queued, 0)
	q.want(noticeKey(2, 1, 1), notice.Dead, 1)
	q.lease(1, all[4])
	q.done(noticeTaken, all[4])
	leased, _, err := q.Lease(soon(t), notice.Claim{Holder: "a", TTL: time.Minute, Limit: 10})
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
	for _, from := range []eventlog.Position{0, 2} {
		if err := q.Enqueue(soon(t), "notifier", from, 9, noticeNews(noticeKey(1, 2, 1))); !errors.Is(err, eventlog.ErrMoved) {
			t.Errorf("enqueued from %d: %v", from, err)
		}
	}
	if _, ok, err := q.Find(soon(t), noticeKey(1, 2, 1)); ok || err != nil {
		t.Errorf("a refused enqueue left a notice: %v", err)
	}
	q.lease(10, k)
	q.done(noticeTaken, k)
	q.enqueue(k) // from a reader whose checkpoint fell back
	q.want(k, notice.Settled, 1)
	q.enqueue()
	q.lease(10)
	if leased, until, err := q.Lease(soon(t), notice.Claim{Holder: "a", TTL: time.Minute, Limit: 10}); err != nil || len(leased) != 0 || until != horizon {
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

// Workers share a queue that is still being filled. No notice is leased by two, an endpoint has
// at most its share at one time, and every intent's notices come in order.
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
			leased, _, err := q.Lease(ctx, notice.Claim{Holder: holder, TTL: time.Minute, Limit: 3})
			if err != nil {
				return err
			}
			var reports []notice.Report
			for _, n := range leased {
				begin(n)
				reports = append(reports, notice.Report{Key: n.Key, Outcome: noticeTaken})
			}
			mu.Lock()
			for _, n := range leased { // before Done: another worker may get the next one at once
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
