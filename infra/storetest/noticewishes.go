package storetest

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// noticeWishes: many commands in one call have the effect that they have one by one.
func noticeWishes(t *testing.T, q *noticeQueue) {
	for name, c := range map[string]struct {
		wishes       []notice.Event
		off          bool
		queued, dead int // of four dead notices, after all sweeps
	}{
		"nothing":                          {nil, false, 0, 4},
		"all again":                        {[]notice.Event{redelivering(1)}, false, 4, 0},
		"disabled after that":              {[]notice.Event{redelivering(1), disabling(1)}, true, 0, 4},
		"and enabled":                      {[]notice.Event{redelivering(1), disabling(1), enabling(1)}, false, 0, 4},
		"all again then":                   {[]notice.Event{disabling(1), enabling(1), redelivering(1)}, false, 4, 0},
		"all again to a disabled one":      {[]notice.Event{disabling(1), redelivering(1), enabling(1)}, false, 0, 4},
		"enabled twice":                    {[]notice.Event{redelivering(1), enabling(1), enabling(1)}, false, 4, 0},
		"on and off":                       {[]notice.Event{disabling(1), enabling(1), disabling(1), enabling(1), disabling(1)}, true, 0, 4},
		"off and on":                       {[]notice.Event{disabling(1), enabling(1), disabling(1), disabling(1), enabling(1)}, false, 0, 4},
		"one again":                        {[]notice.Event{redelivering(1, noticeKey(1, 1, 1))}, false, 1, 3},
		"one again, many times":            {[]notice.Event{redelivering(1, noticeKey(1, 1, 1), noticeKey(1, 1, 1)), redelivering(1, noticeKey(1, 1, 1)), redelivering(1, noticeKey(1, 9, 9))}, false, 1, 3},
		"one again to a disabled one":      {[]notice.Event{disabling(1), redelivering(1, noticeKey(1, 1, 1))}, true, 0, 4},
		"one again, disabled":              {[]notice.Event{redelivering(1, noticeKey(1, 1, 1)), disabling(1)}, true, 0, 4},
		"one again, disabled, enabled":     {[]notice.Event{redelivering(1, noticeKey(1, 1, 1)), disabling(1), enabling(1)}, false, 1, 3},
		"two again between others":         {[]notice.Event{redelivering(1, noticeKey(1, 0, 1)), redelivering(2, noticeKey(2, 1, 1)), redelivering(1, noticeKey(1, 3, 1))}, false, 2, 2},
		"a record is none, and an unknown": {[]notice.Event{notice.WasDisabled{Endpoint: notice.EndpointID{1}, Reason: notice.SaidGone}, disabling(9)}, false, 0, 4},
	} {
		for _, each := range []bool{true, false} {
			q.allDead()
			if each {
				for _, w := range c.wishes {
					q.carryOut(w)
				}
			} else {
				q.carryOut(c.wishes...)
			}
			q.sweep()
			q.counts(1, c.queued, c.dead)
			if e := q.endpoint(1); (e.Disabled != notice.Enabled) != c.off {
				t.Errorf("%+v", e)
			}
			if t.Failed() {
				t.Fatalf("%s, one by one %t", name, each)
			}
		}
	}
}

// allDead makes the four notices of endpoint 1 dead, and the endpoint enabled.
func (q *noticeQueue) allDead() {
	q.t.Helper()
	q.fill(1, "c", 4, 1)
	q.fill(2, "c", 4, 1)
	q.carryOut(disabling(1), disabling(2))
	q.sweep()
	q.carryOut(enabling(1), enabling(2))
	q.sweep()
	q.counts(1, 0, 4)
}

// noticeWishesAndNews: commands come before the notices of the same call, also commands on an
// endpoint that exists by these notices alone.
func noticeWishesAndNews(t *testing.T, q *noticeQueue) {
	q.enqueue(noticeKey(1, 1, 1), noticeKey(2, 1, 1), noticeKey(3, 1, 1))
	q.lease(10, noticeKey(1, 1, 1), noticeKey(2, 1, 1), noticeKey(3, 1, 1))
	q.done(noticeTaken, noticeKey(1, 1, 1), noticeKey(2, 1, 1), noticeKey(3, 1, 1))
	q.disable(2)
	q.sweep()
	news := noticeNews(noticeKey(1, 1, 2), noticeKey(2, 1, 2), noticeKey(3, 1, 2), noticeKey(4, 1, 1), noticeKey(5, 1, 1))
	news = append(news, notice.News{Key: notice.Key{Endpoint: notice.EndpointID{6}}, URL: "u", Client: "six"})
	wishes := []notice.Event{disabling(1), enabling(2), redelivering(3, noticeKey(3, 1, 1)), disabling(4), disabling(6), enabling(6)}
	check(t, q.CarryOut(soon(t), "notifier", q.at, q.at+1, wishes, news))
	q.at++
	for endpoint, stage := range map[byte]notice.Stage{1: notice.Dead, 2: notice.Queued, 3: notice.Queued} {
		q.want(noticeKey(endpoint, 1, 2), stage, 0)
	}
	q.want(noticeKey(4, 1, 1), notice.Dead, 0)
	if e := q.endpoint(6); e.Disabled != notice.Enabled || e.Client != "six" {
		t.Errorf("%+v", e)
	}
	if used, err := q.InUse(soon(t), "six", 10); err != nil || len(used) != 1 {
		t.Errorf("%d endpoints are in use, %v", len(used), err)
	}
	// A notice that is sent again goes before the later ones of its intent.
	q.lease(10, noticeKey(2, 1, 2), noticeKey(3, 1, 1), noticeKey(5, 1, 1))
	q.done(noticeTaken, noticeKey(3, 1, 1))
	q.lease(10, noticeKey(3, 1, 2))
}
