package rest

import (
	"encoding/binary"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/access"
)

// For any requests at any times, no client gets more than its burst plus the refill since. A
// client that waits as told is served.
func TestLimiterIsATokenBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := Rate{PerSecond: rapid.IntRange(1, 1000).Draw(t, "rate"), Burst: rapid.IntRange(1, 100).Draw(t, "burst")}
		l, now, c := newLimiter(limiterShards), testTime, client{key: access.KeyID{1}}
		began, granted := now, 0
		for range 50 {
			now = now.Add(time.Duration(rapid.IntRange(0, int(2*rate.interval())).Draw(t, "pause")))
			n := rapid.IntRange(1, rate.Burst).Draw(t, "n")
			q := l.take(now, c, rate, n)
			if q.wait > 0 {
				if q.left >= n {
					t.Fatalf("%d refused while %d were left", n, q.left)
				}
				if early := l.take(now.Add(q.wait-1), c, rate, n); early.wait == 0 {
					t.Fatalf("granted before the wait of %s was over", q.wait)
				}
				now = now.Add(q.wait)
				if q = l.take(now, c, rate, n); q.wait > 0 {
					t.Fatalf("refused after the wait, for %s more", q.wait)
				}
			}
			granted += n
			if most := rate.Burst + int(now.Sub(began)/rate.interval()); granted > most {
				t.Fatalf("granted %d, at most %d had come in", granted, most)
			}
			if q.left < 0 || q.left > rate.Burst || q.full < 0 || q.full > rate.window() {
				t.Fatalf("quota %+v of %+v", q, rate)
			}
		}
	})
}

// A client pays each unit that its streams have cost, in order, beside its other requests, and
// never more than its bucket has.
func TestDebtsArePaidWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := Rate{PerSecond: rapid.IntRange(1, 1000).Draw(t, "rate"), Burst: rapid.IntRange(1, 100).Draw(t, "burst")}
		l, now, c := newLimiter(limiterShards), testTime, client{key: access.KeyID{1}}
		granted, settled, due := 0, uint64(0), uint64(0)
		within := func() {
			if most := rate.Burst + int(now.Sub(testTime)/rate.interval()); granted+int(settled) > most {
				t.Fatalf("granted %d and paid %d, at most %d had come in", granted, settled, most)
			}
		}
		for range 20 {
			due = l.owe(c, rapid.IntRange(0, 500).Draw(t, "cost"))
			now = now.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "pause")) * rate.interval() / 10)
			if l.take(now, c, rate, 1).wait == 0 {
				granted++
			}
			if upto := rapid.Uint64Range(settled, due).Draw(t, "upto"); l.settle(now, c, rate, upto) == 0 {
				settled = upto
			}
			within()
		}
		for wait := l.settle(now, c, rate, due); wait > 0; wait = l.settle(now, c, rate, due) {
			now = now.Add(wait)
		}
		settled = due
		within()
	})
}

func clientOf(i int) (c client) {
	binary.BigEndian.PutUint64(c.key[:], uint64(i))
	return c
}

func TestLimiterForgetsWhoWasNotSeenForLongest(t *testing.T) {
	const clients = 4 * limiterShards
	l, rate := newLimiter(clients), Rate{PerSecond: 1, Burst: 1}
	for i := range 100 * clients {
		l.take(testTime, clientOf(i), rate, 1)
	}
	known := 0
	for i := range l.shards {
		s := &l.shards[i]
		in := 0
		for b := s.order.next; b != &s.order; b = b.next {
			if s.buckets[b.client] != b {
				t.Fatal("a bucket is in the order and not in the map")
			}
			in++
		}
		if in != len(s.buckets) {
			t.Fatalf("%d buckets in the order, %d in the map", in, len(s.buckets))
		}
		known += in
	}
	if known > clients {
		t.Errorf("%d clients are remembered, at most %d should be", known, clients)
	}
	// The last client is among them, even after the clock was set back by an hour.
	last := clientOf(100*clients - 1)
	if q := l.take(testTime.Add(-time.Hour), last, rate, 1); q.wait != time.Second {
		t.Errorf("the last client: %+v", q)
	}
}

func TestClientAddress(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}
	for _, tt := range []struct {
		peer      string
		forwarded []string
		want      string
	}{
		{"192.0.2.1:5", nil, "192.0.2.1"},
		{"192.0.2.1:5", []string{"203.0.113.9"}, "192.0.2.1"}, // not a trusted proxy
		{"10.0.0.1:5", nil, "10.0.0.1"},
		{"10.0.0.1:5", []string{"203.0.113.9"}, "203.0.113.9"},
		{"10.0.0.1:5", []string{"1.1.1.1, 203.0.113.9, 10.1.1.1"}, "203.0.113.9"}, // the client forged 1.1.1.1
		{"10.0.0.1:5", []string{"1.1.1.1", "203.0.113.9,10.1.1.1"}, "203.0.113.9"},
		{"10.0.0.1:5", []string{"10.2.2.2, 10.1.1.1"}, "10.2.2.2"},
		{"10.0.0.1:5", []string{"203.0.113.9:4711"}, "203.0.113.9"},
		{"10.0.0.1:5", []string{"[2001:db8:2::1]:4711"}, "2001:db8:2::"},
		{"10.0.0.1:5", []string{"unknown, 10.1.1.1"}, "10.1.1.1"},
		{"10.0.0.1:5", []string{""}, "10.0.0.1"},
		{"10.0.0.1:5", []string{strings.Repeat("10.9.9.9,", 20) + "10.9.9.9"}, "10.9.9.9"},
		{"10.0.0.1:5", []string{"203.0.113.9," + strings.Repeat("10.9.9.9,", 20) + "10.9.9.9"}, "10.9.9.9"}, // beyond forwardedMax
		{"[::ffff:10.0.0.1]:5", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"[2001:db8:2:3:4::5]:5", nil, "2001:db8:2:3::"},
		{"[fe80::1%eth0]:5", nil, "fe80::"},
		{"[2001:db8:1::1]:5", []string{"203.0.113.9"}, "203.0.113.9"},
		{"@", nil, "invalid IP"},
	} {
		r := &http.Request{RemoteAddr: tt.peer, Header: http.Header{}}
		if tt.forwarded != nil {
			r.Header["X-Forwarded-For"] = tt.forwarded
		}
		if got := clientAddress(r, trusted).String(); got != tt.want {
			t.Errorf("%s with %q: %s, want %s", tt.peer, tt.forwarded, got, tt.want)
		}
	}
}

// BenchmarkLimiter simulates attackers with many addresses: the table of clients does not grow,
// and they do not find each other's buckets.
func BenchmarkLimiter(b *testing.B) {
	l, rate := newLimiter(RateClients), Rate{PerSecond: 1_000_000, Burst: 1_000_000}
	now := testTime
	b.RunParallel(func(pb *testing.PB) {
		for i := uint32(0); pb.Next(); i++ {
			l.take(now, client{address: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})}, rate, 1)
		}
	})
}

// A lowered rate or a clock that is set back locks no client out.
func TestLimiterDoesNotLockOut(t *testing.T) {
	for name, after := range map[string]struct {
		now  time.Time
		rate Rate
	}{
		"a lower rate":              {testTime, Rate{PerSecond: 1, Burst: 2}},
		"a clock that was set back": {testTime.Add(-time.Hour), Rate{PerSecond: 1, Burst: 1000}},
	} {
		l, who := newLimiter(1), client{}
		l.take(testTime, who, Rate{PerSecond: 1, Burst: 1000}, 1000)
		if q := l.take(after.now, who, after.rate, 1); q.wait != time.Second {
			t.Errorf("%s: %+v", name, q)
		}
		if q := l.take(after.now.Add(time.Second), who, after.rate, 1); q.wait != 0 {
			t.Errorf("%s, a second later: %+v", name, q)
		}
	}
}
