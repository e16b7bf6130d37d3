package rest

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/access"
)

// A client pays for all bytes that it has read, however many of its requests read at once, and
// never gets more than its rate allows in the long run.
func TestOverdraftsArePaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := Rate{PerSecond: rapid.IntRange(1, 1000).Draw(t, "rate"), Burst: rapid.IntRange(1, 100).Draw(t, "burst")}
		l, now, c := newLimiter(limiterShards), testTime, client{key: access.KeyID{1}}
		charged := 0
		for range 50 {
			now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "pause")) * rate.interval())
			if rapid.Bool().Draw(t, "late") {
				n := rapid.IntRange(1, rate.Burst).Draw(t, "n")
				if q := l.overdraw(now, c, rate, n); q.left < 0 || q.left > 0 && q.full > rate.window() {
					t.Fatalf("quota %+v of %+v", q, rate)
				}
				charged += n
				continue
			}
			q := l.take(now, c, rate, 1)
			if q.wait > 0 {
				if early := l.take(now.Add(q.wait-1), c, rate, 1); early.wait == 0 {
					t.Fatalf("granted before the wait of %s was over", q.wait)
				}
				now = now.Add(q.wait)
				if q = l.take(now, c, rate, 1); q.wait > 0 {
					t.Fatalf("refused after the wait, for %s more", q.wait)
				}
			}
			charged++
			if most := rate.Burst + int(now.Sub(testTime)/rate.interval()); charged > most {
				t.Fatalf("granted though %d were charged, and at most %d had come in", charged, most)
			}
		}
	})
}

// An overdraft locks no client out when its rate changes, or the clock is set back.
func TestOverdraftDoesNotLockOut(t *testing.T) {
	slow, fast := Rate{PerSecond: 1, Burst: 10}, Rate{PerSecond: 10, Burst: 10}
	for name, after := range map[string]struct {
		now  time.Time
		rate Rate
		wait time.Duration
	}{
		"a higher rate":             {testTime, fast, 6 * time.Second / 10},
		"a clock that was set back": {testTime.Add(-time.Hour), slow, 6 * time.Second},
	} {
		l, who := newLimiter(1), client{}
		l.overdraw(testTime, who, slow, 10)
		l.overdraw(testTime, who, slow, 5)
		if q := l.take(after.now, who, after.rate, 1); q.wait != after.wait {
			t.Errorf("%s: %+v", name, q)
		}
		if q := l.take(after.now.Add(after.wait), who, after.rate, 1); q.wait != 0 {
			t.Errorf("%s, after the wait: %+v", name, q)
		}
	}
}

// A stream pays for the bytes of large events that its client receives.
func TestStreamsPayForBytes(t *testing.T) {
	a := newAPI(Config{Limits: DefaultLimits(), Now: func() time.Time { return testTime }})
	rate := Rate{PerSecond: 1, Burst: 10}
	f := &following{
		api: a, on: &exchange{api: a, payer: payer{rate: rate}},
		out: newFeed(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/events", nil), time.Second),
	}
	small, large := make(Encoded, scanBytes), make(Encoded, 300<<10)
	for _, text := range []Encoded{small, large} {
		if err := f.send(stretch{events: []shownEvent{{1, text}}, next: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if f.dueScans != 2 || f.scanned != 99 { // 299 events more than one
		t.Errorf("%d units are due, and %d events; want 2 and 99", f.dueScans, f.scanned)
	}
}
