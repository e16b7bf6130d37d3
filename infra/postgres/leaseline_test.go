package postgres

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// A release waits for an acquisition that is under way, and whose caller has gone: it would read
// the row after the release, and take the lease for nobody. An acquisition that the server has
// not been asked for yet is dropped.
func TestLeaseLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var line leaseLine
		reached, goOn := make(chan struct{}), make(chan struct{})
		var still int
		acquire := func(_ context.Context, asked []*leaseAsk) error {
			close(reached)
			<-goOn
			still = len(line.present(asked))
			return nil
		}
		ask := &leaseAsk{name: "lane", holder: "a", ttl: time.Minute, done: make(chan struct{})}
		if err := line.join(ask, acquire); err != nil {
			t.Fatal(err)
		}
		<-reached
		line.leave(ask)
		released := false
		go func() {
			if err := line.settled(t.Context(), "lane", "a"); err != nil {
				t.Error(err)
			}
			released = true
		}()
		synctest.Wait()
		if released {
			t.Error("released beside an acquisition that is under way")
		}
		if err := line.settled(t.Context(), "lane", "b"); err != nil { // another holder's: nothing is under way
			t.Error(err)
		}
		close(goOn)
		synctest.Wait()
		if !released || still != 0 {
			t.Errorf("released: %v, %d callers still wait", released, still)
		}
		line.close(eventlog.ErrClosed)
		if err := line.join(ask, acquire); err == nil {
			t.Error("a closed line takes an acquisition")
		}
	})
}

// A batch is tried for a third of the term, and a short term does not make a slow server an error.
func TestLeaseLineTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for term, want := range map[time.Duration]time.Duration{time.Minute: 20 * time.Second, 300 * time.Millisecond: leaseTry} {
			var line leaseLine
			ask := &leaseAsk{name: "lane", holder: "a", ttl: term, done: make(chan struct{})}
			var tried time.Duration
			if err := line.join(ask, func(ctx context.Context, _ []*leaseAsk) error {
				end, _ := ctx.Deadline()
				tried = time.Until(end)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			<-ask.done
			if tried != want {
				t.Errorf("a lease for %s: tried for %s, want %s", term, tried, want)
			}
			line.close(eventlog.ErrClosed)
		}
	})
}
