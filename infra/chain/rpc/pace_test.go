package rpc

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// allowance is a node that allows a number of calls in each second.
type allowance struct {
	mu      sync.Mutex
	rate    int
	calls   []time.Time
	refused int
}

func (a *allowance) allows(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.calls) > 0 && now.Sub(a.calls[0]) >= time.Second {
		a.calls = a.calls[1:]
	}
	if len(a.calls) >= a.rate {
		a.refused++
		return false
	}
	a.calls = append(a.calls, now)
	return true
}

func (a *allowance) refusals() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refused
}

// The rate that a node allows is learned from its refusals. One client's calls without end leave
// another's first attempts, and our own reads, a turn, and few calls are refused.
func TestRateIsLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const allowed, clients = 50, 100
		m, node := newMeter("a", Budget{Concurrency: 2 * clients}, time.Now()), &allowance{rate: allowed}
		made := func(w waiter) (took time.Duration, ok bool) {
			began := time.Now()
			leave, err := m.enter(t.Context(), time.Now, w, 4*time.Second)
			if err != nil {
				return time.Since(began), false
			}
			defer leave()
			time.Sleep(5 * time.Millisecond)
			if !node.allows(time.Now()) {
				m.refused(time.Now(), &w, true, 0)
				return time.Since(began), false
			}
			m.answered(time.Now(), &w)
			return time.Since(began), true
		}
		var crowd sync.WaitGroup
		done := make(chan struct{})
		var end atomic.Int64
		for range clients {
			crowd.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					if _, ok := made(waiter{use: broadcast, client: "mallory", n: 1}); ok {
						end.Add(1)
					} else {
						time.Sleep(250 * time.Millisecond)
					}
				}
			})
		}
		time.Sleep(time.Minute) // the first second may teach too low a rate, which then grows
		before, refused, failed := end.Load(), node.refusals(), 0
		const seconds = 60
		for range seconds {
			for _, w := range []waiter{{use: broadcast, client: "alice", n: 1}, {use: read, n: 1}} {
				if took, ok := made(w); !ok {
					failed++
				} else if took > 500*time.Millisecond {
					t.Errorf("purpose %d after %s", w.use, took)
				}
			}
			time.Sleep(time.Second - 100*time.Millisecond)
		}
		per, refused := float64(end.Load()-before)/seconds, node.refusals()-refused
		if per < 0.6*allowed || failed > seconds/10 || refused > 3*seconds {
			t.Errorf("%.1f calls per second, %d of another client's and our own failed, %d refused in all", per, failed, refused)
		}
		close(done)
		crowd.Wait()
	})
}

// A learned rate grows until it is forgotten. Answers to calls of the same second cut it once, and a
// configured rate below it stays.
func TestLearnedRateGrows(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	m := newMeter("a", Budget{}, now)
	for range 100 {
		m.answered(now, of(broadcast, "ann"))
	}
	m.refused(now, ours(), true, 0)
	m.refused(now, ours(), true, 0)
	if got := m.left(now).Rate; got != 70 {
		t.Errorf("learned %g, want 70", got)
	}
	now = now.Add(30 * time.Second)
	if got := m.left(now).Rate; got < 100 || got > 140 {
		t.Errorf("after half a minute %g", got)
	}
	if m.refused(now, ours(), true, 0); m.left(now).Rate > 100 {
		t.Errorf("after another answer %g", m.left(now).Rate)
	}
	now = now.Add(time.Hour)
	if got := m.left(now).Rate; got != 0 {
		t.Errorf("after an hour %g", got)
	}
	low := newMeter("a", Budget{Rate: 3}, now)
	if low.refused(now, ours(), true, 0); low.left(now).Rate != 3 {
		t.Errorf("a configured rate of 3 becomes %g", low.left(now).Rate)
	}
}

// A node's refusal of a first attempt because of the rate pauses the other first attempts of this
// client alone, and does not count against the node.
func TestFirstAttemptsPauseTheirClientAlone(t *testing.T) {
	for _, after := range []string{"30", ""} {
		g := &gateway{node: newChain(t, chaintest.Rules{}).Node("a")}
		clock := newTimer()
		p := open(t, func(c *Config) { c.Now = clock.now }, serve(t, g))
		r := p.Reader()
		if _, err := r.Head(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.misbehave(send, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			if after != "" {
				w.Header().Set("Retry-After", after)
			}
			w.WriteHeader(http.StatusTooManyRequests)
		})
		raw, hash := plain(alice, key5, 0)
		for range 5 {
			if got := p.Send(t.Context(), raw, hash, 0, tx.Sending{Client: "mallory"})[0]; got.Cause != tx.RateLimited {
				t.Errorf("answered %+v", got)
			}
		}
		g.misbehave("", nil)
		if got := p.Status()[0]; got.State != Healthy || got.Budget.Pause != 0 || got.Budget.Rate != 0 || got.Failures != 0 {
			t.Errorf("status %+v", got)
		}
		other, sent := plain(bob, key5, 0)
		if got := p.Send(t.Context(), other, sent, 0, tx.Sending{Client: "bob"})[0]; got.Class != tx.Taken {
			t.Errorf("another client's: %+v", got)
		}
		clock.advance(marketAtHead)
		if _, err := r.Head(t.Context()); err != nil {
			t.Errorf("own read: %v", err)
		}
		clock.advance(pauseMin)
		if got := p.Send(t.Context(), raw, hash, 0, tx.Sending{Client: "mallory"})[0]; got.Class != tx.Taken && got.Class != tx.Known {
			t.Errorf("after the first pause: %+v", got)
		}
	}
}

// The node's answer to an own read pauses passed-on calls and trials first, of all clients. It pauses
// all calls if none of these have been made for a second.
func TestOwnRefusalsPauseCallsOfChoiceFirst(t *testing.T) {
	for _, low := range []purpose{trying, onBehalf} {
		start := time.Unix(1_800_000_000, 0)
		at := func(d time.Duration) time.Time { return start.Add(d) }
		m := newMeter("a", Budget{}, start)
		for range 5000 { // the learned rate is high enough
			m.answered(start, of(broadcast, "bob"))
		}
		made := func(now time.Time, w *waiter) bool {
			_, err := m.take(now, w, 0)
			return err == nil
		}
		if !made(start, of(low, "mallory")) {
			t.Fatal("refused before any answer")
		}
		if m.refused(at(500*time.Millisecond), ours(), true, 30*time.Second); m.left(at(500*time.Millisecond)).Pause != 0 {
			t.Error("all calls pause")
		}
		now := at(900 * time.Millisecond)
		m.refused(now, ours(), true, 30*time.Second)
		for _, w := range []*waiter{ours(), of(broadcast, "bob"), of(repeat, "bob")} {
			if !made(now, w) {
				t.Errorf("purpose %d pauses", w.use)
			}
		}
		if made(now, of(trying, "bob")) || made(now, of(onBehalf, "bob")) {
			t.Error("clients' calls do not pause")
		}
		now = at(1900 * time.Millisecond) // a second after the last answer
		if !made(now, of(low, "bob")) {
			t.Error("the first pause is longer")
		}
		m.refused(now, ours(), true, 0)
		if now = now.Add(1900 * time.Millisecond); made(now, of(low, "bob")) {
			t.Error("the pauses do not grow")
		}
		m.refused(now, ours(), true, 30*time.Second) // none has been made for a second
		if got := m.left(now).Pause; got != time.Second {
			t.Errorf("all calls pause for %s", got)
		}
	}
}

// The learned rate does not fall below that of own reads that were answered in the last minute.
func TestLearnedRateLeavesOwnReads(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	m := newMeter("a", Budget{}, now)
	for range 1200 {
		m.answered(now, ours())
		now = now.Add(50 * time.Millisecond)
	}
	for range 20 {
		m.refused(now, ours(), true, 0)
		now = now.Add(time.Second)
	}
	if got := m.left(now).Rate; got < 9 || got > 13 { // 20 per second, 63 % and then 72 % of it in the minute
		t.Errorf("learned %g", got)
	}
}

// An own read that is refused for its rate while clients use the node says nothing about the node's
// health.
func TestOwnRefusalsInAFloodCountForNothing(t *testing.T) {
	for name, refusal := range rateRefusals {
		for _, kind := range []string{"passed on", "first attempt"} {
			g, clock := &gateway{node: newChain(t, chaintest.Rules{}).Node("a")}, newTimer()
			p := open(t, func(c *Config) { c.Now = clock.now }, serve(t, g))
			if !callsFor(t, p, "mallory")[kind]() {
				t.Fatal("not served")
			}
			g.refuse("", refusal)
			read := func() float64 {
				if _, _, err := p.Reader().block(t.Context(), p.endpoints[0], "latest"); err == nil {
					t.Fatal("the read is not refused")
				}
				return p.Status()[0].Failures
			}
			if got := read(); got != 0 {
				t.Errorf("%s, %s: it counts for %g", kind, name, got)
			}
			if p.Status()[0].Budget.Rate == 0 {
				t.Errorf("%s, %s: no rate is learned", kind, name)
			}
			clock.advance(clientsRecent)
			if got := read(); got == 0 {
				t.Errorf("%s, %s: without clients' calls it does not count", kind, name)
			}
		}
	}
}
