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
	lane   bool          // a broadcast of a transaction that the relay has signed, see [tx.Sending]
	moved  chan struct{} // signals that it is first in line, or that its wait is shorter
}

// turn is the name under which calls take turns and hold places. A client's transactions that the relay
// has signed do not wait behind the client's other calls.
func (w *waiter) turn() string {
	if w.lane {
		return "\x00" + w.client // no client's name
	}
	return w.client
}

// isLimited reports whether the pauses, rates and daily share of the client hold for calls of w.
func (w *waiter) isLimited() bool { return w.use.ofClients() && !w.lane }

// inLine sorts waiting calls: by purpose, then by arrival. Within each purpose of clients, they take
// turns: a client that holds fewer places goes first, then the client
// after the last one served.
func inLine(waiting []*waiter, last turns, holds held) []*waiter {
	line := slices.Clone(waiting)
	slices.SortStableFunc(line, func(a, b *waiter) int { return cmp.Compare(a.use, b.use) })
	for use := range purposes {
		if !use.ofClients() {
			continue
		}
		byClient := map[string][]*waiter{}
		for _, w := range line {
			if w.use == use {
				byClient[w.turn()] = append(byClient[w.turn()], w)
			}
		}
		dealt := fair.Deal(last[use], len(line), byClient)
		slices.SortStableFunc(dealt, func(a, b *waiter) int { return cmp.Compare(holds[use][a.turn()], holds[use][b.turn()]) })
		for i, w := range line {
			if w.use == use {
				line[i], dealt = dealt[0], dealt[1:]
			}
		}
	}
	return line
}

// overtakesMax is the number of reads that may be made before a waiting trial, and the number of
// trials before a waiting repeat. Then one trial, or repeat, goes first: reads and trials that come
// without end would otherwise keep it waiting without end.
const overtakesMax = 3

// isKept reports whether waiting calls of a purpose go before those of the next more urgent one after
// overtakesMax of them.
func (use purpose) isKept() bool { return use == trying || use == repeat }

// sorted is the order of waiting calls for the budget. The caller holds the lock.
func (m *meter) sorted(waiting []*waiter) []*waiter {
	line := inLine(waiting, m.last, held{})
	for use := range purposes {
		if !use.isKept() || m.overtaken[use] < overtakesMax {
			continue
		}
		from := firstOf(line, use)
		to := firstOf(line, use-1)
		if from >= 0 && to >= 0 {
			w := line[from]
			line = slices.Insert(slices.Delete(line, from, from+1), to, w)
		}
	}
	return line
}

func firstOf(line []*waiter, use purpose) int {
	return slices.IndexFunc(line, func(w *waiter) bool { return w.use == use })
}

// standing is the purpose as which calls of w wait: as the next more urgent one if it is their turn.
// The caller holds the lock.
func (m *meter) standing(w *waiter) purpose {
	if w.use.isKept() && m.overtaken[w.use] >= overtakesMax {
		if i := firstOf(m.line, w.use); i >= 0 && m.line[i] == w {
			return w.use - 1
		}
	}
	return w.use
}

// overtakes counts the calls of w against those of the next less urgent purpose if they wait. The
// caller holds the lock.
func (m *meter) overtakes(w *waiter) {
	m.overtaken[w.use] = 0
	if behind := w.use + 1; behind < purposes && firstOf(m.line, behind) >= 0 {
		m.overtaken[behind] += w.n
	}
}

type (
	// turns is the client served last, for each purpose.
	turns [purposes]string
	// held counts the places of each client, for each purpose.
	held [purposes]map[string]int
)

// ahead returns the number of calls wanted by the waiters before w, from a purpose on, and whether
// there are any. It leaves out those that w will go before by its turn. The caller holds the lock.
func (m *meter) ahead(w *waiter, from purpose) (calls int, some bool) {
	line := m.line
	if !slices.Contains(line, w) {
		line = m.sorted(append(slices.Clone(line), w))
	}
	same, above := 0, 0 // calls of its own purpose, and of the next more urgent one
	for _, other := range line {
		if other == w {
			break
		}
		if other.use < from {
			continue
		}
		some = true
		switch {
		case other.use == w.use:
			same += other.n
		case w.use.isKept() && other.use == w.use-1:
			above += other.n
		default:
			calls += other.n
		}
	}
	return calls + same + min(above, overtakesMax*(same+1)), some
}

func (m *meter) join(w *waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.line = m.sorted(append(m.line, w))
}

func (m *meter) quit(w *waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.line = m.sorted(slices.DeleteFunc(m.line, func(other *waiter) bool { return other == w }))
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
	if !w.isLimited() {
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
