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
)

// pace is the rate that an endpoint allows, learned from its answers that there are too many calls
// (429). Without it, calls would be made as fast as clients cause them, and be refused at random:
// one client's would keep away all others', and our own reads. With it, calls wait in line, clients
// in turns, as with a configured rate.
//
// It is cut when the node says that it is too high, and grows slowly otherwise.
type pace struct {
	learned float64   // calls per second; 0: none
	recent  float64   // calls in about the last second
	cutAt   time.Time // the last cut; further answers to calls of that time say nothing new
}

// pass lets time pass.
func (p *pace) pass(d time.Duration) {
	p.recent *= math.Exp(-d.Seconds() / learnedRecent.Seconds())
	if p.learned *= math.Exp(learnedGrowth * d.Seconds()); p.learned > learnedMax {
		p.learned = 0
	}
}

// cut lowers the rate.
func (p *pace) cut(now time.Time) {
	if now.Sub(p.cutAt) < learnedRecent {
		return
	}
	p.cutAt = now
	if p.learned == 0 {
		p.learned = p.recent
	}
	p.learned = max(learnedCut*p.learned, learnedMin)
}

// slow learns from an answer that the rate of calls is too high.
func (m *meter) slow(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	m.pace.cut(now)
	m.tokens = min(m.tokens, m.burst())
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
