package tail_test

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// ticker is a log that grows by one event a second, and counts its followers.
type ticker struct {
	port.Store
	began time.Time

	mu         sync.Mutex
	now, begun int // running subscriptions, and all that ever ran
}

func (l *ticker) at() eventlog.Position {
	return eventlog.Position(1 + time.Since(l.began)/time.Second)
}

func (l *ticker) Head(context.Context) (eventlog.Position, error) { return l.at(), nil }

func (l *ticker) count(now, begun int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now += now
	l.begun += begun
}

func (l *ticker) followed() (now, begun int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now, l.begun
}

func (l *ticker) Subscribe(ctx context.Context, after eventlog.Position, _ eventlog.Filter, _ int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		l.count(1, 1)
		defer l.count(-1, 0)
		for {
			select {
			case <-ctx.Done():
				yield(eventlog.Batch{}, ctx.Err())
				return
			case <-time.After(time.Second):
			}
			var batch eventlog.Batch
			for p := after + 1; p <= l.at(); p++ {
				batch.Events = append(batch.Events, eventlog.Recorded{Position: p, Stream: "tick"})
			}
			after = l.at()
			batch.Next, batch.Live = after, true
			if !yield(batch, nil) {
				return
			}
		}
	}
}

func (l *ticker) ReadAll(_ context.Context, after eventlog.Position, _ eventlog.Filter, most int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		b := eventlog.Batch{Next: after, Live: true}
		for p := after + 1; p <= l.at() && len(b.Events) < most; p++ {
			b.Events, b.Next = append(b.Events, eventlog.Recorded{Position: p, Stream: "tick"}), p
		}
		yield(b, nil)
	}
}

// A log is followed while there is a listener and for a while after. A listener that comes
// after a long time without any still gets every event.
func TestFollowsWhoListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &ticker{began: time.Now()}
		followed := tail.New(log, tx.Codec(), slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			followed.Run(ctx)
		}()
		expect := func(when string, now, begun int) {
			t.Helper()
			synctest.Wait()
			if n, b := log.followed(); n != now || b != begun {
				t.Errorf("%s: %d follow it, %d did; want %d and %d", when, n, b, now, begun)
			}
		}
		time.Sleep(time.Minute)
		expect("nobody has listened", 0, 0)

		first, second := followed.Listen(), followed.Listen()
		expect("two listen", 1, 1)
		read := eventlog.Position(0)
		listen := func(events int) {
			t.Helper()
			for had := read; read < had+eventlog.Position(events); {
				grown := followed.Grown()
				batch, err := followed.Read(ctx, read, eventlog.Filter{}, 7)
				check(t, err)
				for _, e := range batch.Events {
					if read++; e.Position != read {
						t.Fatalf("%d came instead of %d", e.Position, read)
					}
				}
				if len(batch.Events) == 0 {
					<-grown
				}
			}
		}
		listen(100)
		first()
		time.Sleep(time.Minute)
		expect("one listens", 1, 1)
		second()
		time.Sleep(9 * time.Second)
		expect("one did just now", 1, 1)
		again := followed.Listen()
		time.Sleep(9 * time.Second)
		expect("one is back", 1, 1)
		again()
		time.Sleep(11 * time.Second)
		expect("nobody listens", 0, 1)
		time.Sleep(time.Hour)

		again = followed.Listen()
		listen(3800)
		expect("one is back after an hour", 1, 2)
		again()
		stop()
		<-ended
		expect("it has ended", 0, 2)
	})
}
