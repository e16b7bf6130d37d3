package redis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Work added by one replica wakes some replica when it is due, not before, and once.
func TestDueWorkIsHeardOf(t *testing.T) {
	s := newServer(t)
	a, b := newReplica(t, s.URL()), newReplica(t, s.URL())
	for name, put := range map[string]func(due time.Time){
		"opened":    func(due time.Time) { a.Applied([]tx.Change{opened(1, due)}) },
		"attempted": func(due time.Time) { a.Done([]tx.Done{{Chain: 1, Hash: hash(2), NextAt: due}}) },
		"recorded": func(due time.Time) {
			a.Applied([]tx.Change{{Chain: 1, Hash: hash(3), Attempt: &tx.Attempted{NextAt: due}}})
		},
		"reopened": func(due time.Time) {
			a.Applied([]tx.Change{{Chain: 1, Hash: hash(4), Reopen: &tx.Reopened{To: tx.Open, At: due}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			due := time.Now().Add(300 * time.Millisecond)
			put(due)
			if at := woken(t, a, b); at.Before(due) {
				t.Errorf("told %s early", due.Sub(at))
			}
		})
	}
	before := a.Stats().Woken + b.Stats().Woken
	eventually(t, "the sets are not empty", func() bool {
		n, err := client(t, s).Exists(t.Context(), "watchtower:ready:1", "watchtower:retry:1").Result()
		return err == nil && n == 0
	})
	if n := a.Stats().Woken + b.Stats().Woken; n != before {
		t.Errorf("told %d times more of what was told", n-before)
	}
}

// A busy replica leaves due work to an idle one.
func TestBusyReplicaLeavesTheNews(t *testing.T) {
	s := newServer(t)
	busy, idle := newReplica(t, s.URL()), newReplica(t, s.URL())
	busy.busy.Store(true)
	for n := range 5 {
		busy.Applied([]tx.Change{opened(n, time.Now())})
		eventually(t, "the idle one does not hear of it", func() bool { return len(idle.wakes) > n })
	}
	if n := len(busy.wakes); n != 0 {
		t.Errorf("the busy one was told %d times", n)
	}
}

// The sets match the specification: hashes by time, first attempts and repeats separate.
// Transactions that are not to be sent are in neither.
func TestSets(t *testing.T) {
	s := newServer(t)
	h := newReplica(t, s.URL())
	c := client(t, s)
	due := time.Unix(time.Now().Unix()+3600, 0)
	want := func(what, key string, members ...goredis.Z) {
		t.Helper()
		eventually(t, what+": "+key, func() bool {
			got, err := c.ZRangeWithScores(t.Context(), key, 0, -1).Result()
			must(t, err)
			return fmt.Sprint(got) == fmt.Sprint(members)
		})
	}
	one := goredis.Z{Score: float64(due.Unix()), Member: hash(1).String()}
	two := goredis.Z{Score: float64(due.Unix() + 1), Member: hash(2).String()}
	h.Applied([]tx.Change{opened(2, due.Add(time.Second)), opened(1, due)})
	want("opened", "watchtower:ready:1", one, two)
	h.Done([]tx.Done{{Chain: 1, Hash: hash(1), NextAt: due}})
	want("attempted", "watchtower:retry:1", one)
	want("attempted", "watchtower:ready:1", two)
	h.Applied([]tx.Change{{Chain: 1, Hash: hash(1), Announce: &tx.Verdict{}}, {Chain: 1, Hash: hash(2), Watch: true}})
	want("ended", "watchtower:retry:1")
	want("canceled", "watchtower:ready:1")
}

// With foreign content under our keys, due work still wakes a worker before long, and no
// foreign content is passed on.
func TestPoison(t *testing.T) {
	s := newServer(t)
	a, b := newReplica(t, s.URL()), newReplica(t, s.URL())
	c := client(t, s)
	soonHeard := func(t *testing.T) {
		t.Helper()
		a.quiet()
		b.quiet()
		for n, end := 0, time.Now().Add(patience); ; n++ {
			a.Applied([]tx.Change{opened(1000+n, time.Now().Add(50*time.Millisecond))})
			wait := time.NewTimer(500 * time.Millisecond)
			select {
			case <-a.wakes:
				return
			case <-b.wakes:
				return
			case <-wait.C: // that hint was lost; the next is not
			}
			if time.Now().After(end) {
				t.Fatal("nothing is heard of any more")
			}
		}
	}
	for name, poison := range map[string]func() error{
		"a string": func() error { return c.Set(t.Context(), "watchtower:ready:1", "x", 0).Err() },
		"a list":   func() error { return c.RPush(t.Context(), "watchtower:retry:1", "x").Err() },
		"both":     func() error { return c.MSet(t.Context(), "watchtower:ready:1", 1, "watchtower:retry:1", 2).Err() },
		"a stream": func() error {
			return c.XAdd(t.Context(), &goredis.XAddArgs{Stream: "watchtower:ready:1", Values: []string{"a", "b"}}).Err()
		},
		"everything new": func() error { return c.FlushAll(t.Context()).Err() },
		"extreme scores": func() error {
			return c.ZAdd(t.Context(), "watchtower:ready:1", goredis.Z{Score: math.Inf(-1), Member: "low"},
				goredis.Z{Score: math.Inf(1), Member: "high"}, goredis.Z{Score: math.MaxFloat64, Member: "\x00"},
				goredis.Z{Score: -math.MaxFloat64, Member: ""}, goredis.Z{Score: math.SmallestNonzeroFloat64, Member: "not a hash"}).Err()
		},
		"a member of 64 MiB": func() error {
			return c.ZAdd(t.Context(), "watchtower:retry:1", goredis.Z{Score: 1, Member: strings.Repeat("x", 64<<20)}).Err()
		},
		"a million members": func() error {
			// Half of them due, and half never due.
			return c.Eval(t.Context(), `for i = 1, 1000000 do redis.call('ZADD', KEYS[1], i % 2 == 0 and '-inf' or '+inf', 'garbage' .. i) end return 1`,
				[]string{"watchtower:ready:1"}).Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, poison())
			soonHeard(t)
		})
	}
	eventually(t, "the set is not bounded", func() bool {
		a.Applied([]tx.Change{opened(1, time.Now())})
		n, err := c.ZCard(t.Context(), "watchtower:ready:1").Result()
		return err == nil && n <= keepMax
	})
}

// A Redis without memory, in read-only mode, or with a password loses hints and nothing else.
// It is used again when it recovers.
func TestRefusals(t *testing.T) {
	s := newServer(t)
	a, b := newReplica(t, s.URL()), newReplica(t, s.URL())
	c := client(t, s)
	set := func(name, value string) { t.Helper(); must(t, c.ConfigSet(t.Context(), name, value).Err()) }
	for name, value := range map[string]string{"maxmemory": "1mb", "requirepass": "other"} {
		t.Run(name, func(t *testing.T) {
			set(name, value)
			if name == "requirepass" { // only new connections need the password
				must(t, c.ClientKillByFilter(t.Context(), "SKIPME", "yes").Err())
			}
			failures := a.Stats().Failures
			eventually(t, "it does not fail", func() bool {
				a.Applied([]tx.Change{opened(1, time.Now())})
				return a.Stats().Failures > failures
			})
			set(name, map[string]string{"maxmemory": "0", "requirepass": ""}[name])
			a.quiet()
			b.quiet()
			eventually(t, "it is not used again", func() bool {
				a.Applied([]tx.Change{opened(2, time.Now())})
				return len(a.wakes)+len(b.wakes) > 0
			})
		})
	}
}

// After a restart without data, the owner fills the sets from the queue.
func TestKilled(t *testing.T) {
	s := newServer(t)
	a := newReplica(t, s.URL())
	must(t, a.Ping(t.Context()))
	must(t, s.Kill())
	eventually(t, "it still counts as up", func() bool { return !a.Stats().Up })
	if err := a.Ping(t.Context()); err == nil {
		t.Error("a dead server answers")
	}
	dropped := a.Stats().Dropped
	eventually(t, "hints are kept for a server that is away", func() bool {
		a.Applied([]tx.Change{opened(1, time.Now())})
		return a.Stats().Dropped > dropped
	})
	must(t, s.Start(t.Context()))
	eventually(t, "it does not come back", func() bool { return a.Stats().Up })

	rows := []tx.Work{{Hash: hash(7), NextAt: time.Now().Add(time.Hour)}, {Hash: hash(8), NextAt: time.Now().Add(time.Hour), Attempts: 3}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	c := client(t, s)
	must(t, c.ZAdd(t.Context(), "watchtower:ready:1", goredis.Z{Score: 1e18, Member: "garbage"}).Err())
	go func() {
		ended <- a.Rebuild(ctx, func(_ context.Context, id chain.ID, limit int) ([]tx.Work, error) {
			if id == 1 {
				return rows, nil
			}
			return nil, nil
		})
	}()
	eventually(t, "it is not filled", func() bool {
		ready, err := c.ZRange(t.Context(), "watchtower:ready:1", 0, -1).Result()
		must(t, err)
		retry, err := c.ZRange(t.Context(), "watchtower:retry:1", 0, -1).Result()
		must(t, err)
		return fmt.Sprint(ready, retry) == fmt.Sprintf("[%s] [%s]", hash(7), hash(8))
	})
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("refilling ended: %v", err)
	}
}

// A failing Redis never blocks a caller, grows memory without bound, or prevents the process
// from ending. This one accepts connections and never answers.
func TestSilence(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var held []net.Conn
		for {
			conn, err := silent.Accept()
			if err != nil {
				break
			}
			held = append(held, conn)
		}
		for _, conn := range held {
			conn.Close() //nolint:errcheck // it is only held
		}
	}()
	t.Cleanup(func() { silent.Close(); <-done }) //nolint:errcheck // the test is over
	a := newReplica(t, "redis://"+silent.Addr().String())
	batch := make([]tx.Change, 1000)
	for i := range batch {
		batch[i] = opened(i, time.Now())
	}
	longest := time.Duration(0)
	for range 300 {
		began := time.Now()
		a.Applied(batch)
		longest = max(longest, time.Since(began))
	}
	if longest >= callTimeout { // the shortest wait for Redis; the machine may be busy
		t.Errorf("a caller waited %s", longest)
	}
	a.mu.Lock()
	if n := len(a.pending); n > pendingMax {
		t.Errorf("%d hints are pending", n)
	}
	a.mu.Unlock()
	eventually(t, "it counts as up", func() bool { return !a.Stats().Up })
	began := time.Now()
	if err := a.Ping(t.Context()); err == nil || time.Since(began) > 5*time.Second {
		t.Errorf("ping: %v after %s", err, time.Since(began))
	}
}

// With rediss the first bytes sent are a TLS handshake, and not the password.
func TestTLS(t *testing.T) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer plain.Close() //nolint:errcheck // the test is over
	first := make(chan []byte, 1)
	go func() {
		conn, err := plain.Accept()
		if err != nil {
			return
		}
		defer conn.Close() //nolint:errcheck // it was read
		b := make([]byte, 3)
		conn.Read(b) //nolint:errcheck // what came is compared
		first <- b
	}()
	a := newReplica(t, "rediss://user:password@"+plain.Addr().String())
	if err := a.Ping(t.Context()); err == nil {
		t.Error("a server without TLS will do")
	}
	if b := <-first; b[0] != 0x16 || b[1] != 3 {
		t.Errorf("it began with %x", b)
	}
}

func TestBreaker(t *testing.T) {
	now := time.Unix(1000, 0)
	b := &breaker{now: func() time.Time { return now }}
	for n := range tripAfter {
		if !b.allows() || !b.closed() {
			t.Fatalf("open after %d failures", n)
		}
		if opened := b.fail(); opened != (n == tripAfter-1) {
			t.Errorf("failure %d opened it: %v", n, opened)
		}
	}
	for _, cool := range []time.Duration{coolFirst, 2 * coolFirst, 4 * coolFirst, 8 * coolFirst, 16 * coolFirst, coolLast, coolLast} {
		now = now.Add(cool - time.Millisecond)
		if b.allows() {
			t.Errorf("asked again before %s", cool)
		}
		now = now.Add(2 * time.Millisecond)
		if !b.allows() || b.closed() {
			t.Errorf("not asked again after %s", cool)
		}
		if b.fail() {
			t.Error("opened twice")
		}
	}
	if !b.succeed() || !b.closed() || b.succeed() {
		t.Error("it does not close once")
	}
}
