package guard_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// silent is a store that never answers reads of streams.
type silent struct{ port.Store }

func (silent) ReadStream(ctx context.Context, _ eventlog.Stream, _ eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		<-ctx.Done()
		yield(eventlog.Recorded{}, ctx.Err())
	}
}

// muted is a store that stops answering reads of streams once muted.
type muted struct {
	port.Store
	mute *atomic.Bool
}

func (m muted) ReadStream(ctx context.Context, s eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	if m.mute.Load() {
		return silent{m.Store}.ReadStream(ctx, s, after)
	}
	return m.Store.ReadStream(ctx, s, after)
}

// Intents are accepted on a recently read state while other callers wait for the store.
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

// A caller that waits for another caller's unanswered read gives up at its own deadline.
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
