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
	// reserved is the share of Burst, Daily and Concurrency that reads leave for broadcasts.
	reserved = 0.2
	// reservedForUs is the share that what clients ask for leaves for our own calls.
	reservedForUs = 0.5
	// reservedForReads is the share of Burst, Daily and Concurrency that trials leave for
	// broadcasts and reads.
	reservedForReads = 0.35
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
	Limit    string // the setting that forbids it, and whose share is spent; nothing secret
}

func (e *Spent) Error() string { return fmt.Sprintf("%s: not asked: %s", e.Endpoint, e.Reason) }

// Withheld is which limit it was, for whoever passes that on.
func (e *Spent) Withheld() string { return e.Limit }

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
	places   *places       // held while a request is under way
	withheld atomic.Uint64 // calls that were not made

	mu     sync.Mutex
	tokens float64 // calls that may be made at once; below zero, broadcasts are promised them
	owed   float64 // calls made beyond the burst, which what is no broadcast pays off
	line   []*waiter
	last   turns
	at     time.Time
	day    int64          // since 1970, in UTC
	spent  int            // of Daily, on that day
	passed map[string]int // of spent, what each client decided
	pauses pauses
}

func newMeter(name string, b Budget, now time.Time) *meter {
	b = b.withDefaults()
	return &meter{Budget: b, name: name, places: placesOf(b.Concurrency), passed: map[string]int{}, tokens: float64(b.Burst), at: now, day: dayOf(now)}
}

func dayOf(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

// turn brings the meter up to now. Its lock is held.
func (m *meter) turn(now time.Time) {
	if past := now.Sub(m.at); past > 0 {
		m.tokens += m.Rate * past.Seconds()
		if pay := min(m.owed, m.tokens-float64(int(reserved*float64(m.Burst)))); pay > 0 {
			m.tokens, m.owed = m.tokens-pay, m.owed-pay
		}
		m.tokens = min(m.tokens, float64(m.Burst))
	}
	m.at = now
	if day := dayOf(now); day != m.day {
		m.day, m.spent, m.passed = day, 0, map[string]int{}
	}
}

// take takes calls from the budget, for somebody who may be in line, and says how long to
// wait before they are made; it takes nothing when that is more than patience. Broadcasts are promised what is still to
// come. All else takes nothing as long as it has to wait, and then waits in line: else
// broadcasts would wait for what was promised to it.
func (m *meter) take(now time.Time, w *waiter, patience time.Duration) (wait time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	keep := w.use.leaves()
	if pause := m.pauses.left(now, w); pause > 0 {
		return 0, m.refuse(w.n, "the node's own", fmt.Sprintf("it asked for a pause of another %s", pause.Round(time.Millisecond)))
	}
	if err := m.today(w); err != nil {
		return 0, err
	}
	if m.Rate > 0 {
		// A batch larger than the burst waits for a full one and is paid off after.
		want := min(float64(w.n), float64(m.Burst)) + float64(int(keep*float64(m.Burst)))
		short := min(want, float64(m.Burst)) - m.tokens
		behind := false
		if w.use != broadcast {
			var ahead int
			ahead, behind = m.ahead(w)
			short += m.owed + float64(ahead)
		}
		wait = max(0, time.Duration(short/m.Rate*float64(time.Second)))
		if behind {
			wait = max(wait, time.Duration(float64(time.Second)/m.Rate))
		}
		switch {
		case wait > patience:
			return 0, m.refuse(w.n, "endpoints.rate", fmt.Sprintf("%g calls per second are spent", m.Rate))
		case wait > 0 && w.use != broadcast:
			return wait, nil
		}
		m.tokens -= float64(w.n)
		if w.use != broadcast && m.tokens < 0 {
			m.owed, m.tokens = m.owed-m.tokens, 0
		}
	}
	m.spent += w.n
	if w.use.ofClients() {
		m.last[w.use] = w.client
		m.passed[w.client] += w.n
	}
	return wait, nil
}

// today refuses calls that the day has no room for. A client decides as many as it leaves
// for the others, so that there are always some left: it alone half of them. Where
// clients have no names all are one, and have all of them. The lock is held.
func (m *meter) today(w *waiter) error {
	if m.Daily == 0 {
		return nil
	}
	left := int((1-w.use.leaves())*float64(m.Daily)) - m.spent - w.n
	if left < 0 {
		return m.refuse(w.n, "endpoints.daily", fmt.Sprintf("%d of %d calls of the day are spent", m.spent, m.Daily))
	}
	if had := m.passed[w.client]; w.use.ofClients() && w.client != "" && had+w.n > left {
		return m.refuse(w.n, "endpoints.daily, of which a client has no more than it leaves for others", fmt.Sprintf("the client has had %d calls of the day, and left %d for others", had, left+w.n))
	}
	return nil
}

// leaves is the share of the budget that is left for what goes before.
func (use purpose) leaves() float64 {
	switch use {
	case read:
		return reserved
	case trying:
		return reservedForReads
	case onBehalf:
		return reservedForUs
	}
	return 0
}

func (m *meter) refuse(n int, limit, reason string) error {
	m.withheld.Add(uint64(n))
	return &Spent{m.name, reason, limit}
}

// giveBack undoes a take whose calls were not made.
func (m *meter) giveBack(w waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Rate > 0 {
		m.tokens = min(m.tokens+float64(w.n), float64(m.Burst))
	}
	m.spent = max(m.spent-w.n, 0)
	if w.use.ofClients() {
		m.passed[w.client] = max(m.passed[w.client]-w.n, 0)
	}
	m.call()
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

// rest keeps calls away for as long as the node asked in answer to a call for a purpose, and of
// a client if one decided it: see [pauses].
func (m *meter) rest(now time.Time, use purpose, client string, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pauses.add(now, use, client, d)
}

// ofClients reports whether a client decides what is asked.
func (use purpose) ofClients() bool { return use == onBehalf || use == trying }

// client is whose calls a context is for, if a client decides them.
type clientKey struct{}

func ofClient(ctx context.Context, client string) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// clientOf is the client that decides what is asked, and whether one does.
func clientOf(ctx context.Context) (client string, decides bool) {
	client, decides = ctx.Value(clientKey{}).(string)
	return client, decides
}

// room reports whether one broadcast could leave at once.
func (m *meter) room(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	return m.places.underWay() < m.places.all() && !now.Before(m.pauses.all) &&
		(m.Rate == 0 || m.tokens >= 1) && (m.Daily == 0 || m.spent < m.Daily)
}

// limited reports whether it makes no sense to ask for a while: the day's calls
// that reads may have are spent, or the node asked for a pause.
func (m *meter) limited(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	return now.Before(m.pauses.all) || m.Daily > 0 && float64(m.spent) >= (1-reserved)*float64(m.Daily)
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
		Budget: m.Budget, Now: round(max(m.tokens, 0)), Today: max(m.Daily-m.spent, 0), InFlight: m.places.underWay(),
		Pause: max(m.pauses.all.Sub(now), 0), Withheld: m.withheld.Load(),
	}
}
