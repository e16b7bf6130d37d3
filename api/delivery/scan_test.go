package delivery

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// fill appends that many events to the log.
func (s *stack) fill(events int) {
	s.t.Helper()
	stream := eventlog.Stream("tx-1-0x" + strings.Repeat("cd", 32))
	var version eventlog.Version
	for int(version) < events {
		var some []eventlog.Event
		for i := range 100 {
			id := eventlog.DeriveID(stream, eventlog.ID{3}, int(version)+i)
			some = append(some, eventlog.Event{ID: id, Name: "tx.retired.v1", Data: json.RawMessage(`{}`)})
		}
		appended, err := s.db.Log().Append(s.t.Context(), stream, version, some...)
		if err != nil {
			s.t.Fatal(err)
		}
		version = appended.Version
	}
}

// mark reads lines until the stream's next mark, and returns its position.
func (c *tuned) mark() eventlog.Position {
	c.t.Helper()
	for {
		line, err := c.lines.ReadString('\n')
		if err != nil {
			c.t.Fatal(err)
		}
		if text, is := strings.CutPrefix(strings.TrimSpace(line), "id: "); is {
			n, err := strconv.ParseUint(text, 10, 63)
			if err != nil {
				c.t.Fatal(err)
			}
			return eventlog.Position(n)
		}
	}
}

// Attack 13: a filter that matches nothing passes the whole log for one unit of rate. It is
// charged for every scanned event, and served at the client's rate.
func TestFilterThatMatchesNothingIsCharged(t *testing.T) {
	const events, burst, page = 60_000, 20, 10_000 // page is the most events that one read of this store scans
	keys := newRing(t)
	s := newStack(t, keys.config, func(c *Config) {
		c.Rates.Key = rest.Rate{PerSecond: 100, Burst: burst}
		c.Limits.StreamSilence = 5 * time.Millisecond
	})
	s.fill(events)
	c := s.tune("after=0&name=nothing.", "X-API-Key", keys.Scoped(access.Read))
	at, same := eventlog.Position(0), 0
	for same < 5 { // the clock stands still, and so does the stream once the burst is spent
		next := c.mark()
		if same++; next != at {
			at, same = next, 0
		}
		if at >= events {
			break
		}
	}
	if at > burst*rest.ScanUnit+page {
		t.Fatalf("%d events were scanned for a burst of %d", at, burst)
	}
	before := at
	for at < events { // it continues as the rate comes back
		s.elapse(time.Minute)
		if at = c.mark(); at < before {
			t.Fatalf("the stream went back from %d to %d", before, at)
		}
		before = at
	}
}

// Attack 13: ten keys of one client share that client's quota of streams, and another client
// has its own.
func TestStreamsAreCountedByClient(t *testing.T) {
	keys := newRing(t)
	var log syncedLog
	s := newStack(t, keys.config, func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		c.Limits.ClientStreams, c.Limits.Streams = 10, 100
		c.Rates.Key = rest.Rate{} // a client without a rate has the quota too
	})
	for range 10 {
		token, _ := keys.Create(access.Key{Scopes: []access.Scope{access.Read}, Client: "shop"})
		s.tune("", "X-API-Key", token)
	}
	token, _ := keys.Create(access.Key{Scopes: []access.Scope{access.Read}, Client: "shop"})
	if res, err := s.send(http.MethodHead, "/v1/events", nil, "X-API-Key", token); err != nil || res.status != http.StatusTooManyRequests {
		t.Fatalf("the eleventh: %d, %v", res.status, err)
	}
	p := wantProblem(t, "the eleventh", s.do(http.MethodGet, "/v1/events", nil, "X-API-Key", token), http.StatusTooManyRequests, access.ErrQuotaExceeded)
	if !strings.Contains(p.Detail, "10 streams") || !strings.Contains(p.Detail, "quota.streams") {
		t.Errorf("the refusal says %q", p.Detail)
	}
	if told := strings.Count(log.text(), `"a quota refuses a client" client=shop`); told != 1 {
		t.Errorf("of two refusals within a minute the log tells %d, with the client:\n%s", told, log.text())
	}
	other, _ := keys.Create(access.Key{Scopes: []access.Scope{access.Read}, Client: "bank"})
	s.tune("", "X-API-Key", other)
}

// A stream pays for each look-up of an event's owner, as for a request. A stream that passes
// other clients' events gets only as far as the client can pay.
func TestLookUpsAreCharged(t *testing.T) {
	const others, burst = 1000, 20
	keys := newRing(t)
	s := newStack(t, keys.config, func(c *Config) {
		c.Rates.Key = rest.Rate{PerSecond: 100, Burst: burst}
		c.Limits.StreamSilence = 5 * time.Millisecond
	})
	s.strangers(others)
	// From here on each event is of a transaction of which nothing was read yet.
	c := s.tune("after="+strconv.Itoa(others), "X-API-Key", keys.Scoped(access.Read))
	at := eventlog.Position(others)
	for same := 0; same < 5; { // the clock stands still, and so does the stream once the burst is spent
		next := c.mark()
		if same++; next != at {
			at, same = next, 0
		}
	}
	if at > others+followBatch {
		t.Fatalf("%d streams were read for a burst of %d", at-others, burst)
	}
	for at < 2*others { // it continues as the rate comes back
		s.elapse(time.Second)
		at = c.mark()
	}
}

// strangers records n transactions of another client, and then an event of each of them.
func (s *stack) strangers(n int) {
	s.t.Helper()
	codec := tx.Codec()
	put := func(i int, v eventlog.Version, e tx.Event) {
		name, data, err := codec.Encode(e)
		if err != nil {
			s.t.Fatal(err)
		}
		stream := tx.Stream(1, otherHash(i))
		_, err = s.db.Log().Append(s.t.Context(), stream, v, eventlog.Event{ID: eventlog.DeriveID(stream, eventlog.ID{3}, int(v)), Name: name, Data: data})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	for i := range n {
		put(i, 0, tx.Accepted{Chain: 1, Hash: otherHash(i), Client: "victim", Nonce: uint64(i), At: testTime})
	}
	for i := range n {
		put(i, 1, tx.CanceledLocally{Reason: "x", At: testTime})
	}
}

func otherHash(i int) chain.Hash { return chain.Hash{byte(i >> 16), byte(i >> 8), byte(i), 1} }

// syncedLog keeps the log's lines.
type syncedLog struct {
	mu   sync.Mutex
	kept strings.Builder
}

func (l *syncedLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.Write(line)
}

func (l *syncedLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.String()
}
