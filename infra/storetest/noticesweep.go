package storetest

import (
	"errors"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

func (q *noticeQueue) carryOut(wishes ...notice.Event) {
	q.t.Helper()
	check(q.t, q.CarryOut(soon(q.t), "notifier", q.at, q.at+1, wishes, nil))
	q.at++
}

func disabling(endpoint byte) notice.Event {
	return notice.WasDisabled{Endpoint: notice.EndpointID{endpoint}, Reason: notice.Operator}
}

func enabling(endpoint byte) notice.Event {
	return notice.WasEnabled{Endpoint: notice.EndpointID{endpoint}}
}

// redelivering requests redelivery of notices; without keys, of all dead ones.
func redelivering(endpoint byte, keys ...notice.Key) notice.Event {
	w := notice.RedeliveryAsked{Endpoint: notice.EndpointID{endpoint}}
	for _, k := range keys {
		w.Notices = append(w.Notices, notice.Ref{Intent: k.Intent, Seq: k.Seq})
	}
	return w
}

func (q *noticeQueue) disable(endpoint byte) {
	q.t.Helper()
	q.carryOut(disabling(endpoint))
}

func (q *noticeQueue) enable(endpoint byte) {
	q.t.Helper()
	q.carryOut(enabling(endpoint))
}

func (q *noticeQueue) redeliver(endpoint byte, keys ...notice.Key) {
	q.t.Helper()
	q.carryOut(redelivering(endpoint, keys...))
}

// part sweeps once, and returns whose turn it was.
func (q *noticeQueue) part(turn string, most int) (client string, found bool) {
	q.t.Helper()
	client, found, err := q.Sweep(soon(q.t), turn, most)
	check(q.t, err)
	return client, found
}

// sweep sweeps until nothing is pending.
func (q *noticeQueue) sweep() {
	q.t.Helper()
	for found := true; found; {
		_, found = q.part("", 100)
	}
}

// counts expects these numbers of queued and dead notices of an endpoint.
func (q *noticeQueue) counts(endpoint byte, queued, dead int) {
	q.t.Helper()
	for stage, want := range map[notice.Stage]int{notice.Queued: queued, notice.Dead: dead} {
		for _, most := range []int{want + 1, want, want / 2} {
			if n, err := q.Count(soon(q.t), notice.EndpointID{endpoint}, stage, most); err != nil || n != min(most, want) {
				q.t.Errorf("%d notices of %d are %s, not %d, counted up to %d: %v", n, endpoint, stage, want, most, err)
			}
		}
	}
}

// fill queues a number of notices for each of some intents.
func (q *noticeQueue) fill(endpoint byte, client string, intents, each int) {
	q.t.Helper()
	var keys []notice.Key
	for intent := range intents {
		for seq := range each {
			keys = append(keys, noticeKey(endpoint, byte(intent), uint64(seq+1)))
		}
	}
	news := noticeNews(keys...)
	for i := range news {
		news[i].Client = client
	}
	check(q.t, q.Enqueue(soon(q.t), "notifier", q.at, q.at+1, news))
	q.at++
}

// noticeSwept: a command takes one step however many notices wait, followed by parts of bounded
// size. Each part is done once, even if the process ends between two of them.
func noticeSwept(t *testing.T, q *noticeQueue) {
	q.fill(1, "c", 10, 4)
	q.fill(2, "c", 3, 1)
	q.disable(1)
	q.counts(1, 40, 0)
	q.lease(10, noticeKey(2, 0, 1), noticeKey(2, 1, 1)) // the other endpoint's are leased, and none of its own
	for done := 7; done <= 35; done += 7 {
		if client, found := q.part("", 7); !found || client != "c" {
			t.Fatalf("it was the turn of %q, %v", client, found)
		}
		q.counts(1, 40-done, done)
		if done == 14 {
			q.NoticeRows = q.reopen()
		}
	}
	q.part("", 7)
	if _, found := q.part("", 7); found {
		t.Error("there is more to be given up than there was")
	}
	q.counts(1, 0, 40)
	if n := q.want(noticeKey(1, 3, 2), notice.Dead, 0); n.Last.Cause != notice.Off {
		t.Errorf("given up: %+v", n)
	}
	q.enable(1)
	q.redeliver(1)
	q.counts(1, 0, 40)
	for done := 7; done <= 35; done += 7 {
		q.part("", 7)
		q.counts(1, done, 40-done)
		if done == 21 {
			q.NoticeRows = q.reopen()
		}
	}
	q.part("", 7)
	if _, found := q.part("", 7); found {
		t.Error("there is more to be redelivered than there was")
	}
	q.counts(1, 40, 0)
	q.lease(2, noticeKey(1, 0, 1), noticeKey(1, 1, 1))
	// A command is not applied again by a reader that repeats it.
	if err := q.CarryOut(soon(t), "notifier", q.at-1, q.at, []notice.Event{disabling(1)}, noticeNews(noticeKey(1, 99, 1))); !errors.Is(err, eventlog.ErrMoved) {
		t.Errorf("carried out once more: %v", err)
	}
	if e := q.endpoint(1); e.Disabled != notice.Enabled {
		t.Errorf("a refused command has changed %+v", e)
	}
	if _, ok, err := q.Find(soon(t), noticeKey(1, 99, 1)); ok || err != nil {
		t.Errorf("a refused call left a notice: %v", err)
	}
}

// noticeSweepTurns: clients take turns with parts, and so do a client's endpoints.
func noticeSweepTurns(t *testing.T, q *noticeQueue) {
	for endpoint := byte(1); endpoint <= 3; endpoint++ {
		q.fill(endpoint, "crowd", 4, 1)
		q.disable(endpoint)
	}
	q.fill(10, "victim", 4, 1)
	q.disable(10)
	turn := ""
	var order string
	for range 6 {
		client, found := q.part(turn, 2)
		if !found {
			t.Fatal("nothing is to be done")
		}
		order, turn = order+client[:1], client
		q.clock.Elapse(1000)
	}
	if order != "cvcvcv" {
		t.Errorf("turns: %s", order)
	}
	q.counts(10, 0, 4)
	for endpoint := byte(1); endpoint <= 3; endpoint++ {
		q.counts(endpoint, 2, 2)
	}
}

// noticeSweepChanged: an endpoint that is enabled before all is given up keeps the rest. An
// endpoint that is disabled before all is redelivered gets no further redelivery.
func noticeSweepChanged(t *testing.T, q *noticeQueue) {
	q.fill(1, "c", 4, 2)
	q.lease(10, noticeKey(1, 0, 1), noticeKey(1, 1, 1))
	q.disable(1)
	q.done(noticeTaken, noticeKey(1, 0, 1)) // it was being sent, and arrived
	q.want(noticeKey(1, 0, 1), notice.Settled, 1)
	q.done(noticeFailed, noticeKey(1, 1, 1))
	q.want(noticeKey(1, 1, 1), notice.Dead, 1)
	q.part("", 3)
	q.counts(1, 3, 4)
	q.enable(1)
	q.sweep()
	q.counts(1, 3, 4)
	if d, err := q.Depth(soon(t)); err != nil || d.Due == 0 {
		t.Errorf("nothing of the rest is due: %+v, %v", d, err)
	}
	q.redeliver(1)
	q.part("", 1)
	q.counts(1, 4, 3)
	q.disable(1)
	if d, err := q.Depth(soon(t)); err != nil || d.Due != 0 {
		t.Errorf("%d are due at the disabled endpoint, %v", d.Due, err)
	}
	q.sweep()
	q.counts(1, 0, 7)
	q.lease(10)
}
