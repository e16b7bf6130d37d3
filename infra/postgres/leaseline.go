package postgres

import (
	"context"
	"slices"
	"sync"
	"time"
)

// leaseGather is the least time from one batch of acquisitions to the next: so at most fifty a
// second wait for the disk, whatever the number of leases. leaseBatch bounds a batch.
const (
	leaseGather = 20 * time.Millisecond
	leaseBatch  = 1000
	// leasePart is the part of the term for which a batch is tried, at least leaseTry: after it,
	// there is time for the holders to ask again.
	leasePart = 3
	leaseTry  = 2 * time.Second
)

// leaseAsk is a call of Acquire.
type leaseAsk struct {
	name, holder string
	ttl          time.Duration

	done chan struct{} // closed once held and err are set
	held bool
	err  error
	left bool // the caller has returned
}

// leaseLine is the line of acquisitions. The first to come begins a goroutine, which carries out
// batches until nobody waits.
type leaseLine struct {
	mu      sync.Mutex
	waiting []*leaseAsk
	taken   []*leaseAsk // under way
	working bool
	last    time.Time // when the last batch began
	closed  error

	stop func() // ends the batch under way
	work sync.WaitGroup
}

// join adds an acquisition to the line.
func (l *leaseLine) join(a *leaseAsk, acquire func(context.Context, []*leaseAsk) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed != nil {
		return l.closed
	}
	l.waiting = append(l.waiting, a)
	if !l.working {
		l.working = true
		ctx, cancel := context.WithCancel(context.Background())
		l.stop = cancel
		l.work.Go(func() {
			defer cancel()
			l.run(ctx, acquire)
		})
	}
	return nil
}

func (l *leaseLine) run(ctx context.Context, acquire func(context.Context, []*leaseAsk) error) {
	for {
		_ = pause(ctx, time.Until(l.last.Add(leaseGather))) // once ctx ends, acquire fails at once
		some := l.take()
		if len(some) == 0 {
			return
		}
		l.last = time.Now()
		trying, cancel := context.WithTimeout(ctx, max(some[0].ttl/leasePart, leaseTry))
		err := retry(trying, func() error { return acquire(trying, some) })
		cancel()
		l.answer(some, err)
	}
}

// take takes the next acquisitions, of different leases and for the same term. Without any, the
// work ends.
func (l *leaseLine) take() (some []*leaseAsk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := map[string]bool{}
	l.waiting = slices.DeleteFunc(l.waiting, func(a *leaseAsk) bool {
		if len(some) == leaseBatch || names[a.name] || len(some) > 0 && a.ttl != some[0].ttl {
			return false
		}
		names[a.name], some = true, append(some, a)
		return true
	})
	l.taken, l.working = some, len(some) > 0
	return some
}

// answer ends acquisitions. An acquisition that was granted before an error is held.
func (l *leaseLine) answer(some []*leaseAsk, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range some {
		if !a.held {
			a.err = err
		}
		close(a.done)
	}
	l.taken = nil
}

// leave drops an acquisition whose caller does not wait any more.
func (l *leaseLine) leave(a *leaseAsk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.left = true
	l.waiting = slices.DeleteFunc(l.waiting, func(b *leaseAsk) bool { return a == b })
}

// present returns those whose callers still wait, and who have no lease yet.
func (l *leaseLine) present(some []*leaseAsk) []*leaseAsk {
	l.mu.Lock()
	defer l.mu.Unlock()
	var still []*leaseAsk
	for _, a := range some {
		if !a.left && !a.held {
			still = append(still, a)
		}
	}
	return still
}

// settled waits until no acquisition of a lease by a holder is under way: a late one would
// take it again after its release.
func (l *leaseLine) settled(ctx context.Context, name, holder string) error {
	for {
		l.mu.Lock()
		i := slices.IndexFunc(l.taken, func(a *leaseAsk) bool { return a.name == name && a.holder == holder })
		var done chan struct{}
		if i >= 0 {
			done = l.taken[i].done
		}
		l.mu.Unlock()
		if done == nil {
			return nil
		}
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// close ends the work. Acquisitions that wait get the error of a batch that was cut short, later
// ones err.
func (l *leaseLine) close(err error) {
	l.mu.Lock()
	l.closed = err
	if l.stop != nil {
		l.stop()
	}
	l.mu.Unlock()
	l.work.Wait()
}
