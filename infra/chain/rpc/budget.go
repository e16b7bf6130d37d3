package rpc

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Budget bounds this process's calls to one endpoint. Zero means no limit, except where a
// default is named.
type Budget struct {
	// Rate is calls per second. Each call of a batch counts.
	Rate float64
	// Burst is how many calls may be made at once after a pause. Default: Rate, at least 1.
	Burst int
	// Daily is calls per day; days begin at midnight UTC.
	Daily int
	// Concurrency is the number of concurrent requests. Default 64.
	Concurrency int
}

const (
	defaultConcurrency = 64
	// reserved is the share of Burst, Daily and Concurrency that reads leave for broadcasts, and of
	// Rate and Daily that first broadcasts leave for reads.
	reserved = 0.2
	// reservedForUs is the share that calls passed on for clients leave for our own calls.
	reservedForUs = 0.5
	// reservedForReads is the share of Burst, Daily and Concurrency that trials leave for
	// broadcasts and reads.
	reservedForReads = 0.35
	// reservedForTrials is the share that repeats leave for first broadcasts, reads and trials.
	reservedForTrials = 0.42
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

// Spent means that the endpoint was not asked because its budget is spent.
type Spent struct {
	Endpoint string
	Reason   string
	Limit    string // the setting, and the share that is spent; contains no secret
}

func (e *Spent) Error() string { return fmt.Sprintf("%s: not asked: %s", e.Endpoint, e.Reason) }

// Withheld returns the limit, for callers that pass it on to a client.
func (e *Spent) Withheld() string { return e.Limit }

// purpose is the reason for a call. If the budget is short, first broadcasts go before reads, but
// leave reads a share; both go before repeats, and these before calls that clients choose.
type purpose int

const (
	broadcast purpose = iota // of a transaction's first attempt
	read
	trying   // try a client's transaction: see Reader.EstimateGas
	repeat   // a further attempt at a client's transaction: its reads and broadcasts
	onBehalf // pass on a client's call: see Ask
	purposes
)

// meter enforces one endpoint's budget.
type meter struct {
	Budget
	name     string
	places   *places       // one is held per running request
	withheld atomic.Uint64 // calls refused

	mu     sync.Mutex
	tokens float64 // calls that may be made at once; negative if promised to broadcasts
	kept   float64 // calls that may be made at once by reads, when there are no tokens
	owed   float64 // calls made beyond the burst; calls other than broadcasts wait until it is paid off
	line   []*waiter
	last   turns
	at     time.Time
	day    int64          // since 1970, UTC
	spent  int            // calls made on that day, of Daily
	ours   [read + 1]int  // first broadcasts and reads among them
	passed map[string]int // calls of that day chosen by each client, or repeated for it
	pauses pauses
}

func newMeter(name string, b Budget, now time.Time) *meter {
	b = b.withDefaults()
	return &meter{Budget: b, name: name, places: placesOf(b.Concurrency), passed: map[string]int{}, tokens: float64(b.Burst), at: now, day: dayOf(now)}
}

func dayOf(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

// turn refills the meter up to now. The caller holds the lock.
func (m *meter) turn(now time.Time) {
	if past := now.Sub(m.at); past > 0 {
		m.refill(m.Rate * past.Seconds())
		if pay := min(m.owed, m.tokens-float64(int(reserved*float64(m.Burst)))); pay > 0 {
			m.tokens, m.owed = m.tokens-pay, m.owed-pay
		}
		m.tokens = min(m.tokens, float64(m.Burst))
	}
	m.at = now
	if day := dayOf(now); day != m.day {
		m.day, m.spent, m.ours, m.passed = day, 0, [read + 1]int{}, map[string]int{}
	}
}

// refill adds calls. While calls are promised to broadcasts, a share of the added ones is kept for
// reads: otherwise no read is made as long as broadcasts go on coming. The caller holds the lock.
func (m *meter) refill(more float64) {
	if m.tokens < 0 {
		// Calls that reads do not use are not added to the tokens, so no broadcast comes earlier than promised.
		keep := reserved * min(more, -m.tokens/(1-reserved))
		m.kept, more = min(m.kept+keep, m.keeps()), more-keep
	}
	if m.tokens += more; m.tokens >= 0 {
		m.tokens, m.kept = m.tokens+m.kept, 0
	}
}

// keeps bounds the calls that are kept for reads. With those of broadcasts, which come one by one, they
// are no more than Burst.
func (m *meter) keeps() float64 { return min(max(1, reserved*float64(m.Burst)), float64(m.Burst-1)) }

// until is the time in which this many calls more than m has are added, the promised ones more
// slowly. The caller holds the lock.
func (m *meter) until(short float64, use purpose) time.Duration {
	slow := min(max(-m.tokens, 0), short)
	if use == broadcast {
		slow = short
	}
	return time.Duration((slow/(1-reserved) + short - slow) / m.Rate * float64(time.Second))
}

// take takes calls from the budget and returns how long to wait before making them. It takes
// nothing if the wait would exceed patience. A broadcast may take calls that become available
// later. Other calls take nothing while they have to wait, and wait in line: otherwise
// broadcasts would wait for calls promised to them.
func (m *meter) take(now time.Time, w *waiter, patience time.Duration) (wait time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	if pause := m.pauses.left(now, w); pause > 0 {
		return 0, m.refuse(w.n, "the node's own", fmt.Sprintf("it requested a pause of another %s", pause.Round(time.Millisecond)))
	}
	if err := m.today(w); err != nil {
		return 0, err
	}
	if m.Rate > 0 {
		kept := false
		if wait, kept = m.wait(w); wait > patience {
			return 0, m.refuse(w.n, "endpoints.rate", fmt.Sprintf("%g calls per second are spent", m.Rate))
		}
		switch {
		case wait > 0 && w.use != broadcast:
			return wait, nil
		case kept:
			m.kept -= float64(w.n)
		default:
			m.tokens -= float64(w.n)
			if w.use != broadcast && m.tokens < 0 {
				m.owed, m.tokens = m.owed-m.tokens, 0
			}
		}
	}
	m.spent += w.n
	switch {
	case w.use <= read:
		m.ours[w.use] += w.n
	case w.use.ofClients():
		m.last[w.use] = w.client
		m.passed[w.client] += w.n
	}
	return wait, nil
}

// wait is the time until the calls of w may be made. kept means that these are calls kept for
// reads. The caller holds the lock.
func (m *meter) wait(w *waiter) (wait time.Duration, kept bool) {
	// A batch larger than the burst waits for a full burst and is paid off afterwards.
	want := min(float64(w.n), float64(m.Burst)) + float64(int(w.use.leaves()*float64(m.Burst)))
	short := min(want, float64(m.Burst)) - m.tokens
	if w.use == broadcast {
		return m.until(max(short, 0), w.use), false
	}
	ahead, behind := m.ahead(w)
	wait = m.until(max(short+m.owed+float64(ahead), 0), w.use)
	if w.use == read && m.tokens < 0 && float64(w.n) <= m.keeps() {
		missing := float64(w.n+ahead) - m.kept
		if missing <= 0 && !behind {
			return 0, true
		}
		wait = min(wait, time.Duration(max(missing, 0)/(reserved*m.Rate)*float64(time.Second)))
	}
	if behind {
		wait = max(wait, time.Duration(float64(time.Second)/m.Rate))
	}
	return wait, false
}

// today refuses calls beyond the daily budget. A client may use as many calls as it leaves for
// the others, so some always remain: a single client gets half. Without client names all
// clients are one, which may use all of it. The caller holds the lock.
func (m *meter) today(w *waiter) error {
	if m.Daily == 0 {
		return nil
	}
	left := int((1-w.use.leaves())*float64(m.Daily)) - m.spent - w.n
	if w.use <= read {
		left = m.Daily - m.spent - w.n - m.keptToday(broadcast+read-w.use)
	}
	if left < 0 {
		return m.refuse(w.n, "endpoints.daily", fmt.Sprintf("%d of %d calls of the day are spent", m.spent, m.Daily))
	}
	if had := m.passed[w.client]; w.use.ofClients() && w.client != "" && had+w.n > left {
		return m.refuse(w.n, "endpoints.daily: a client gets no more calls than it leaves for other clients", fmt.Sprintf("the client has used %d calls today, and left %d for other clients", had, left+w.n))
	}
	return nil
}

// keptToday is the number of calls of the day that are kept for first broadcasts, or for reads. The
// caller holds the lock.
func (m *meter) keptToday(use purpose) int { return max(int(reserved*float64(m.Daily))-m.ours[use], 0) }

// leaves is the share of the budget reserved for more urgent purposes.
func (use purpose) leaves() float64 {
	switch use {
	case read:
		return reserved
	case trying:
		return reservedForReads
	case repeat:
		return reservedForTrials
	case onBehalf:
		return reservedForUs
	}
	return 0
}

func (m *meter) refuse(n int, limit, reason string) error {
	m.withheld.Add(uint64(n))
	return &Spent{m.name, reason, limit}
}

// giveBack returns calls that were taken and not made.
func (m *meter) giveBack(w waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Rate > 0 {
		m.tokens = min(m.tokens+float64(w.n), float64(m.Burst))
	}
	m.spent = max(m.spent-w.n, 0)
	switch {
	case w.use <= read:
		m.ours[w.use] = max(m.ours[w.use]-w.n, 0)
	case w.use.ofClients():
		m.passed[w.client] = max(m.passed[w.client]-w.n, 0)
	}
	m.call()
}

// charge takes n calls of our own unconditionally.
func (m *meter) charge(now time.Time, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	if m.Rate > 0 {
		m.tokens -= float64(n)
	}
	m.spent += n
	m.ours[read] += n
}

// rest pauses calls for as long as the node asked for, in answer to a call for a purpose, and
// of a client if a client chose it: see [pauses].
func (m *meter) rest(now time.Time, use purpose, client string, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pauses.add(now, use, client, d)
}

// ofClients reports whether clients choose the calls, or how many there are.
func (use purpose) ofClients() bool { return use == onBehalf || use == trying || use == repeat }

// clientKey is the context key of the client that chose a call.
type clientKey struct{}

func ofClient(ctx context.Context, client string) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// clientOf returns the client that chose a call, and whether a client did.
func clientOf(ctx context.Context) (client string, decides bool) {
	client, decides = ctx.Value(clientKey{}).(string)
	return client, decides
}

// room reports whether one broadcast could be made at once.
func (m *meter) room(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	return m.places.underWay() < m.places.all() && !now.Before(m.pauses.all) &&
		(m.Rate == 0 || m.tokens >= 1) && (m.Daily == 0 || m.spent+m.keptToday(read) < m.Daily)
}

// limited reports whether asking is useless for now: the reads' share of the day is spent, or
// the node asked for a pause.
func (m *meter) limited(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	return now.Before(m.pauses.all) || m.Daily > 0 && m.spent+m.keptToday(broadcast) >= m.Daily
}

// BudgetLeft is an endpoint's remaining budget.
type BudgetLeft struct {
	Budget
	Now      float64       // calls that may be made at once, if Rate is set
	Today    int           // calls left of the day, if Daily is set
	InFlight int           // requests under way
	Pause    time.Duration // remaining pause that the node asked for
	Withheld uint64        // calls refused by the budget, since the start
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
