package redis

import (
	"errors"
	"net"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/storetest"
)

// newLeases opens leases with time limits for a busy machine.
func newLeases(t *testing.T, url string) *Leases {
	t.Helper()
	l, err := openLeases(url, patience)
	must(t, err)
	t.Cleanup(func() {
		if err := l.Close(); err != nil && !errors.Is(err, goredis.ErrClosed) {
			t.Error(err)
		}
	})
	return l
}

// redisClock is the server's clock, which is this machine's.
var redisClock = storetest.Clock{Grain: time.Millisecond}

func TestLeases(t *testing.T) {
	s := newServer(t)
	storetest.Leases(t, func(t *testing.T) storetest.Opened[storetest.LeaseRows] {
		must(t, client(t, s).FlushAll(t.Context()).Err())
		l := newLeases(t, s.URL())
		return storetest.Opened[storetest.LeaseRows]{Port: l, Clock: redisClock, Close: l.Close, Reopen: func() storetest.LeaseRows {
			must(t, l.Close())
			return newLeases(t, s.URL())
		}}
	})
}

// TestLinearInTrouble loses replies while holders take, renew and release leases. Their results
// must still be linearizable.
func TestLinearInTrouble(t *testing.T) {
	s := newServer(t)
	p := through(t, s.URL())
	l := newLeases(t, p.url())
	crowd := storetest.SmallCrowd(3)
	crowd.Enough = func() bool { return p.lostSoFar() >= 20 }
	p.loseEach(10)
	storetest.LinearLeases(t, l, redisClock, crowd)
	if n := p.lostSoFar(); n < 20 {
		t.Errorf("%d answers were lost", n)
	}
}

func acquire(t *testing.T, l *Leases, name, holder string, want bool) {
	t.Helper()
	if held, err := l.Acquire(t.Context(), name, holder, time.Minute); err != nil || held != want {
		t.Fatalf("%s asked for %s: %t, %v", holder, name, held, err)
	}
}

// After a lost reply the lease is held, and its holder gets an unknown outcome; a second call
// shows it.
func TestLostAnswer(t *testing.T) {
	s := newServer(t)
	p := through(t, s.URL())
	l, other := newLeases(t, p.url()), newLeases(t, s.URL())
	acquire(t, l, "warm", "a", true) // so that the server has the script
	p.loseEach(1)
	if held, err := l.Acquire(t.Context(), "lane", "a", time.Minute); held || !errors.Is(err, eventlog.ErrUnknown) {
		t.Errorf("without an answer: %t, %v", held, err)
	}
	p.loseEach(0)
	acquire(t, other, "lane", "b", false)
	acquire(t, l, "lane", "a", true)
	must(t, other.Release(t.Context(), "warm", "a")) // so that the server has the script
	p.loseEach(1)
	if err := l.Release(t.Context(), "lane", "a"); !errors.Is(err, eventlog.ErrUnknown) {
		t.Errorf("given up without an answer: %v", err)
	}
	p.loseEach(0)
	acquire(t, other, "lane", "b", true)
}

// A server that loses its data grants a lease to a second holder, while the first relies on it
// until its next call. This package cannot prevent that: writes under a lease have a fence.
func TestLeasesLost(t *testing.T) {
	s := newServer(t)
	a, b := newLeases(t, s.URL()), newLeases(t, s.URL())
	lose := map[string]func(){
		"flushed": func() { must(t, client(t, s).FlushAll(t.Context()).Err()) },
		"killed": func() {
			must(t, s.Kill())
			for _, l := range []*Leases{a, b} {
				if held, err := l.Acquire(t.Context(), "killed", "a", time.Minute); held || err == nil {
					t.Errorf("a dead server says %t, %v", held, err)
				}
				if err := l.Release(t.Context(), "killed", "a"); err == nil {
					t.Error("a dead server has let go")
				}
			}
			must(t, s.Start(t.Context()))
		},
	}
	for name, lose := range lose {
		t.Run(name, func(t *testing.T) {
			acquire(t, a, name, "a", true)
			acquire(t, b, name, "b", false)
			lose()
			acquire(t, b, name, "b", true)
			acquire(t, a, name, "a", false)
			must(t, a.Release(t.Context(), name, "a")) // it no longer holds the lease
			acquire(t, b, name, "b", true)
		})
	}
}

// A foreign value under a lease's name does not block the lease for ever. A key of another type
// gives an error.
func TestForeignLeases(t *testing.T) {
	s := newServer(t)
	l, c := newLeases(t, s.URL()), client(t, s)
	key := leaseKey("lane")
	must(t, c.Set(t.Context(), key, "b", time.Hour).Err()) // given before the clock was set back
	acquire(t, l, "lane", "a", true)
	if left := c.PTTL(t.Context(), key).Val(); left <= 0 || left > time.Minute {
		t.Errorf("it lapses in %s", left)
	}
	must(t, c.Set(t.Context(), key, "b", 0).Err()) // without an end
	acquire(t, l, "lane", "a", true)
	must(t, c.Set(t.Context(), key, "a", 0).Err())
	acquire(t, l, "lane", "a", true)
	if left := c.PTTL(t.Context(), key).Val(); left <= 0 || left > time.Minute {
		t.Errorf("one that is renewed lapses in %s", left)
	}
	must(t, c.Del(t.Context(), key).Err())
	must(t, c.LPush(t.Context(), key, "x").Err())
	held, err := l.Acquire(t.Context(), "lane", "a", time.Minute)
	if held || err == nil || errors.Is(err, eventlog.ErrUnknown) {
		t.Errorf("a list: %t, %v", held, err)
	}
}

// A silent server delays callers for at most the time limit of a call.
func TestSilentLeases(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connections wait to be accepted
	must(t, err)
	defer silent.Close() //nolint:errcheck // the test is over
	l, err := OpenLeases("redis://" + silent.Addr().String())
	must(t, err)
	defer l.Close() //nolint:errcheck // the test is over
	began := time.Now()
	held, err := l.Acquire(t.Context(), "lane", "a", time.Minute)
	if took := time.Since(began); held || !errors.Is(err, eventlog.ErrUnknown) || took > patience {
		t.Errorf("%t, %v after %s", held, err, took)
	}
}
