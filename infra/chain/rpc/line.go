package rpc

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/fair"
)

// waiter is a request for n calls of a meter.
type waiter struct {
	use    purpose
	client string // the client of a broadcast, a trial, a repeat or a passed-on call; empty without API keys
	n      int
	moved  chan struct{} // signals that it is first in line, or that its wait is shorter
}

// rank is the priority of a purpose: trials are as urgent as reads.
func (use purpose) rank() purpose {
	if use == trying {
		return read
	}
	return use
}

// inLine sorts waiting calls: by rank, then by arrival. Within each purpose of clients, they take
// turns: a client that holds fewer places goes first, then the client
// after the last one served. Trials keep the positions that trials have among reads.
func inLine(waiting []*waiter, last turns, holds held) []*waiter {
	line := slices.Clone(waiting)
	slices.SortStableFunc(line, func(a, b *waiter) int { return cmp.Compare(a.use.rank(), b.use.rank()) })
	for use := range purposes {
		if !use.ofClients() {
			continue
		}
		byClient := map[string][]*waiter{}
		for _, w := range line {
			if w.use == use {
				byClient[w.client] = append(byClient[w.client], w)
			}
		}
		dealt := fair.Deal(last[use], len(line), byClient)
		slices.SortStableFunc(dealt, func(a, b *waiter) int { return cmp.Compare(holds[use][a.client], holds[use][b.client]) })
		for i, w := range line {
			if w.use == use {
				line[i], dealt = dealt[0], dealt[1:]
			}
		}
	}
	return line
}

type (
	// turns is the client served last, for each purpose.
	turns [purposes]string
	// held counts the places of each client, for each purpose.
	held [purposes]map[string]int
)

// ahead returns the number of calls wanted by the waiters before w, from a rank on, and whether
// there are any. The caller holds the lock.
func (m *meter) ahead(w *waiter, from purpose) (calls int, some bool) {
	line := m.line
	if !slices.Contains(line, w) {
		line = inLine(append(slices.Clone(line), w), m.last, held{})
	}
	for _, other := range line {
		if other == w {
			break
		}
		if other.use >= from {
			calls, some = calls+other.n, true
		}
	}
	return calls, some
}

func (m *meter) join(w *waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.line = inLine(append(m.line, w), m.last, held{})
}

func (m *meter) quit(w *waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.line = inLine(slices.DeleteFunc(m.line, func(other *waiter) bool { return other == w }), m.last, held{})
	m.call()
}

// call wakes the first in line. The caller holds the lock.
func (m *meter) call() {
	if len(m.line) == 0 {
		return
	}
	select {
	case m.line[0].moved <- struct{}{}:
	default: // it is woken already
	}
}

// enter waits until n calls may be made in one request: until there is budget and a free place,
// for at most patience. leave frees the place. The error is *Spent, or ctx's own.
func (m *meter) enter(ctx context.Context, now func() time.Time, w waiter, patience time.Duration) (leave func(), err error) {
	late, cancel := context.WithCancel(context.Background())
	defer cancel()
	timer := time.AfterFunc(patience, cancel)
	defer timer.Stop()
	if err := m.bide(ctx, now, &w, patience, late.Done()); err != nil {
		return nil, err
	}
	if err := m.promise(ctx, now, w, patience, late.Done()); err != nil {
		return nil, err
	}
	if m.places.take(ctx, &w, late.Done()) {
		return func() { m.places.leave(&w) }, nil
	}
	if err = ctx.Err(); err == nil {
		err = m.refuse(w.n, "endpoints.concurrency", fmt.Sprintf("%d requests are under way", m.places.underWay()))
	}
	m.giveBack(w)
	return nil, err
}

// bide waits until the rate of the client allows the calls. Waiting here, they hold nobody's place in
// the line.
func (m *meter) bide(ctx context.Context, now func() time.Time, w *waiter, patience time.Duration, late <-chan struct{}) error {
	if !w.use.ofClients() {
		return nil
	}
	for {
		wait, rate, cuts, err := m.slot(now(), w, patience)
		if err != nil || wait <= 0 {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-late:
			timer.Stop()
			return m.tooManyOf(w.n, rate)
		}
		if m.cutsOf(w) == cuts {
			return nil
		}
	}
}

// promise waits until there is budget for the calls, and takes them from it.
func (m *meter) promise(ctx context.Context, now func() time.Time, w waiter, patience time.Duration, late <-chan struct{}) error {
	wait, err := m.take(now(), &w, patience)
	if err != nil || wait == 0 {
		return err
	}
	w.moved = make(chan struct{}, 1)
	return m.await(ctx, now, &w, wait, late)
}

// await waits in line, and takes the calls when their turn comes.
func (m *meter) await(ctx context.Context, now func() time.Time, w *waiter, wait time.Duration, late <-chan struct{}) error {
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
		wait, err := m.take(now(), w, forever)
		switch {
		case err != nil || wait == 0:
			return err
		case last:
			return m.outOfRate(w.n)
		}
		next.Reset(wait)
	}
}

// forever means no limit on waiting: a call in line has its own deadline.
const forever time.Duration = math.MaxInt64
