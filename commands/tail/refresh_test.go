package tail_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

const watched = eventlog.Stream("watched-1")

// growing is a log of one stream, which grows by grow.
type growing struct {
	port.Store
	batches chan eventlog.Batch
	version atomic.Int64
	reads   atomic.Int64
}

func (l *growing) Head(context.Context) (eventlog.Position, error) { return 0, nil }

func (l *growing) Subscribe(ctx context.Context, _ eventlog.Position, _ eventlog.Filter, _ int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		for {
			select {
			case <-ctx.Done():
				yield(eventlog.Batch{}, ctx.Err())
				return
			case b := <-l.batches:
				if !yield(b, nil) {
					return
				}
			}
		}
	}
}

func (l *growing) grow() {
	n := l.version.Add(1)
	at := eventlog.Position(n)
	l.batches <- eventlog.Batch{Events: []eventlog.Recorded{{Stream: watched, Version: eventlog.Version(n), Position: at}}, Next: at, Live: true}
}

const readTakes = time.Millisecond

// read returns the stream's version at the end of the read, or at its beginning.
func (l *growing) read(early bool) func(context.Context, handler.Result[int64]) (handler.Result[int64], error) {
	return func(ctx context.Context, _ handler.Result[int64]) (handler.Result[int64], error) {
		l.reads.Add(1)
		v := l.version.Load()
		select {
		case <-ctx.Done():
			return handler.Result[int64]{}, ctx.Err()
		case <-time.After(readTakes):
		}
		if !early {
			v = l.version.Load()
		}
		return handler.Result[int64]{State: v, Version: eventlog.Version(v)}, nil
	}
}

// crowd is many waits for one stream.
type crowd struct {
	*growing
	tail  *tail.Tail
	looks atomic.Int64 // calls that returned a state
	seen  []atomic.Int64
	errs  []error
	all   sync.WaitGroup
}

// inCrowd runs a test with many waits, each of which has looked at least once. They end with
// the test's function.
func inCrowd(t *testing.T, early bool, do func(t *testing.T, c *crowd)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := &growing{batches: make(chan eventlog.Batch)}
		c := &crowd{growing: log, tail: tail.New(log, tx.Codec(), slog.New(slog.DiscardHandler)), seen: make([]atomic.Int64, 100), errs: make([]error, 100)}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { c.tail.Run(ctx) })
		waiting, leave := context.WithCancel(ctx)
		for i := range c.seen {
			c.all.Go(func() { c.errs[i] = c.wait(waiting, &c.seen[i], log.read(early)) })
		}
		time.Sleep(time.Second)
		synctest.Wait()
		do(t, c)
		leave()
		c.all.Wait()
		stop()
		running.Wait()
	})
}

func (c *crowd) wait(ctx context.Context, seen *atomic.Int64, read func(context.Context, handler.Result[int64]) (handler.Result[int64], error)) error {
	var last handler.Result[int64]
	return c.tail.Until(ctx, func(ctx context.Context, w *tail.Wait) (bool, error) {
		r, err := tail.Refresh(ctx, w, watched, last, read)
		if err == nil {
			last = r
			seen.Store(r.State)
			c.looks.Add(1)
		}
		return false, err
	})
}

// expect fails the test unless all waits have seen the stream's end, after a number of reads.
func (c *crowd) expect(t *testing.T, when string, reads int64) {
	t.Helper()
	time.Sleep(time.Second)
	synctest.Wait()
	for i := range c.seen {
		if v := c.seen[i].Load(); v != c.version.Load() {
			t.Fatalf("%s: a wait has seen version %d of %d", when, v, c.version.Load())
		}
	}
	if n := c.reads.Swap(0); n != reads {
		t.Errorf("%s: %d reads, want %d", when, n, reads)
	}
}

// However many callers wait for a stream, an event costs one read of it.
func TestWaitsShareReads(t *testing.T) {
	inCrowd(t, false, func(t *testing.T, c *crowd) {
		if n := c.reads.Swap(0); n > 3 { // the first, one for all that came meanwhile, one as the tail began
			t.Errorf("%d reads at first", n)
		}
		for range 10 {
			c.grow()
			c.expect(t, "an event", 1)
		}
		c.grow()
		synctest.Wait() // the read is in progress
		c.grow()
		c.expect(t, "an event that the read in progress contains", 1)
	})
}

// A read that began before an event ends no wait for the event.
func TestOldReadsAreNotShared(t *testing.T) {
	inCrowd(t, true, func(t *testing.T, c *crowd) {
		c.reads.Store(0)
		c.grow()
		synctest.Wait() // the read is in progress, and has not got the next event
		c.grow()
		c.expect(t, "an event during a read", 2)
	})
}

// A new wait is not served from a read that began before it, even if no event was reported.
func TestNewWaitsRead(t *testing.T) {
	inCrowd(t, false, func(t *testing.T, c *crowd) {
		c.version.Add(1) // not reported yet
		var seen atomic.Int64
		ctx, leave := context.WithCancel(t.Context())
		c.all.Go(func() { _ = c.wait(ctx, &seen, c.read(false)) })
		time.Sleep(time.Second)
		if seen.Load() != 1 {
			t.Errorf("a new wait has seen version %d", seen.Load())
		}
		leave()
	})
}

// A caller that leaves during its read ends no other wait.
func TestLeavingDuringARead(t *testing.T) {
	inCrowd(t, false, func(t *testing.T, c *crowd) {
		var seen atomic.Int64
		ctx, leave := context.WithCancel(t.Context())
		reading := make(chan struct{})
		left := make(chan struct{})
		c.all.Go(func() {
			_ = c.wait(ctx, &seen, func(ctx context.Context, _ handler.Result[int64]) (r handler.Result[int64], err error) {
				close(reading)
				<-ctx.Done()
				return r, ctx.Err()
			})
			close(left)
		})
		<-reading
		c.reads.Store(0)
		c.grow()
		synctest.Wait() // all wait for that read
		leave()
		<-left
		c.expect(t, "the reader has left", 1)
	})
}

// All waits end with the error of a read that they share.
func TestReadErrorsAreShared(t *testing.T) {
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		log := &growing{batches: make(chan eventlog.Batch)}
		c := &crowd{growing: log, tail: tail.New(log, tx.Codec(), slog.New(slog.DiscardHandler))}
		var reads atomic.Int64
		for range 100 {
			c.all.Go(func() {
				var seen atomic.Int64
				err := c.wait(t.Context(), &seen, func(context.Context, handler.Result[int64]) (r handler.Result[int64], err error) {
					reads.Add(1)
					time.Sleep(readTakes)
					return r, broken
				})
				if !errors.Is(err, broken) {
					t.Error(err)
				}
			})
		}
		c.all.Wait()
		if n := reads.Load(); n > 2 {
			t.Errorf("%d reads", n)
		}
		time.Sleep(time.Minute) // until the tail's timer has ended
	})
}
