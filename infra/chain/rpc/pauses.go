package rpc

import (
	"fmt"
	"math"
	"time"
)

const (
	// pauseMin and pauseMax bound the pause that a node may ask for.
	pauseMin = time.Second
	pauseMax = 5 * time.Minute
	// pauseUnsaid is the longest pause of a client's calls if the node does not say how long.
	pauseUnsaid = 8 * time.Second
	// pausedClientsMax is the number of client and purpose pairs that one endpoint remembers.
	pausedClientsMax = 4096
	// paceKept is how long the rate of a client's calls is remembered after its last call if many
	// other pairs are remembered.
	paceKept = time.Minute
	// inUse is the share of its rate that a client uses for calls of its own choice and for trials.
	// The rest is for the calls on which delivery depends.
	inUse = 0.5
	// lowQuiet is how long no such calls must have been made for the answer to an own read to hold for
	// all calls.
	lowQuiet = time.Second
)

// pauses are the times until which an endpoint is not asked, because it said so (429 or 503 with
// Retry-After), and the rates that it allows to clients. The answer to a client's call holds for this
// client's calls of the same purpose. The answer to one of our own reads holds for passed-on calls and
// trials of all clients, on which it may be due, and for all calls if none of these have been made for
// a while. The first pause is short. The pauses double, up to what the node asks for, while it goes on
// asking.
type pauses struct {
	all     time.Time
	own     time.Duration // the last pause of all calls
	low     time.Time     // passed-on calls and trials pause until then
	lowOwn  time.Duration // their last pause after one of our own reads
	lowAt   time.Time     // time of the last passed-on call or trial
	clients map[pausedClient]*clientPace
}

// clientPace is what an endpoint allows to one client's calls of a purpose.
type clientPace struct {
	until  time.Time     // they pause until then
	length time.Duration // the last pause
	pace
	at   time.Time // the pace is of this time: the last call or look at it
	free time.Time // when the next call may be made, if there is a rate
	cuts int       // number of cuts of the rate; times of calls from before the last one do not count
}

// pausedClient is a client and the purpose of its calls.
type pausedClient struct {
	client string
	use    purpose
}

// left is the remaining wait for calls of w; zero or less means none.
func (p *pauses) left(now time.Time, w *waiter) time.Duration {
	pause := p.all.Sub(now)
	if c := p.clients[pausedClient{w.client, w.use}]; c != nil && w.isLimited() {
		pause = max(pause, c.until.Sub(now))
	}
	if w.use.isLow() {
		pause = max(pause, p.low.Sub(now))
	}
	return pause
}

// isLowBusy reports whether passed-on calls or trials have just been made.
func (p *pauses) isLowBusy(now time.Time) bool { return now.Sub(p.lowAt) < lowQuiet }

// add starts or extends a pause after a call of w.
func (p *pauses) add(now time.Time, w *waiter, pause time.Duration) {
	pause = min(max(pause, pauseMin), pauseMax)
	if !w.use.ofClients() && p.isLowBusy(now) {
		p.lowOwn = again(now, p.low, p.lowOwn, pause)
		p.low = later(p.low, now.Add(p.lowOwn))
		return
	}
	if !w.use.ofClients() {
		p.own = again(now, p.all, p.own, pause)
		p.all = later(p.all, now.Add(p.own))
		return
	}
	c := p.of(now, w)
	if w.use == broadcast {
		pause = again(now, c.until, c.length, pause)
	}
	c.until, c.length = later(c.until, now.Add(pause)), pause
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// again returns the length of a pause after one that ended at last and took length.
func again(now, last time.Time, length, asked time.Duration) time.Duration {
	switch {
	case now.Before(last): // the answer to a call that was under way
	case now.Sub(last) > 2*length: // it has not asked for a while
		length = pauseMin
	default:
		length = max(2*length, pauseMin)
	}
	return min(length, asked)
}

// of returns the entry of w's client and purpose, up to date.
func (p *pauses) of(now time.Time, w *waiter) *clientPace {
	of := pausedClient{w.client, w.use}
	c := p.clients[of]
	if c == nil {
		p.makeRoom(now)
		if p.clients == nil {
			p.clients = map[pausedClient]*clientPace{}
		}
		c = &clientPace{at: now}
		p.clients[of] = c
	}
	c.turn(now)
	return c
}

func (c *clientPace) turn(now time.Time) {
	if past := now.Sub(c.at); past > 0 {
		c.pass(past)
		c.at = now
	}
}

// ends is when the entry may be forgotten.
func (c *clientPace) ends() time.Time {
	if c.learned == 0 {
		return c.until
	}
	return later(c.until, c.at.Add(paceKept))
}

// makeRoom removes the entries that have ended if pausedClientsMax are stored; if none has ended,
// the entry that ends first.
func (p *pauses) makeRoom(now time.Time) {
	if len(p.clients) < pausedClientsMax {
		return
	}
	var first pausedClient
	var ends time.Time
	for of, c := range p.clients {
		if end := c.ends(); !end.After(now) {
			delete(p.clients, of)
		} else if ends.IsZero() || end.Before(ends) {
			first, ends = of, end
		}
	}
	if len(p.clients) >= pausedClientsMax {
		delete(p.clients, first)
	}
}

// rate is the number of calls per second that the client may make for a purpose; 0 means no limit.
func (c *clientPace) rate(use purpose) float64 {
	if use.isLow() {
		return inUse * c.learned
	}
	return c.learned
}

// cut lowers the client's rate.
func (c *clientPace) cut(now time.Time) {
	if c.pace.cut(now, learnedMin) {
		c.free = now
		c.cuts++
	}
}

// isLow reports whether a client chooses the calls, or a client's intents are tried by them:
// delivery can do without them for a while.
func (use purpose) isLow() bool { return use == onBehalf || use == trying }

// slot is the time until the next call of w may be made, by the rate of its client. It reserves that
// time unless the wait would exceed patience. A reserved time counts until the rate is cut again.
func (m *meter) slot(now time.Time, w *waiter, patience time.Duration) (wait time.Duration, rate float64, cuts int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.pauses.clients[pausedClient{w.client, w.use}]
	if c == nil {
		return 0, 0, 0, nil
	}
	if err := m.paused(now, w); err != nil {
		return 0, 0, 0, err // without a wait that ends in the same refusal
	}
	c.turn(now)
	if rate = c.rate(w.use); rate == 0 {
		return 0, 0, c.cuts, nil
	}
	calls := func(n float64) time.Duration { return time.Duration(math.Ceil(n / rate * float64(time.Second))) }
	at := later(c.free, now.Add(-calls(max(0, math.Floor(learnedBurst*rate)-1))))
	if wait = at.Sub(now); wait > patience {
		return 0, 0, 0, m.tooManyOf(w.n, rate)
	}
	c.free = at.Add(calls(float64(w.n)))
	return wait, rate, c.cuts, nil
}

// paused refuses calls of w while they pause.
func (m *meter) paused(now time.Time, w *waiter) error {
	if pause := m.pauses.left(now, w); pause > 0 {
		return m.refuse(w.n, "the node's own", fmt.Sprintf("it requested a pause of another %s", pause.Round(time.Millisecond)))
	}
	return nil
}

// tooManyOf refuses calls for which the rate of their client has no room.
func (m *meter) tooManyOf(n int, rate float64) error {
	return m.refuse(n, "the node's own", fmt.Sprintf("it allows the client about %.0f calls of this kind per second, which are spent", rate))
}

// cutsOf is the number of times that the rate of w's client was cut.
func (m *meter) cutsOf(w *waiter) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.pauses.clients[pausedClient{w.client, w.use}]; c != nil {
		return c.cuts
	}
	return 0
}
