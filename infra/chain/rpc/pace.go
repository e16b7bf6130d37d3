package rpc

import (
	"fmt"
	"math"
	"time"
)

const (
	// learnedCut is the share of the recent rate that is kept when a node says that it is too high.
	learnedCut = 0.7
	// learnedGrowth is the growth of a learned rate, as a share per second.
	learnedGrowth = 0.02
	// learnedMin is the lowest learned rate, in calls per second. learnedMax is the rate from which none is needed.
	learnedMin, learnedMax = 5, 5000
	// learnedBurst is the burst of a learned rate, as a part of a second.
	learnedBurst = 0.25
	// learnedRecent is the time over which the recent rate is measured.
	learnedRecent = time.Second
	// readsRecent is the time over which the rate of answered own reads is measured. No learned rate of
	// all calls is below it.
	readsRecent = time.Minute
	// clientsRecent is how long after a client's call, of any purpose, a refusal of an own read says how
	// much clients send: nodes count calls for up to a minute.
	clientsRecent = time.Minute
)

// pace is the rate that an endpoint allows, learned from its answers that there are too many calls
// (429). Without it, calls would be made as fast as clients cause them, and be refused at random:
// one client's would keep away all others', and our own reads. With it, calls wait in line, clients
// in turns, as with a configured rate.
//
// The meter has one for all calls, which answers to our own reads change, and one for each client
// and purpose. A pace is cut when the node says that it is too high, and grows slowly otherwise.
type pace struct {
	learned float64   // calls per second; 0: none
	recent  float64   // calls answered in about the last second
	cutAt   time.Time // the last cut; further answers to calls of that time say nothing new
}

// pass lets time pass.
func (p *pace) pass(d time.Duration) {
	p.recent *= math.Exp(-d.Seconds() / learnedRecent.Seconds())
	if p.learned *= math.Exp(learnedGrowth * d.Seconds()); p.learned > learnedMax {
		p.learned = 0
	}
}

// cut lowers the rate, but not below least, and reports whether it did.
func (p *pace) cut(now time.Time, least float64) bool {
	if now.Sub(p.cutAt) < learnedRecent {
		return false
	}
	p.cutAt = now
	if p.learned == 0 {
		p.learned = p.recent
	}
	p.learned = max(learnedCut*p.learned, least)
	return true
}

// refused learns from an answer to calls of w that they are too many (limited), or that asks for a
// pause. A node that does not say how long is not asked for a while if it refuses many own reads: then
// a lower rate does not help. crowded means that w is an own read, and clients' calls may have used up
// the rate.
func (m *meter) refused(now time.Time, w *waiter, limited bool, pause time.Duration) (crowded bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	own := !w.use.ofClients()
	if crowded = own && now.Sub(m.clientAt) < clientsRecent; own && limited {
		m.vain += failureWeight * (1 - m.vain)
	}
	if pause == 0 && limited && (w.use == broadcast || own && (m.pauses.isLowBusy(now) || crowded && m.vain >= tripAt)) {
		pause = pauseUnsaid
	}
	if pause > 0 {
		m.pauses.add(now, w, pause)
	}
	switch {
	case !limited:
	case w.use.ofClients():
		m.pauses.of(now, w).cut(now)
	default:
		m.pace.cut(now, max(learnedMin, m.read/readsRecent.Seconds()))
		m.tokens = min(m.tokens, m.burst())
	}
	return crowded
}

// answered learns from an answer to calls of w that they were not too many.
func (m *meter) answered(now time.Time, w *waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	m.pace.recent += float64(w.n)
	switch {
	case w.isLimited():
		m.pauses.of(now, w).recent += float64(w.n)
	case !w.use.ofClients():
		m.read += float64(w.n)
		m.vain -= failureWeight * m.vain
	}
}

// outOfRate refuses calls that have waited in vain.
func (m *meter) outOfRate(n int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tooMany(n)
}

// tooMany refuses calls for which there is no rate. The caller holds the lock.
func (m *meter) tooMany(n int) error {
	if m.rate() != m.Rate {
		return m.refuse(n, "the node's own", fmt.Sprintf("it allows about %.0f calls per second, which are spent", m.rate()))
	}
	return m.refuse(n, "endpoints.rate", fmt.Sprintf("%g calls per second are spent", m.Rate))
}

// rate is the allowed number of calls per second; 0 means no limit. The caller holds the lock.
func (m *meter) rate() float64 {
	if m.pace.learned > 0 && (m.Rate == 0 || m.pace.learned < m.Rate) {
		return m.pace.learned
	}
	return m.Rate
}

// burst is the allowed number of calls at once, if there is a rate. The caller holds the lock.
func (m *meter) burst() float64 {
	if m.rate() == m.Rate {
		return float64(m.Burst)
	}
	least := max(2, math.Floor(learnedBurst*m.pace.learned))
	if m.Rate > 0 {
		return min(least, float64(m.Burst))
	}
	return least
}
