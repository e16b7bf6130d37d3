package rpc

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// No time window contains more calls than rate and burst allow, and no call is lost to
// rounding.
func TestMeterKeepsItsRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Budget{Rate: float64(rapid.IntRange(1, 50).Draw(t, "rate")), Burst: rapid.IntRange(1, 20).Draw(t, "burst")}
		start := time.Unix(1_800_000_000, 0)
		m, now := newMeter("a", b, start), start
		type made struct {
			at time.Time
			n  int
		}
		var calls []made
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "pause")) * time.Millisecond)
			n, use := 1, purpose(rapid.IntRange(0, 1).Draw(t, "use"))
			if use == read { // broadcasts are sent one by one
				n = rapid.IntRange(1, b.Burst).Draw(t, "n")
			}
			if wait, err := m.take(now, &waiter{use: use, n: n}, 10*time.Second); err == nil && wait == 0 {
				calls = append(calls, made{now, n})
			}
		}
		for _, first := range calls {
			for _, last := range calls {
				total := 0
				for _, c := range calls {
					if !c.at.Before(first.at) && !c.at.After(last.at) {
						total += c.n
					}
				}
				span := last.at.Sub(first.at)
				if most := float64(b.Burst) + b.Rate*span.Seconds() + 1e-3; span >= 0 && float64(total) > most {
					t.Fatalf("%d calls within %s, at most %g are allowed", total, span, most)
				}
			}
		}
	})
}

func TestMeterWaitsAndRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeter("a", Budget{Rate: 10, Burst: 5, Concurrency: 1}, time.Now())
		enter := func(use purpose, n int, patience time.Duration) (time.Duration, error) {
			began := time.Now()
			leave, err := m.enter(t.Context(), time.Now, waiter{use: use, n: n}, patience)
			if err == nil {
				leave()
			}
			return time.Since(began), err
		}
		// A broadcast that waits leaves two fifths of the rate to reads, until one call is kept.
		for i, want := range []time.Duration{0, 0, 0, 0, 0, 167, 133} {
			if took, err := enter(broadcast, 1, time.Second); err != nil || took.Round(time.Millisecond) != want*time.Millisecond {
				t.Errorf("broadcast %d after %s, %v", i, took, err)
			}
		}
		// The first read uses the kept call. The next leaves a fifth of the burst, here one call, for
		// broadcasts.
		for i, want := range []time.Duration{0, 200} {
			if took, err := enter(read, 1, time.Second); err != nil || took.Round(time.Millisecond) != want*time.Millisecond {
				t.Errorf("read %d after %s, %v", i, took, err)
			}
		}
		spent := (*Spent)(nil)
		if took, err := enter(broadcast, 5, 200*time.Millisecond); !errors.As(err, &spent) || took != 0 {
			t.Errorf("no patience: %s, %v", took, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := m.enter(ctx, time.Now, waiter{use: broadcast, n: 5}, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("given up: %v", err)
		}
		leave, err := m.enter(t.Context(), time.Now, waiter{use: broadcast, n: 1}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := enter(broadcast, 1, time.Second); !errors.As(err, &spent) || !strings.Contains(err.Error(), "1 requests are under way") {
			t.Errorf("no slot: %v", err)
		}
		if left := m.left(time.Now()); left.InFlight != 1 || left.Withheld != 6 {
			t.Errorf("left %+v", left)
		}
		leave()
	})
}

// crowdOf makes calls of one client without end, as many as there are at once, until stop.
func crowdOf(t *testing.T, m *meter, n int, w waiter) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	for range n {
		crowd.Go(func() {
			for ctx.Err() == nil {
				if leave, err := m.enter(ctx, time.Now, w, 8*time.Second); err == nil {
					leave()
				} else {
					time.Sleep(50 * time.Millisecond)
				}
			}
		})
	}
	synctest.Wait()
	return func() { cancel(); crowd.Wait() }
}

// While broadcasts wait without end, reads and repeats get two fifths of the rate, reads first.
func TestReadsAreKeptCalls(t *testing.T) {
	for _, use := range []purpose{read, repeat} {
		synctest.Test(t, func(t *testing.T) {
			m := newMeter("a", Budget{Rate: 25, Burst: 50, Concurrency: 500}, time.Now())
			stop := crowdOf(t, m, 100, waiter{use: broadcast, client: "mallory", n: 1})
			defer stop()
			time.Sleep(5 * time.Second)
			began, made := time.Now(), 0
			for time.Since(began) < 30*time.Second {
				if leave, err := m.enter(t.Context(), time.Now, waiter{use: use, client: "alice", n: 1}, 2*time.Second); err != nil {
					t.Fatalf("call %d after %s: %v", made, time.Since(began), err)
				} else {
					leave()
				}
				made++
			}
			if want := 30 * 25 * 2 / 5; made < want-10 || made > want+10 {
				t.Errorf("%d calls of purpose %d in 30 s, want %d", made, use, want)
			}
		})
	}
}

// One client's first attempts take turns with others': another's waits for at most two calls.
func TestFirstAttemptsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, rest = 10, 1 / (1 - keptShare)
		m := newMeter("a", Budget{Rate: rate, Concurrency: 500}, time.Now())
		stop := crowdOf(t, m, 200, waiter{use: broadcast, client: "mallory", n: 1})
		defer stop()
		for range 50 {
			time.Sleep(700 * time.Millisecond)
			began := time.Now()
			leave, err := m.enter(t.Context(), time.Now, waiter{use: broadcast, client: "alice", n: 1}, 4*time.Second)
			if took := time.Since(began).Seconds(); err != nil || took > 2*rest/rate {
				t.Fatalf("after %g s, %v", took, err)
			}
			leave()
		}
	})
}

// One client's first attempts leave calls of the day for others', and the later it is the fewer.
func TestFirstAttemptsLeaveTheDay(t *testing.T) {
	midnight := time.Unix(1_800_000_000, 0).Truncate(day)
	for passed, most := range map[time.Duration]int{0: 400, 12 * time.Hour: 534, day - time.Second: 800} {
		now := midnight.Add(passed)
		m := newMeter("a", Budget{Daily: 1000}, now)
		made := 0
		for range 2000 {
			if _, err := m.take(now, of(broadcast, "mallory"), 0); err == nil {
				made++
			}
		}
		if made < most-2 || made > most {
			t.Errorf("after %s: %d of one client, want %d", passed, made, most)
		}
		if _, err := m.take(now, of(broadcast, "alice"), 0); (err == nil) != (passed < 23*time.Hour) {
			t.Errorf("after %s, another's: %v", passed, err)
		}
		alone := newMeter("a", Budget{Daily: 1000}, now)
		for i := range 800 { // without clients all calls are ours
			if _, err := alone.take(now, of(broadcast, ""), 0); err != nil {
				t.Fatalf("call %d without clients: %v", i, err)
			}
		}
	}
}

// A pause that the node asks for in answer to our own call is short at first, and as long as it asks
// for while it goes on.
func TestOwnPausesGrow(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	m := newMeter("a", Budget{}, now)
	for _, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
		m.refused(now, ours(), true, 10*time.Second)
		m.refused(now, ours(), true, 10*time.Second) // calls that were under way make it no longer
		if got := m.left(now).Pause; got != want*time.Second {
			t.Errorf("a pause of %s, want %d s", got, want)
		}
		now = now.Add(want * time.Second)
	}
	now = now.Add(21 * time.Second)
	if m.refused(now, ours(), true, 10*time.Second); m.left(now).Pause != time.Second {
		t.Errorf("after a while without: %s", m.left(now).Pause)
	}
}

// Repeats of one client leave calls for first broadcasts, reads and other clients' repeats.
func TestRepeatsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeter("a", Budget{Rate: 10, Burst: 10, Daily: 100_000}, time.Now())
		stop, end := context.WithCancel(t.Context())
		var crowd sync.WaitGroup
		for range 48 {
			crowd.Go(func() {
				for stop.Err() == nil {
					if leave, err := m.enter(stop, time.Now, waiter{use: repeat, client: "mallory", n: 1}, time.Second); err == nil {
						leave()
					} else {
						time.Sleep(100 * time.Millisecond)
					}
				}
			})
		}
		time.Sleep(10 * time.Second)
		for range 20 {
			for use, within := range map[purpose]time.Duration{broadcast: 0, read: 200 * time.Millisecond, repeat: 400 * time.Millisecond} {
				began := time.Now()
				leave, err := m.enter(t.Context(), time.Now, waiter{use: use, client: "alice", n: 1}, 4*time.Second)
				if err != nil || time.Since(began) > within {
					t.Errorf("purpose %d after %s: %v", use, time.Since(began), err)
				}
				if err == nil {
					leave()
				}
			}
			time.Sleep(time.Second)
		}
		m.refused(time.Now(), of(repeat, "mallory"), false, 10*time.Second)
		if _, err := m.take(time.Now(), &waiter{use: repeat, client: "alice", n: 1}, time.Second); err != nil {
			t.Errorf("after a pause of another client's repeats: %v", err)
		}
		end()
		crowd.Wait()
	})
}

func TestMeterCountsDays(t *testing.T) {
	now := time.Unix(dayOf(time.Unix(1_800_000_000, 0))*86400, 0)
	m := newMeter("a", Budget{Daily: 10}, now)
	spend := func(use purpose, n int) (made int) {
		for range n {
			if _, err := m.take(now, &waiter{use: use, n: 1}, 0); err == nil {
				made++
			}
		}
		return made
	}
	if got := spend(read, 20); got != 8 || !m.limited(now) {
		t.Errorf("%d reads, limited %v: two calls are for broadcasts", got, m.limited(now))
	}
	if got := spend(broadcast, 20); got != 2 || m.left(now).Today != 0 || m.room(now, of(broadcast, "")) {
		t.Errorf("%d broadcasts, left %+v", got, m.left(now))
	}
	now = now.Add(24 * time.Hour)
	if got := spend(broadcast, 20); got != 8 || m.room(now, of(broadcast, "")) {
		t.Errorf("%d broadcasts: two calls are for reads", got)
	}
	if got := spend(read, 20); got != 2 {
		t.Errorf("%d reads, two calls are kept for them", got)
	}
	now = now.Add(24 * time.Hour)
	if got := spend(broadcast, 1); got != 1 || m.left(now).Today != 9 || m.limited(now) {
		t.Errorf("the next day: %d, left %+v", got, m.left(now))
	}
}

// Calls that one endpoint's budget refuses go to another. If there is none, the answer names
// the budget, and the endpoint's health does not suffer.
func TestSendKeepsToBudgets(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	a, b := c.Node("a"), c.Node("b")
	clock := newTimer()
	p := open(t, func(c *Config) {
		c.Now, c.Fanout = clock.now, 1
		c.Endpoints[0].Budget = Budget{Daily: 5}
	}, serve(t, a), serve(t, b))
	var last []tx.Answer
	for i := range uint64(20) {
		raw, hash := plain(alice, chain.NonceKey{30: 1, 31: byte(i)}, 0)
		last = p.Send(t.Context(), raw, hash, 0, tx.Sending{})
		if last[0].Class != tx.Taken {
			t.Errorf("%d: %+v", i, last)
		}
	}
	// Two of the five were identity calls, so none is kept for reads.
	if got := a.Calls()[send]; got != 3 || last[0].Endpoint != "b" {
		t.Errorf("%d sends to the limited one, the last %+v", got, last)
	}
	if got := p.Status()[0]; got.State != Limited || got.Failures != 0 || got.Budget.Today != 0 {
		t.Errorf("status %+v", got)
	}
	b.Set(chaintest.Faults{Down: true})
	for range 3 {
		p.blame(p.endpoints[1], errors.New("down"))
	}
	p.endpoints[0].meter.charge(clock.now(), 5)
	p.endpoints[1].mu.Lock()
	p.endpoints[1].identity.ejected = "gone"
	p.endpoints[1].mu.Unlock()
	raw, hash := plain(bob, key5, 0)
	got := p.Send(t.Context(), raw, hash, 0, tx.Sending{})
	if len(got) != 1 || got[0].Class != tx.Retry || got[0].Cause != tx.RateLimited || !strings.Contains(got[0].Message, "calls of the day are spent") {
		t.Errorf("answers %+v", got)
	}
	clock.advance(24 * time.Hour)
	if got := p.Send(t.Context(), raw, hash, 0, tx.Sending{}); got[0].Class != tx.Taken {
		t.Errorf("the next day: %+v", got)
	}
}

// A node that asks for a pause is not asked until the pause ends.
func TestRetryAfterIsKept(t *testing.T) {
	for _, test := range []struct {
		header string
		status int
		want   time.Duration
	}{
		{"7", 429, 7 * time.Second}, {"7", 503, 7 * time.Second}, {"0", 429, 0}, {"-1", 429, 0}, {"soon", 429, 0},
		{"99999999", 429, pauseMax}, {"Fri, 31 Dec 1999 23:59:59 GMT", 429, 0}, {"7", 500, 0},
	} {
		g := &gateway{node: newChain(t, chaintest.Rules{}).Node("a")}
		clock := newTimer()
		p := open(t, func(c *Config) { c.Now = clock.now }, serve(t, g))
		g.misbehave("eth_getCode", func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.Header().Set("Retry-After", test.header)
			w.WriteHeader(test.status)
		})
		ask := func() error {
			_, err := p.Ask(t.Context(), "", "eth_getCode", nil, 1<<10, nil)
			return err
		}
		if err := ask(); err == nil {
			t.Fatal("the node refuses no call")
		}
		if got := max(0, p.endpoints[0].meter.pauses.left(clock.now(), of(onBehalf, ""))); got != test.want {
			t.Errorf("%d, Retry-After %s: a pause of %s", test.status, test.header, got)
		}
		g.misbehave("", nil)
		if err := ask(); test.want > 0 && (!errors.As(err, new(*Spent)) || !strings.Contains(err.Error(), "requested a pause")) {
			t.Errorf("in the pause: %v", err)
		}
		clock.advance(test.want)
		if err := ask(); errors.As(err, new(*Spent)) {
			t.Errorf("after the pause: %v", err)
		}
	}
}
