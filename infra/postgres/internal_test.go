package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/puddle/v2"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

func TestErrorClasses(t *testing.T) {
	server := func(severity, code string) error {
		return fmt.Errorf("wrapped: %w", &pgconn.PgError{Severity: severity, SeverityUnlocalized: severity, Code: code})
	}
	for _, c := range []struct {
		err                error
		transient, unknown bool // unknown applies to writes
	}{
		{nil, false, false},
		{server("ERROR", "40001"), true, false},
		{server("ERROR", "40P01"), true, false},
		{server("ERROR", "55P03"), true, false},
		{server("ERROR", "57014"), true, false},
		{server("ERROR", "53100"), true, false},
		{server("FATAL", "57P01"), true, true},
		{server("FATAL", "57P03"), true, true},
		{server("FATAL", "08006"), true, true},
		{server("FATAL", "25P03"), true, true},
		{server("ERROR", "23505"), false, false},
		{server("ERROR", "42P01"), false, false},
		{server("FATAL", "28P01"), false, true},
		{server("ERROR", ""), false, false},
		{io.ErrUnexpectedEOF, true, true},
		{&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, true, true},
		{pgconn.ErrConnClosed, true, true},
		{context.Canceled, false, true},
		{context.DeadlineExceeded, false, true},
		{&uncommittedError{io.EOF}, true, false},
		{eventlog.ErrMoved, false, false},
		{puddle.ErrClosedPool, false, false},
	} {
		if got := Transient(c.err); got != c.transient {
			t.Errorf("%v is transient: %v", c.err, got)
		}
		if got := errors.Is(unsure(c.err), eventlog.ErrUnknown); got != c.unknown {
			t.Errorf("after %v nobody knows: %v", c.err, got)
		}
	}
	if err := classed(fmt.Errorf("acquire: %w", puddle.ErrClosedPool)); !errors.Is(err, eventlog.ErrClosed) {
		t.Error("a closed pool is", err)
	}
}

// A caller that waits for a connection while the pool closes gets eventlog.ErrClosed, not a
// context error.
func TestClosedWhileConnecting(t *testing.T) {
	config, err := pgxpool.ParseConfig("postgres://nobody@127.0.0.1:1/nothing?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	dialing := make(chan struct{})
	config.ConnConfig.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		close(dialing)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 1)
	go func() { told <- retry(t.Context(), func() error { return pool.Ping(t.Context()) }) }()
	<-dialing
	pool.Close()
	if err := <-told; !errors.Is(err, eventlog.ErrClosed) {
		t.Error("a pool that is closed while it connects is", err)
	}
}

func TestRetry(t *testing.T) { synctest.Test(t, testRetry) }

func testRetry(t *testing.T) {
	ctx := context.Background()
	tries := 0
	do := func(err error) func() error { return func() error { tries++; return err } }
	for _, c := range []struct {
		repeat func(context.Context, func() error) error
		err    error
		tries  int
	}{
		{retry, nil, 1}, {retry, io.EOF, retries}, {retry, eventlog.ErrMoved, 1},
		{retry, &pgconn.PgError{Code: "53100"}, 1}, {retry, &pgconn.PgError{Code: "53200"}, retries},
		{retryRefused, io.EOF, 1}, {retryRefused, &uncommittedError{io.EOF}, retries},
	} {
		tries = 0
		if err := c.repeat(ctx, do(c.err)); !errors.Is(err, c.err) || tries != c.tries {
			t.Errorf("%v: after %d tries %v", c.err, tries, err)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	tries = 0
	if err := retry(ended, do(io.EOF)); !errors.Is(err, io.EOF) || tries != 1 {
		t.Errorf("with its context ended: after %d tries %v", tries, err)
	}
}

func TestNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b")
		if unflip(flip(a)) != a || (flip(a) < flip(b)) != (a < b) {
			t.Fatalf("%d and %d became %d and %d", a, b, flip(a), flip(b))
		}
	})
	if flip(0) != math.MinInt64 || flip(math.MaxUint64) != math.MaxInt64 || clamp(math.MaxUint64) != math.MaxInt64 || clamp(7) != 7 {
		t.Error("the ends are elsewhere")
	}
}

// TestBatch decides random appends, some repeated, in batches, and compares with a simple model
// of the log.
func TestBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := map[eventlog.Stream][]place{} // committed events
		var head int64
		var made []*pending
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			b := newBatch(head)
			for stream, places := range log {
				n := eventlog.Version(len(places))
				b.tails[stream] = &tail{name: stream, no: places[0].pos, last: places[n-1].pos, version: n, stored: n}
			}
			plain := map[eventlog.Stream][]place{}
			for s, p := range log {
				plain[s] = slices.Clone(p)
			}
			for range rapid.IntRange(0, 8).Draw(t, "appends") {
				p := drawAppend(t, made)
				made = append(made, p)
				p.standing = standing(log[p.stream], p)
				b.decide(p)
				compareAnswer(t, plain, &head, p)
			}
			if b.head != head || len(b.pos) != int(head-first(b, head)) {
				t.Fatalf("the head is %d, should be %d", b.head, head)
			}
			log = plain
			checkRows(t, b, log)
		}
	})
}

func first(b *batch, head int64) int64 {
	if len(b.pos) == 0 {
		return head
	}
	return b.pos[0] - 1
}

func drawAppend(t *rapid.T, made []*pending) *pending {
	if len(made) > 0 && rapid.IntRange(0, 2).Draw(t, "again") == 0 {
		old := rapid.SampledFrom(made).Draw(t, "which")
		return &pending{stream: old.stream, expected: old.expected, events: old.events}
	}
	p := &pending{
		stream:   eventlog.Stream(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "stream")),
		expected: eventlog.Version(rapid.IntRange(0, 6).Draw(t, "expected")),
	}
	for range rapid.IntRange(1, 3).Draw(t, "events") {
		p.events = append(p.events, eventlog.Event{ID: eventlog.ID{byte(len(made)), byte(len(p.events)), 1}})
	}
	return p
}

// standing is the database's answer to selectStanding.
func standing(stored []place, p *pending) []place {
	from := min(int(p.expected), len(stored))
	return stored[from:min(from+len(p.events), len(stored))]
}

func compareAnswer(t *rapid.T, log map[eventlog.Stream][]place, head *int64, p *pending) {
	places, at := log[p.stream], int(p.expected)
	var want answer
	switch stands := len(places) >= at+len(p.events); {
	case at == len(places):
		for _, e := range p.events {
			*head++
			places = append(places, place{e.ID, *head})
		}
		log[p.stream] = places
		want.appended = eventlog.Appended{Version: eventlog.Version(len(places)), Position: eventlog.Position(*head)}
	case stands && slices.EqualFunc(places[at:at+len(p.events)], p.events, func(s place, e eventlog.Event) bool { return s.id == e.ID }):
		last := at + len(p.events)
		want.appended = eventlog.Appended{Version: eventlog.Version(last), Position: eventlog.Position(places[last-1].pos), Repeated: true}
	default:
		want.err = &eventlog.ConflictError{Stream: p.stream, Expected: p.expected, Actual: eventlog.Version(len(places))}
	}
	if diff := cmp.Diff(want.appended, p.answer.appended); diff != "" || fmt.Sprint(want.err) != fmt.Sprint(p.answer.err) {
		t.Fatalf("%s at %d: %v, should be %v; %s", p.stream, p.expected, p.answer.err, want.err, diff)
	}
}

// checkRows checks that the rows to write produce the expected log.
func checkRows(t *rapid.T, b *batch, log map[eventlog.Stream][]place) {
	for _, fresh := range []bool{true, false} {
		no, version, last, name := b.streams(fresh)
		for i, n := range name {
			places := log[eventlog.Stream(n)]
			if no[i] != places[0].pos || int(version[i]) != len(places) || last[i] != places[len(places)-1].pos {
				t.Fatalf("%s is to be no %d, version %d, last %d; stands %v", n, no[i], version[i], last[i], places)
			}
		}
	}
	for i, pos := range b.pos {
		if i > 0 && pos != b.pos[i-1]+1 {
			t.Fatalf("positions %v", b.pos)
		}
		found := false
		for _, places := range log {
			v := int(b.version[i])
			found = found || places[0].pos == b.stream[i] && v <= len(places) && places[v-1] == place{b.id[i].Bytes, pos}
		}
		if !found {
			t.Fatalf("row %d: position %d, stream %d, version %d stands nowhere", i, pos, b.stream[i], b.version[i])
		}
	}
}

// TestLeave ends callers' contexts at each stage of an append.
func TestLeave(t *testing.T) {
	why := errors.New("time is up")
	fresh := func(state int32) *pending {
		p := &pending{told: make(chan answer, 1)}
		p.state.Store(state)
		return p
	}
	if _, err := fresh(held).leave(why); !errors.Is(err, why) || errors.Is(err, eventlog.ErrUnknown) {
		t.Error("before it was sent:", err)
	}
	if _, err := fresh(sent).leave(why); !errors.Is(err, why) || !errors.Is(err, eventlog.ErrUnknown) {
		t.Error("after it was sent:", err)
	}
	p := fresh(sent)
	p.tell(answer{appended: eventlog.Appended{Version: 7}})
	if a, err := p.leave(why); err != nil || a.Version != 7 {
		t.Error("with the answer there:", a, err)
	}
	p = fresh(held)
	if _, err := p.leave(why); err == nil || len(claim([]*pending{p})) != 0 {
		t.Error("an append whose caller has gone is still to be written")
	}
	p = fresh(held)
	if len(unclaim(claim([]*pending{p}))) != 1 || p.state.Load() != held {
		t.Error("an append that was not committed is not held")
	}
}

// A clock difference above the shortest pause is detected, unless reading the server's clock
// took as long. Otherwise a repeat that was due at once by the server's clock would send the
// same bytes twenty times a second.
func TestSkewed(t *testing.T) {
	ours := time.Unix(1_800_000_000, 0)
	for _, c := range []struct{ ahead, took, want time.Duration }{
		{0, 0, 0},
		{200 * time.Millisecond, 0, 0},
		{-200 * time.Millisecond, 0, 0},
		{300 * time.Millisecond, 0, 300 * time.Millisecond},
		{2 * time.Second, 10 * time.Millisecond, 2 * time.Second},
		{-9 * time.Second, 10 * time.Millisecond, -9 * time.Second},
		{2 * time.Second, 3 * time.Second, 0},
		{-time.Hour, 3 * time.Second, -time.Hour},
	} {
		server := ours.Add(c.took / 2).Add(c.ahead)
		if got := skewed(server, ours, ours.Add(c.took)); got != c.want {
			t.Errorf("%v ahead, asked for %v: %v, want %v", c.ahead, c.took, got, c.want)
		}
	}
}

// A task that finds the log in use rests longer each time, and logs a few lines.
func TestPersist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged strings.Builder
		logger := slog.New(slog.NewTextHandler(&logged, nil))
		for _, c := range []struct {
			task        string
			tries       int
			least, most time.Duration
		}{
			{"drop", dropTries, time.Minute, 2 * time.Minute},
			{"restore", rejoinTries, time.Hour, time.Hour + time.Minute},
		} {
			began, last, tried := time.Now(), time.Now(), 0
			err := persist(t.Context(), logger, c.task, c.tries, func() error {
				want := min(briefPause<<min(tried, 10)/2, briefPauseMax)
				if pause := time.Since(last); tried > 0 && pause != want {
					t.Errorf("%s: try %d after %s, want %s", c.task, tried, pause, want)
				}
				last = time.Now()
				tried++
				return errLongReader
			})
			if took := time.Since(began); !errors.Is(err, errLongReader) || tried != c.tries || took < c.least || took > c.most {
				t.Errorf("%s: %v, %d tries in %s", c.task, err, tried, took)
			}
		}
		if n := strings.Count(logged.String(), "\n"); n > 8 {
			t.Errorf("%d lines:\n%s", n, &logged)
		}
		tried := 0
		if err := persist(t.Context(), logger, "broken", 9, func() error { tried++; return io.ErrShortWrite }); !errors.Is(err, io.ErrShortWrite) || tried != 1 {
			t.Errorf("%v, %d tries", err, tried)
		}
	})
}
