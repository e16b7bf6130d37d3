package worker

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// claimsSeen counts the claims of a lane.
type claimsSeen struct {
	Queue
	n    int
	each chan struct{} // gets a value at a claim; may be nil
}

func (q *claimsSeen) Claim(ctx context.Context, c intent.Claim) ([]intent.Claimed, error) {
	q.n++
	select {
	case q.each <- struct{}{}:
	default: // nobody waits for it
	}
	return q.Queue.Claim(ctx, c)
}

// called makes a lane that ann asked for. It has claimed once, and answers the next call at once.
func (w *world) called() (a *actor, seen *claimsSeen) {
	w.t.Helper()
	a, _ = w.askedFor()
	r := *a.Relayer
	seen = &claimsSeen{Queue: r.Queue}
	r.Queue = seen
	a.Relayer = &r
	must(w.t, a.turn(w.t.Context()))
	seen.n, a.calls = 0, calls{}
	return a, seen
}

// Ann requests intents that may not pay the price of gas, each of which calls her lane. It claims at
// the first one, and then after a quarter of a poll, after half a poll, and once in each poll. When it
// finds an intent that gets a nonce, it claims at the next call at once.
func TestCallsInVainPause(t *testing.T) {
	w := newWorld(t)
	w.hold = true
	a, seen := w.called()
	call := func() {
		a.box.call()
		_ = a.turn(t.Context()) // it may return the error of intents that wait
	}
	w.ask(w.request(1, by("ann"), w.keyed, func(r *intent.Request) { r.Gas.MaxFee = intent.NewAmount(800) }))
	const step = 20
	var at []int // the moments of the claims, in twentieths of a poll
	for i := range 4 * step {
		before := seen.n
		if call(); seen.n > before {
			at = append(at, i)
		}
		w.clock.pass(w.settings.Poll / step)
	}
	if want := []int{0, 5, 15, 35, 55, 75}; len(at) != len(want) || at[1] != 5 || at[2] != 15 || at[3] != 35 || at[5] != 75 {
		t.Errorf("it claimed at %v twentieths of a poll, want %v", at, want)
	}
	w.clock.pass(w.settings.Poll)
	for i := range 3 {
		before := seen.n
		w.ask(w.request(10+i, by("ann"), w.keyed))
		if call(); seen.n != before+1 {
			t.Errorf("good intent %d: it claimed %d times", i, seen.n-before)
		}
	}
	if n := a.held.State.InFlight(); n != 3 {
		t.Errorf("%d intents have a nonce", n)
	}
}

// An intent is requested while the lane does not answer calls. The lane claims it when the pause is
// over, without another call.
func TestKeptCallIsAnswered(t *testing.T) {
	w := newWorld(t)
	w.hold = true
	a, seen := w.called()
	a.box.call()
	must(t, a.turn(t.Context())) // in vain
	w.ask(w.request(1, by("ann"), w.keyed))
	a.box.call()
	must(t, a.turn(t.Context()))
	if seen.n != 1 {
		t.Fatalf("it claimed %d times", seen.n)
	}
	w.clock.pass(w.settings.Poll / callsPerPoll)
	must(t, a.turn(t.Context()))
	if n := a.held.State.InFlight(); n != 1 {
		t.Errorf("%d intents have a nonce after %d claims", n, seen.n)
	}
}

// The end of the pause wakes the lane: neither a poll nor another call comes.
func TestEndOfPauseWakesTheLane(t *testing.T) {
	w := newWorld(t)
	w.settings.Poll = time.Hour
	w.hold = true
	a, seen := w.called()
	a.Now = time.Now
	a.calls = calls{wait: 50 * time.Millisecond, until: time.Now().Add(50 * time.Millisecond)}
	seen.each = make(chan struct{}, 1)
	a.claim = false
	a.box.call()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- a.run(ctx) }()
	select {
	case <-seen.each:
	case <-time.After(10 * time.Second):
		t.Error("the call is forgotten")
	}
	stop()
	<-ended
}

// The estimate of a claimed intent arrives while the lane does not answer calls: it goes on with the
// intent at once.
func TestEstimatesEndNoPauseLate(t *testing.T) {
	w := newWorld(t)
	w.hold = true
	a, _ := w.called()
	r := w.request(1, by("ann"), w.keyed, func(r *intent.Request) { r.Gas.Limit = 0 })
	slow := make(chan struct{})
	w.trials.Store(r.ID(), slow)
	w.ask(r)
	a.box.call()
	must(t, a.turn(t.Context()))
	if a.calls.left(w.clock.now()) == 0 {
		t.Fatal("the lane answers calls")
	}
	<-a.box.wake // of the call
	close(slow)
	<-a.box.wake // of the estimate
	must(t, a.turn(t.Context()))
	if n := a.held.State.InFlight(); n != 1 {
		t.Errorf("%d intents have a nonce", n)
	}
}

// Each call is answered within a poll by a claim after it. Other calls, claims for other reasons,
// claims in vain, and a clock that is set back do not change that.
func TestNoCallIsForgotten(t *testing.T) {
	const poll = 100 * time.Millisecond
	rapid.Check(t, func(r *rapid.T) {
		var c calls
		now, open, since := time.Unix(1_800_000_000, 0), false, time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(r, "turns") {
			called, claims := rapid.Bool().Draw(r, "called"), rapid.IntRange(0, 4).Draw(r, "claims") == 0
			if called && !open {
				open, since = true, 0
			}
			if c.take(called, claims, now) || claims {
				if open = false; c.kept {
					r.Fatal("it is answered and kept")
				}
				if rapid.IntRange(0, 9).Draw(r, "vain") > 0 {
					c.answered(true, now, poll)
				} else {
					c.answered(false, now, poll)
				}
			}
			if open != c.kept {
				r.Fatalf("a call is open: %v; it is kept: %v", open, c.kept)
			}
			if open && since >= poll {
				r.Fatalf("a call is not answered within %s", since)
			}
			passes := time.Duration(rapid.IntRange(0, 40).Draw(r, "passes")) * time.Millisecond
			if left := c.left(now); c.kept && left < passes {
				passes = left // the lane wakes up
			}
			if rapid.IntRange(0, 30).Draw(r, "set back") == 0 {
				now = now.Add(-time.Hour)
			}
			now, since = now.Add(passes), since+passes
		}
	})
}
