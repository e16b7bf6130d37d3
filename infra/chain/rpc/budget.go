package rpc

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Budget bounds what one endpoint is asked by this process. Zero bounds nothing,
// save where a default is named.
type Budget struct {
	// Rate is calls per second, those in a batch one by one.
	Rate float64
	// Burst is how many calls may come at once after a pause. Default: Rate, at
	// least 1.
	Burst int
	// Daily is calls per day; days begin at midnight UTC.
	Daily int
	// Concurrency is how many requests are under way at once. Default 64.
	Concurrency int
}

const (
	defaultConcurrency = 64
	// reserved is the share of Burst and Daily that reads leave for broadcasts.
	reserved = 0.2
	// reservedForUs is the share that what clients ask for leaves for our own calls.
	reservedForUs = 0.5
	// pauseMin and pauseMax bound the pause that a node may ask for.
	pauseMin = time.Second
	pauseMax = 5 * time.Minute
)

func (b Budget) withDefaults() Budget {
	if b.Burst == 0 {
		b.Burst = max(1, int(b.Rate))
	}
	if b.Concurrency == 0 {
		b.Concurrency = defaultConcurrency
	}
	return b
}

// Spent means that the endpoint was not asked, because its budget forbids it.
type Spent struct {
	Endpoint string
	Reason   string
}

func (e *Spent) Error() string { return fmt.Sprintf("%s: not asked: %s", e.Endpoint, e.Reason) }

// purpose is what calls are for. Broadcasts go before reads, and both before what
// clients ask for, where there is not enough for all.
type purpose int

const (
	broadcast purpose = iota
	read
	trying   // what a client wants to be sent: see Reader.EstimateGas
	onBehalf // of a client: see Ask
	purposes
)

// meter keeps one endpoint to its budget.
type meter struct {
	Budget
	name     string
	slots    chan struct{} // held while a request is under way
	withheld atomic.Uint64 // calls that were not made

	mu     sync.Mutex
	tokens float64 // calls that may be made at once; below zero, they are promised already
	at     time.Time
	day    int64               // since 1970, in UTC
	spent  int                 // of Daily, on that day
	pauses [purposes]time.Time // until when each purpose is kept away
}

func newMeter(name string, b Budget, now time.Time) *meter {
	b = b.withDefaults()
	return &meter{Budget: b, name: name, slots: make(chan struct{}, b.Concurrency), tokens: float64(b.Burst), at: now, day: dayOf(now)}
}

func dayOf(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

// turn brings the meter up to now. Its lock is held.
func (m *meter) turn(now time.Time) {
	if past := now.Sub(m.at); past > 0 {
		m.tokens = min(m.tokens+m.Rate*past.Seconds(), float64(m.Burst))
	}
	m.at = now
	if day := dayOf(now); day != m.day {
		m.day, m.spent = day, 0
	}
}

// take takes n calls from the budget and says how long to wait before they are
// made; it takes nothing when that is more than patience.
func (m *meter) take(now time.Time, use purpose, n int, patience time.Duration) (wait time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	keep := 0.0
	switch use {
	case read, trying:
		keep = reserved
	case onBehalf:
		keep = reservedForUs
	}
	if pause := m.pauses[use].Sub(now); pause > 0 {
		return 0, m.refuse(n, fmt.Sprintf("it asked for a pause of another %s", pause.Round(time.Millisecond)))
	}
	if m.Daily > 0 && float64(m.spent+n) > (1-keep)*float64(m.Daily) {
		return 0, m.refuse(n, fmt.Sprintf("%d of %d calls of the day are spent", m.spent, m.Daily))
	}
	if m.Rate > 0 {
		// A batch larger than the burst waits for a full one and is paid off after.
		want := min(float64(n), float64(m.Burst)) + float64(int(keep*float64(m.Burst)))
		want = min(want, float64(m.Burst))
		if short := want - m.tokens; short > 0 {
			wait = time.Duration(short / m.Rate * float64(time.Second))
		}
		if wait > patience {
			return 0, m.refuse(n, fmt.Sprintf("%g calls per second are spent", m.Rate))
		}
		m.tokens -= float64(n)
	}
	m.spent += n
	return wait, nil
}

func (m *meter) refuse(n int, reason string) error {
	m.withheld.Add(uint64(n))
	return &Spent{m.name, reason}
}

// giveBack undoes a take whose calls were not made.
func (m *meter) giveBack(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Rate > 0 {
		m.tokens = min(m.tokens+float64(n), float64(m.Burst))
	}
	m.spent = max(m.spent-n, 0)
}

// charge takes n calls that are made in any case.
func (m *meter) charge(now time.Time, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	if m.Rate > 0 {
		m.tokens -= float64(n)
	}
	m.spent += n
}

// rest keeps calls away for as long as the node asked, within bounds. What it says to our
// own calls is for all; what it says to a client's is for clients' calls alone, or one who
// asks for too much could keep everybody's broadcasts away.
func (m *meter) rest(now time.Time, use purpose, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	until := now.Add(min(max(d, pauseMin), pauseMax))
	for of := range m.pauses {
		if (purpose(of) == use || !use.ofClients()) && until.After(m.pauses[of]) {
			m.pauses[of] = until
		}
	}
}

// ofClients reports whether a client decides what is asked.
func (use purpose) ofClients() bool { return use == onBehalf || use == trying }

// room reports whether one broadcast could leave at once.
func (m *meter) room(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	return len(m.slots) < cap(m.slots) && !now.Before(m.pauses[broadcast]) &&
		(m.Rate == 0 || m.tokens >= 1) && (m.Daily == 0 || m.spent < m.Daily)
}

// limited reports whether it makes no sense to ask for a while: the day's calls
// that reads may have are spent, or the node asked for a pause.
func (m *meter) limited(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	return now.Before(m.pauses[read]) || m.Daily > 0 && float64(m.spent) >= (1-reserved)*float64(m.Daily)
}

// BudgetLeft is what may still be asked of an endpoint.
type BudgetLeft struct {
	Budget
	Now      float64       // calls that may be made at once, if Rate is set
	Today    int           // calls left of the day, if Daily is set
	InFlight int           // requests under way
	Pause    time.Duration // that the node asked for and has not passed
	Withheld uint64        // calls not made for want of budget, since the start
}

func (m *meter) left(now time.Time) BudgetLeft {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	return BudgetLeft{
		Budget: m.Budget, Now: round(max(m.tokens, 0)), Today: max(m.Daily-m.spent, 0), InFlight: len(m.slots),
		Pause: max(m.pauses[read].Sub(now), 0), Withheld: m.withheld.Load(),
	}
}

// enter waits until n calls may be made in one request: until there is budget and
// a free slot, for patience at most. leave frees the slot. The error is *Spent, or
// ctx's own.
func (m *meter) enter(ctx context.Context, now time.Time, use purpose, n int, patience time.Duration) (leave func(), err error) {
	wait, err := m.take(now, use, n, patience)
	if err != nil {
		return nil, err
	}
	leave = func() { <-m.slots }
	select {
	case m.slots <- struct{}{}:
		if wait == 0 {
			return leave, nil
		}
		<-m.slots // not held while waiting for the other
	default:
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		m.giveBack(n)
		return nil, ctx.Err()
	}
	timer.Reset(max(patience-wait, 0))
	select {
	case m.slots <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = m.refuse(n, fmt.Sprintf("%d requests are under way", cap(m.slots)))
	}
	m.giveBack(n)
	return nil, err
}
