package rpc

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// waiter is who wants n calls of a meter. In its line reads go before what clients ask
// for, and else who came first; broadcasts are not in it.
type waiter struct {
	use   purpose
	n     int
	moved chan struct{} // told that it is the first now, or waits for less
}

// rank is the place of a purpose in line: trials are as urgent as reads.
func (use purpose) rank() purpose {
	if use == trying {
		return read
	}
	return use
}

// ahead is how many calls those want who go before w, and whether there are any. The lock
// is held.
func (m *meter) ahead(w *waiter) (calls int, some bool) {
	for _, other := range m.line {
		if other == w || other.use.rank() > w.use.rank() {
			break
		}
		calls, some = calls+other.n, true
	}
	return calls, some
}

func (m *meter) join(w *waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := slices.IndexFunc(m.line, func(other *waiter) bool { return other.use.rank() > w.use.rank() })
	if at < 0 {
		at = len(m.line)
	}
	m.line = slices.Insert(m.line, at, w)
}

func (m *meter) quit(w *waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.line = slices.DeleteFunc(m.line, func(other *waiter) bool { return other == w })
	m.call()
}

// call has the first in line look whether it may go. The lock is held.
func (m *meter) call() {
	if len(m.line) == 0 {
		return
	}
	select {
	case m.line[0].moved <- struct{}{}:
	default: // it is told already
	}
}

// enter waits until n calls may be made in one request: until there is budget and
// a free slot, for patience at most. leave frees the slot. The error is *Spent, or
// ctx's own.
func (m *meter) enter(ctx context.Context, now func() time.Time, use purpose, n int, patience time.Duration) (leave func(), err error) {
	wait, err := m.take(now(), use, n, patience)
	if err != nil {
		return nil, err
	}
	leave = func() { <-m.slots }
	if wait == 0 {
		select {
		case m.slots <- struct{}{}:
			return leave, nil
		default:
		}
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	switch {
	case wait == 0:
	case use != broadcast:
		w := &waiter{use: use, n: n, moved: make(chan struct{}, 1)}
		if err := m.await(ctx, now, w, wait, late.C); err != nil {
			return nil, err
		}
	default:
		promised := time.NewTimer(wait)
		defer promised.Stop()
		select {
		case <-promised.C:
		case <-ctx.Done():
			m.giveBack(n)
			return nil, ctx.Err()
		}
	}
	select {
	case m.slots <- struct{}{}:
		return leave, nil
	default:
	}
	select {
	case m.slots <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-late.C:
		err = m.refuse(n, fmt.Sprintf("%d requests are under way", cap(m.slots)))
	}
	m.giveBack(n)
	return nil, err
}

// await waits in line, and takes the calls when it is their turn.
func (m *meter) await(ctx context.Context, now func() time.Time, w *waiter, wait time.Duration, late <-chan time.Time) error {
	m.join(w)
	defer m.quit(w)
	next := time.NewTimer(wait)
	defer next.Stop()
	for last := false; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			last = true
		case <-next.C:
		case <-w.moved:
		}
		wait, err := m.takeFor(now(), w, forever)
		switch {
		case err != nil || wait == 0:
			return err
		case last:
			return m.refuse(w.n, fmt.Sprintf("%g calls per second are spent", m.Rate))
		}
		next.Reset(wait)
	}
}

// forever is the patience of who is in line: it has a deadline of its own.
const forever time.Duration = math.MaxInt64
