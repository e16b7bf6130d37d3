package rpc

import (
	"context"
	"fmt"
	"math"
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
	// Daily that first broadcasts leave for reads.
	reserved = 0.2
	// keptShare is the share of Rate that waiting first broadcasts leave for reads, and for repeats
	// if reads do not use it.
	keptShare = 0.4
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
// leave reads, trials and repeats a share. Reads go before trials, trials before repeats, but leave
// them every fourth call; all go before calls that clients choose. For all purposes but reads, clients take turns: they decide how many calls there are.
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
	tokens float64 // calls that may be made at once; negative after calls that could not wait
	kept   float64 // calls that reads and repeats may make at once although broadcasts wait
	owed   float64 // calls made beyond the burst; calls other than broadcasts wait until it is paid off
	line   []*waiter
	last   turns
	// overtaken counts, for each purpose, the calls of the next more urgent purpose that were made
	// while calls of this one waited.
	overtaken [purposes]int

	at     time.Time
	day    int64          // since 1970, UTC
	spent  int            // calls made on that day, of Daily
	ours   [read + 1]int  // first broadcasts and reads among them
	passed map[string]int // calls of that day made for each client
	pauses pauses
	pace   pace
	read   float64 // own reads answered in about readsRecent
	vain   float64 // moving share of own reads refused because of the rate, 0 to 1

	clientAt time.Time // time of the last call of clients
}

func newMeter(name string, b Budget, now time.Time) *meter {
	b = b.withDefaults()
	return &meter{Budget: b, name: name, places: placesOf(b.Concurrency), passed: map[string]int{}, tokens: float64(b.Burst), at: now, day: dayOf(now)}
}

// day is the time that a daily budget lasts; days begin at midnight UTC.
const day = 24 * time.Hour

func dayOf(t time.Time) int64 { return t.Unix() / int64(day.Seconds()) }

// turn refills the meter up to now. The caller holds the lock.
func (m *meter) turn(now time.Time) {
	if past := now.Sub(m.at); past > 0 {
		m.pace.pass(past)
		m.read *= math.Exp(-past.Seconds() / readsRecent.Seconds())
		m.refill(m.rate() * past.Seconds())
		if pay := min(m.owed, m.tokens-float64(int(reserved*m.burst()))); pay > 0 {
			m.tokens, m.owed = m.tokens-pay, m.owed-pay
		}
		m.tokens = min(m.tokens, m.burst())
	}
	m.at = now
	if today := dayOf(now); today != m.day {
		m.day, m.spent, m.ours, m.passed = today, 0, [read + 1]int{}, map[string]int{}
	}
}

// refill adds calls. While broadcasts wait, a share of the added ones is kept: otherwise no read and
// no repeat is made as long as broadcasts go on coming. The caller holds the lock.
func (m *meter) refill(more float64) {
	if !m.broadcastsWait() {
		m.tokens, m.kept = m.tokens+m.kept+more, 0
		return
	}
	keep := max(min(keptShare*more, m.keeps()-m.kept), 0)
	m.kept, m.tokens = m.kept+keep, m.tokens+more-keep
}

// broadcastsWait reports whether broadcasts wait in line. The caller holds the lock.
func (m *meter) broadcastsWait() bool { return len(m.line) > 0 && m.line[0].use == broadcast }

// keeps bounds the calls that are kept. With those of broadcasts, which come one by one, they are no
// more than Burst.
func (m *meter) keeps() float64 { return min(max(1, reserved*m.burst()), m.burst()-1) }

// until is the time in which this many calls are added to those of all purposes. The caller holds
// the lock.
func (m *meter) until(short float64) time.Duration {
	short = max(short, 0)
	slow := 0.0
	if m.broadcastsWait() {
		slow = min(short, max(m.keeps()-m.kept, 0)/keptShare*(1-keptShare)) // added while calls are kept too
	}
	return m.adds(slow/(1-keptShare) + short - slow)
}

// adds is the time in which this many calls are added; more than zero if any is missing.
func (m *meter) adds(calls float64) time.Duration {
	return time.Duration(math.Ceil(max(calls, 0) / m.rate() * float64(time.Second)))
}

// take takes calls from the budget, or returns how long to wait in line for them. It takes nothing
// if the wait would exceed patience.
func (m *meter) take(now time.Time, w *waiter, patience time.Duration) (wait time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	if err := m.paused(now, w); err != nil {
		return 0, err
	}
	if err := m.today(now, w); err != nil {
		return 0, err
	}
	if m.rate() > 0 {
		kept := false
		if wait, kept = m.wait(w); wait > patience {
			return 0, m.tooMany(w.n)
		}
		switch {
		case wait > 0:
			return wait, nil
		case kept:
			m.kept -= float64(w.n)
		default:
			m.tokens -= float64(w.n)
			if m.tokens < 0 {
				m.owed, m.tokens = m.owed-m.tokens, 0
			}
		}
	}
	m.spent += w.n
	m.overtakes(w)
	if w.use.isLow() {
		m.pauses.lowAt = now
	}
	if w.use.ofClients() {
		m.clientAt = now
	}
	if w.use <= read {
		m.ours[w.use] += w.n
	}
	if w.use.ofClients() {
		m.last[w.use] = w.turn()
		m.passed[w.client] += w.n
	}
	return 0, nil
}

// wait is the time until the calls of w may be made. kept means that these are kept calls. The
// caller holds the lock.
func (m *meter) wait(w *waiter) (wait time.Duration, kept bool) {
	one := m.adds(1)
	// A batch larger than the burst waits for a full burst and is paid off afterwards.
	want := min(float64(w.n), m.burst()) + float64(int(m.standing(w).leaves()*m.burst()))
	short := min(want, m.burst()) - m.tokens
	if w.use != broadcast {
		short += m.owed
	}
	ahead, behind := m.ahead(w, broadcast)
	if wait = m.until(short + float64(ahead)); behind {
		wait = max(wait, one)
	}
	if w.use != broadcast && w.use != onBehalf && (m.kept > 0 || m.broadcastsWait()) && float64(w.n) <= m.keeps() {
		ahead, behind := m.ahead(w, read)
		missing := float64(w.n+ahead) - m.kept
		if missing <= 0 && !behind {
			return 0, wait > 0
		}
		later := m.adds(missing / keptShare)
		if behind {
			later = max(later, one)
		}
		wait = min(wait, later)
	}
	return wait, false
}

// today refuses calls beyond the daily budget. A client may use as many calls as it leaves for
// the others, so some always remain: a single client gets half. For first broadcasts this share
// grows as the day passes. Without client names all clients are one, which may use all of it. The
// caller holds the lock.
func (m *meter) today(now time.Time, w *waiter) error {
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
	if !w.isLimited() || w.client == "" {
		return nil
	}
	had, weight := m.passed[w.client]+w.n, 1.0
	if w.use == broadcast {
		weight -= now.Sub(now.Truncate(day)).Seconds() / day.Seconds()
	}
	if weight*float64(had) > float64(left) {
		return m.refuse(w.n, "endpoints.daily: a client gets no more calls than it leaves for other clients", fmt.Sprintf("the client has used %d calls today, and left %d for other clients", had-w.n, left+w.n))
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
	if m.rate() > 0 {
		m.tokens = min(m.tokens+float64(w.n), m.burst())
	}
	m.spent = max(m.spent-w.n, 0)
	if w.use <= read {
		m.ours[w.use] = max(m.ours[w.use]-w.n, 0)
	}
	if w.use.ofClients() {
		m.passed[w.client] = max(m.passed[w.client]-w.n, 0)
	}
	m.call()
}

// charge takes n calls of our own unconditionally.
func (m *meter) charge(now time.Time, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	if m.rate() > 0 {
		m.tokens -= float64(n)
	}
	m.spent += n
	m.ours[read] += n
}

// ofClients reports whether clients choose the calls, or how many there are.
func (use purpose) ofClients() bool { return use != read }

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

// room reports whether a broadcast of w could be made at once.
func (m *meter) room(now time.Time, w *waiter) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	return m.places.underWay() < m.places.all() && m.pauses.left(now, w) <= 0 &&
		(m.rate() == 0 || m.tokens >= 1 && !m.broadcastsWait()) && (m.Daily == 0 || m.spent+m.keptToday(read) < m.Daily)
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
	Now      float64       // calls that may be made at once, if Rate is set; Rate may be lower than configured: see pace
	Today    int           // calls left of the day, if Daily is set
	InFlight int           // requests under way
	Pause    time.Duration // remaining pause that the node asked for
	Withheld uint64        // calls refused by the budget, since the start
}

func (m *meter) left(now time.Time) BudgetLeft {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	budget := m.Budget
	budget.Rate = round(m.rate())
	return BudgetLeft{
		Budget: budget, Now: round(max(m.tokens, 0)), Today: max(m.Daily-m.spent, 0), InFlight: m.places.underWay(),
		Pause: max(m.pauses.all.Sub(now), 0), Withheld: m.withheld.Load(),
	}
}
