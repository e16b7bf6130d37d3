package delivery

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// The bytes of a transaction, and of the answer, are charged after they are read.
func TestLargeAnswersAreCharged(t *testing.T) {
	const burst = 100
	s := newStack(t, func(c *Config) { c.Rates.Address = Rate{PerSecond: 1, Burst: burst} })
	raw := signed(t, newKey(t), testChain, 0, func(tx *types.DynamicFeeTx) { tx.Gas, tx.Data = 10_000_000, make([]byte, 100<<10) })
	target := "/v1/transactions/" + s.submit(raw)[0].TxHash.String()
	s.elapse(time.Hour)
	res := s.get(target)
	units := (len(res.body) + bodyUnit - 1) / bodyUnit
	if got, want := res.header.Get("RateLimit"), fmt.Sprintf(`"address";r=%d;t=%d`, burst-units, units); res.status != http.StatusOK || units < 13 || got != want {
		t.Errorf("answered %d with %d bytes and RateLimit %s, want %s", res.status, len(res.body), got, want)
	}
	unchanged, err := s.send(http.MethodGet, target, nil, "If-None-Match", res.header.Get("ETag"))
	if got, want := unchanged.header.Get("RateLimit"), fmt.Sprintf(`"address";r=%d;t=%d`, burst-units-1, units+1); err != nil || unchanged.status != http.StatusNotModified || got != want {
		t.Errorf("unchanged, it answered %d with RateLimit %s, want %s, %v", unchanged.status, got, want, err)
	}
}

// The bytes of a transaction are charged also if they cannot be decoded.
func TestUndecodedBytesAreCharged(t *testing.T) {
	const burst, units = 100, 7 // 100 KiB
	var broken atomic.Bool
	s := newStack(t, func(c *Config) {
		c.Rates.Address = Rate{PerSecond: 1, Burst: burst}
		decode := c.Submit.Decoders[testChain]
		c.Submit.Decoders[testChain] = func(raw []byte) (chain.Signed, error) {
			if broken.Load() {
				return chain.Signed{}, context.DeadlineExceeded
			}
			return decode(raw)
		}
	})
	raw := signed(t, newKey(t), testChain, 0, func(tx *types.DynamicFeeTx) { tx.Gas, tx.Data = 10_000_000, make([]byte, 100<<10) })
	target := "/v1/transactions/" + s.submit(raw)[0].TxHash.String()
	s.elapse(time.Hour)
	broken.Store(true)
	res := s.get(target)
	if got, want := res.header.Get("RateLimit"), fmt.Sprintf(`"address";r=%d;t=%d`, burst-units, units); res.status != http.StatusOK || len(res.body) > bodyUnit || got != want {
		t.Errorf("answered %d with %d bytes and RateLimit %s, want %s", res.status, len(res.body), got, want)
	}
}

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

// Reads of transactions take no slot of submissions, and one client's reads leave a place to
// other clients.
func TestDecodesTakePlaces(t *testing.T) {
	takeTurns(t, newDecodes, decodePlaces, decodeShare, 0)
	s := newStack(t)
	hash := s.submit(signed(t, newKey(t), testChain, 0))[0].TxHash
	for range cap(s.config.Submit.Slots) {
		s.config.Submit.Slots <- struct{}{}
	}
	read := make(chan response, 1)
	go func() {
		if res, err := s.send(http.MethodGet, "/v1/transactions/"+hash.String(), nil); err == nil {
			read <- res
		}
		close(read)
	}()
	if res := <-read; !strings.Contains(string(res.body), `"gas":50000`) {
		t.Errorf("a read waits for submissions, and answers %v", res)
	}
	for range cap(s.config.Submit.Slots) {
		<-s.config.Submit.Slots
	}
}

// Reads of the next free nonce of one client leave a place to other clients.
func TestNextNoncesTakePlaces(t *testing.T) {
	takeTurns(t, newNonces, noncePlaces, nonceShare, nonceQueue)
}
