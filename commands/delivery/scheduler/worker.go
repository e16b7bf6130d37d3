package scheduler

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Worker leases one chain's due work and attempts it. Every replica runs one for each
// chain.
type Worker struct {
	Chain  chain.ID
	Queue  Queue
	Holder string // this process
	// Attempt makes one broadcast attempt and returns the row's next due time: that of a
	// broadcaster.Broadcaster. It must end within Lease: after that another worker may take
	// the row.
	Attempt func(ctx context.Context, w tx.Work) tx.Done
	Lease   time.Duration // duration of a row's lease
	Poll    time.Duration // longest interval between reads of the queue
	// Slots is the number of concurrent attempts. A quarter of them is reserved for first
	// attempts, so that frequent repeats do not keep other transactions from being sent at
	// all.
	Slots int
	Log   *slog.Logger

	repeats atomic.Int64 // repeats in progress
	capped  atomic.Bool  // the queue was asked for fewer repeats than there were slots
	resting atomic.Bool  // idle until there is more to do
	wake    chan struct{}
	once    sync.Once
}

// firstShare is the inverse share of the slots reserved for first attempts. With fewer than
// four slots none is reserved.
const firstShare = 4

// Wake makes the worker read the queue now. It never blocks.
func (w *Worker) Wake() {
	w.init()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Idle reports whether the worker has free slots and knows of no work for them.
func (w *Worker) Idle() bool { return w.resting.Load() }

func (w *Worker) init() { w.once.Do(func() { w.wake = make(chan struct{}, 1) }) }

// doneMax bounds how many finished attempts are reported to the queue at once.
const doneMax = 500

// Run works until ctx ends, and returns when the attempts in progress have ended and were
// reported to the queue, so that no lease is left behind.
func (w *Worker) Run(ctx context.Context) {
	w.init()
	free := make(chan struct{}, w.Slots)
	for range w.Slots {
		free <- struct{}{}
	}
	done := make(chan tx.Done, w.Slots)
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		w.report(context.WithoutCancel(ctx), done)
	}()

	var attempts sync.WaitGroup
	for ctx.Err() == nil {
		n := claim(ctx, free)
		if n == 0 || ctx.Err() != nil {
			break
		}
		asked := time.Now()
		repeats := max(w.Slots-w.Slots/firstShare-int(w.repeats.Load()), 0)
		w.capped.Store(repeats < n)
		work, until := w.lease(ctx, n, min(n, repeats))
		for range n - len(work) {
			free <- struct{}{}
		}
		for _, item := range work {
			again := item.Attempts > 0
			if again {
				w.repeats.Add(1)
			}
			attempts.Go(func() {
				// A graceful stop lets an attempt finish. Its deadline is the lease, which
				// may have begun when it was requested.
				attempt, cancel := context.WithDeadline(context.WithoutCancel(ctx), asked.Add(w.Lease*9/10))
				defer cancel()
				done <- w.Attempt(attempt, item)
				free <- struct{}{}
				if again {
					w.repeats.Add(-1)
					if w.capped.Load() {
						w.Wake()
					}
				}
			})
		}
		if len(work) < n {
			w.rest(ctx, min(max(until, minRest), w.Poll))
		}
	}
	attempts.Wait()
	close(done)
	<-reported
}

// minRest protects a queue that answers "due now" with no rows from a busy loop.
const minRest = time.Millisecond

// gather is how long a busy worker waits for more free slots, so that it asks the queue
// once for many rows rather than once for each.
const gather = 3 * time.Millisecond

// claim takes free slots: all that are free now, or half of all slots, whichever is more.
// It waits no longer than gather after the first.
func claim(ctx context.Context, free chan struct{}) (n int) {
	select {
	case <-free:
		n = 1
	case <-ctx.Done():
		return 0
	}
	enough := time.NewTimer(gather)
	defer enough.Stop()
	for n < cap(free) {
		if n >= cap(free)/2 && len(free) == 0 {
			break
		}
		select {
		case <-free:
			n++
		case <-enough.C:
			return n
		}
	}
	return n
}

func (w *Worker) lease(ctx context.Context, limit, repeats int) ([]tx.Work, time.Duration) {
	// Not cut short by a stop: otherwise rows leased by an abandoned call would lie idle
	// until their lease lapses.
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.Lease)
	defer cancel()
	work, until, err := w.Queue.Lease(call, w.Chain, w.Holder, w.Lease, limit, repeats)
	if err != nil {
		if ctx.Err() == nil {
			w.Log.Warn("the queue could not be reached", "chain", w.Chain, "err", err)
		}
		return nil, w.Poll
	}
	return work, until
}

func (w *Worker) rest(ctx context.Context, d time.Duration) {
	w.resting.Store(true)
	defer w.resting.Store(false)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.wake:
	case <-t.C:
	case <-ctx.Done():
	}
}

// reportGather is how long a report waits for more attempts to end.
const reportGather = time.Millisecond

// gatherDone adds the attempts that end within reportGather of the first.
func gatherDone(first tx.Done, done <-chan tx.Done) []tx.Done {
	batch := []tx.Done{first}
	enough := time.NewTimer(reportGather)
	defer enough.Stop()
	for len(batch) < doneMax {
		select {
		case d, more := <-done:
			if !more {
				return batch
			}
			batch = append(batch, d)
		case <-enough.C:
			return batch
		}
	}
	return batch
}

// report reports finished attempts to the queue in batches, sorted so that two concurrent
// reports on the same rows cannot deadlock.
func (w *Worker) report(ctx context.Context, done <-chan tx.Done) {
	for first := range done {
		batch := gatherDone(first, done)
		slices.SortFunc(batch, func(a, b tx.Done) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
		call, cancel := context.WithTimeout(ctx, w.Lease)
		if err := w.Queue.Done(call, w.Holder, batch); err != nil {
			// The leases lapse and the rows are attempted again: the same bytes.
			w.Log.Warn("the queue could not be updated with attempts", "chain", w.Chain, "attempts", len(batch), "err", err)
		}
		cancel()
		if slices.ContainsFunc(batch, func(d tx.Done) bool { return d.Standing == tx.Able }) {
			w.Wake() // an account that was on hold has rows to release
		}
	}
}
