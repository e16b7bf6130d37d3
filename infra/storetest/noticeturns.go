package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// ofClientAt queues one notice per intent for each of a client's endpoints.
func (q *noticeQueue) ofClientAt(client string, endpoints []byte, intents int) {
	q.t.Helper()
	var keys []notice.Key
	for _, endpoint := range endpoints {
		for intent := range intents {
			keys = append(keys, noticeKey(endpoint, byte(intent), 1))
		}
	}
	news := noticeNews(keys...)
	for i := range news {
		news[i].Client = client
	}
	check(q.t, q.Enqueue(soon(q.t), "notifier", q.at, q.at+1, news))
	q.at++
}

// clients leases, and expects as many notices of each client as its letter occurs in want.
func (q *noticeQueue) clients(c notice.Claim, want string) []notice.Sending {
	q.t.Helper()
	c.Holder, c.TTL = "a", time.Minute
	leased, _, err := q.Lease(soon(q.t), c)
	check(q.t, err)
	var got []string
	for _, n := range leased {
		got = append(got, n.Client)
	}
	if strings.Join(got, "") != want {
		q.t.Errorf("leased of %v, not %q", got, want)
	}
	return leased
}

func endpointsFrom(first, n byte) (all []byte) {
	for i := range n {
		all = append(all, first+i)
	}
	return all
}

// noticeCrowd: a client's notices are leased with the next ones, first attempts and retries
// alike, however many are due at however many endpoints of another client.
func noticeCrowd(t *testing.T, q *noticeQueue) {
	q.ofClientAt("c", endpointsFrom(1, 40), 5)
	q.ofClientAt("v", []byte{100}, 3)
	first := q.clients(notice.Claim{Limit: 4, Turn: "a"}, "cvcv")
	for _, n := range first {
		if n.Client == "v" {
			q.done(noticeTaken, n.Key)
		} else {
			q.done(noticeFailed, n.Key)
		}
	}
	q.clock.Elapse(noticePause + time.Millisecond) // the crowd's retries are due too
	q.clients(notice.Claim{Limit: 5, Turn: "v"}, "cvccc")
	q.clients(notice.Claim{Limit: 3, Turn: "v"}, "ccc")
	if e := q.endpoint(100); e.Client != "v" {
		t.Errorf("%+v", e)
	}
}

// noticeTurns: leases of one notice each serve all clients equally.
func noticeTurns(_ *testing.T, q *noticeQueue) {
	q.ofClientAt("b", endpointsFrom(1, 3), 2)
	q.ofClientAt("a", []byte{10}, 2)
	q.ofClientAt("c", []byte{20, 21}, 1)
	q.ofClientAt("", []byte{30}, 1)
	turn := ""
	for _, want := range []string{"a", "b", "c", "", "a", "b", "c", "b", "b"} {
		q.clients(notice.Claim{Limit: 1, Turn: turn}, want)
		turn = want
	}
	// No endpoint of a client gets a second notice before each has one.
	var at []byte
	for _, n := range q.clients(notice.Claim{Limit: 10}, "bb") {
		at = append(at, n.Endpoint[0])
	}
	if slices.Sort(at); at[0] == at[1] {
		q.t.Errorf("at the endpoints %v", at)
	}
}

// noticeSlots: a client with slow attempts leaves some of the worker's slots to others. Its
// notices do not shorten the time that the worker is told to wait.
func noticeSlots(t *testing.T, q *noticeQueue) {
	q.ofClientAt("c", endpointsFrom(1, 40), 1)
	c := notice.Claim{Limit: 8, Slots: 8, Busy: map[string]int{}}
	if n := len(q.clients(c, "cccccc")); n != 6 {
		t.Fatalf("it takes %d of 8 slots", n)
	}
	c.Limit, c.Busy = 2, map[string]int{"c": 6}
	leased, until, err := q.Lease(soon(t), notice.Claim{Holder: "a", TTL: time.Minute, Limit: c.Limit, Slots: c.Slots, Busy: c.Busy})
	if check(t, err); len(leased) != 0 || until < time.Second {
		t.Errorf("leased %d, more in %s", len(leased), until)
	}
	q.ofClientAt("v", []byte{100}, 2)
	q.clients(c, "v")
	c.Limit, c.Busy = 1, map[string]int{"c": 6, "v": 1}
	q.clients(c, "")
	c.Limit, c.Busy = 3, map[string]int{"c": 4, "v": 1}
	q.clients(c, "cv")
}

// noticeQueued: a client's deliveries are counted while they are queued, until they are delivered or
// their endpoint is disabled.
func noticeQueued(t *testing.T, q *noticeQueue) {
	has := func(client string, most, want int) {
		t.Helper()
		if n, err := q.Queued(soon(t), client, most); err != nil || n != want {
			t.Errorf("%q has %d, %v; not %d", client, n, err, want)
		}
	}
	has("a", 10, 0)
	q.ofClientAt("a", []byte{1, 2}, 3)
	q.ofClientAt("b", []byte{3}, 1)
	has("a", 10, 6)
	has("a", 4, 4)
	has("b", 10, 1)
	has("c", 10, 0)
	q.clients(notice.Claim{Limit: 1}, "a")
	has("a", 10, 6) // one of them is sent now
	q.disable(2)
	has("a", 10, 3)
	q.enable(2)
	has("a", 10, 6)
	q.disable(1)
	q.sweep()
	has("a", 10, 3)
}

// noticeInUse: an endpoint is in use for [notice.UseFor] after an intent that names it, and
// while notices are queued for it, unless it is disabled.
func noticeInUse(t *testing.T, q *noticeQueue) {
	uses := func(client string, most int, want ...byte) {
		t.Helper()
		used, err := q.InUse(soon(t), client, most)
		check(t, err)
		var got []byte
		for _, id := range used {
			got = append(got, id[0])
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q uses %v, not %v", client, got, want)
		}
	}
	asked := func(client string, endpoints ...byte) {
		t.Helper()
		var news []notice.News
		for _, e := range endpoints {
			news = append(news, notice.News{Key: notice.Key{Endpoint: notice.EndpointID{e}}, Client: client, URL: "u"})
		}
		check(t, q.Enqueue(soon(t), "notifier", q.at, q.at+1, news))
		q.at++
	}
	uses("a", 10)
	asked("a", 1, 2)
	asked("b", 3)
	asked("a", 1)
	uses("a", 10, 1, 2)
	q.clients(notice.Claim{Limit: 10}, "") // nothing to send
	q.ofClientAt("a", []byte{4}, 1)        // of an intent accepted before the use of endpoints was recorded
	uses("a", 10, 1, 2, 4)
	uses("b", 10, 3)
	q.lease(10, noticeKey(4, 0, 1))
	uses("a", 10, 1, 2, 4)
	q.done(noticeTaken, noticeKey(4, 0, 1))
	uses("a", 10, 1, 2)
	q.disable(2)
	uses("a", 10, 1)
	q.enable(2)
	if used, err := q.InUse(soon(t), "a", 1); err != nil || len(used) != 1 {
		t.Errorf("%v, %v", used, err)
	}
}
