package guard_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/guard"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// silent answers nobody who reads a stream.
type silent struct{ commands.Store }

func (silent) ReadStream(ctx context.Context, _ event.Stream, _ event.Version) iter.Seq2[event.Recorded, error] {
	return func(yield func(event.Recorded, error) bool) {
		<-ctx.Done()
		yield(event.Recorded{}, ctx.Err())
	}
}

// muted answers until it is muted, and then nobody who reads a stream.
type muted struct {
	commands.Store
	mute *atomic.Bool
}

func (m muted) ReadStream(ctx context.Context, s event.Stream, after event.Version) iter.Seq2[event.Recorded, error] {
	if m.mute.Load() {
		return silent{m.Store}.ReadStream(ctx, s, after)
	}
	return m.Store.ReadStream(ctx, s, after)
}

// Intents are taken on by what was read a moment ago while others wait for the store.
func TestAcceptsBesideWhoWaits(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		var mute atomic.Bool
		g := w.replica(func(c *guard.Config) { c.Safeguards.Store = muted{c.Safeguards.Store, &mute} })
		asked := intent.Request{Chain: here, From: intent.From{Signer: &alice}}
		if err := g.Accept(t.Context(), asked); err != nil {
			t.Fatal(err)
		}
		mute.Store(true)
		ctx, stop := context.WithCancel(t.Context())
		waiting := make(chan error, 1)
		go func() {
			_, err := g.Switches(ctx)
			waiting <- err
		}()
		synctest.Wait() // it has the turn
		if err := g.Accept(t.Context(), asked); err != nil {
			t.Error(err)
		}
		stop()
		if err := <-waiting; !errors.Is(err, context.Canceled) {
			t.Errorf("who reads the switches: %v", err)
		}
	})
}

// Whoever has to wait for another, whom the store does not answer, waits no longer than it
// has time.
func TestWaitsForItsTurn(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		g := w.replica(func(c *guard.Config) { c.Safeguards.Store = silent{c.Safeguards.Store} })
		ask := func(patience time.Duration) <-chan error {
			ended := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				ended <- g.Accept(ctx, intent.Request{Chain: here, From: intent.From{Signer: &alice}})
			}()
			synctest.Wait()
			return ended
		}
		began := time.Now()
		patient := ask(time.Hour)
		if err := <-ask(time.Second); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if err := <-patient; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
