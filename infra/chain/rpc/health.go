package rpc

import (
	"math"
	"time"
)

// Health in numbers.
const (
	latencyWeight  = 0.2 // of the newest call in the moving average of latency
	failureWeight  = 0.2 // of the newest call in the moving share of failures
	tripAt         = 0.45
	coolFirst      = time.Second // after the first trip; doubles while probes fail
	coolLast       = 30 * time.Second
	latencyHalf    = 250 * time.Millisecond // the latency that halves a score
	lagHalf        = 5                      // the lag in blocks that halves it
	onTrial        = 0.35                   // the share of failures after a successful probe: one more trips again
	acquitted      = 0.1                    // the share at which past trips are forgotten
	maxErrorLength = 200

	liesMax      = 3 // contradictions within lieMemory of each other
	lieMemory    = 2 * time.Minute
	distrustMin  = 30 * time.Second // doubles while it goes on
	distrustMax  = 10 * time.Minute
	distrustPast = time.Hour // without a contradiction, it begins anew
)

// health is how an endpoint has been doing. It is data: time is given to it.
//
// The breaker trips when the moving share of failures reaches tripAt: after three
// failures in a row, or when about every other call fails. It stays tripped for a
// cool-down, after which one probe is due; a probe that fails doubles the
// cool-down, any success closes the breaker. Until some more have followed it is on
// trial: one failure trips it again, for twice as long as before. So an endpoint that
// answers now and then is out of rotation most of the time.
//
// Contradictions are counted apart, because one who lies may answer all the rest: a
// few of them, and the endpoint is distrusted for a while whatever else it says. One
// alone may be a balancer that asks two nodes.
type health struct {
	latency  time.Duration // moving average
	failures float64       // moving share, 0 to 1
	tripped  bool
	until    time.Time // a tripped endpoint is probed from then on
	cool     time.Duration
	trips    uint64

	lies       int // contradictions lately
	liedAt     time.Time
	distrusted time.Time // until then
	distrust   time.Duration
	lied       uint64 // contradictions ever

	differences uint64 // times that it and another differed and no majority could decide
	differedAt  time.Time

	head   uint64 // the newest block it has shown; 0 before the first
	headAt time.Time
	lag    uint64 // behind the others when it showed it
	lead   uint64 // ahead of all the others when one of them last showed its own

	outFor State // why it was out of rotation last
	outAt  time.Time

	lastError   string
	lastErrorAt time.Time
}

func (h *health) succeed(took time.Duration) {
	if h.latency == 0 {
		h.latency = took
	}
	h.latency += time.Duration(latencyWeight * float64(took-h.latency))
	h.failures -= failureWeight * h.failures
	switch {
	case h.tripped:
		h.tripped, h.failures = false, onTrial
	case h.failures < acquitted:
		h.cool = 0
	}
}

func (h *health) fail(now time.Time, err error) {
	h.failures += failureWeight * (1 - h.failures)
	h.lastError, h.lastErrorAt = err.Error(), now
	if len(h.lastError) > maxErrorLength {
		h.lastError = h.lastError[:maxErrorLength] + "…"
	}
	switch {
	case !h.tripped && h.failures >= tripAt:
		h.tripped, h.cool = true, min(max(2*h.cool, coolFirst), coolLast)
		h.until = now.Add(h.cool)
		h.trips++
	case h.tripped && !now.Before(h.until):
		h.cool = min(2*h.cool, coolLast)
		h.until = now.Add(h.cool)
	}
}

// contradict counts an answer that contradicts itself or others.
func (h *health) contradict(now time.Time) {
	quiet := now.Sub(h.liedAt)
	if quiet > lieMemory {
		h.lies = 0
	}
	if quiet > distrustPast {
		h.distrust = 0
	}
	h.lies, h.lied, h.liedAt = h.lies+1, h.lied+1, now
	if h.lies >= liesMax {
		h.distrust = min(max(2*h.distrust, distrustMin), distrustMax)
		h.distrusted, h.lies = now.Add(h.distrust), 0
	}
}

// probeDue reports whether the breaker is half open: one call may try.
func (h *health) probeDue(now time.Time) bool { return h.tripped && !now.Before(h.until) }

// score is between 0 and 1; higher is better.
func (h *health) score() float64 {
	quick := 1 / (1 + float64(h.latency)/float64(latencyHalf))
	level := 1 / (1 + float64(h.lag)/lagHalf)
	honest := 1 / (1 + float64(h.lies))
	return quick * level * honest * (1 - h.failures)
}

// frontier is the height that the endpoints are measured by: the highest head,
// or the second highest when there are three or more, so that no single liar can
// make the others look behind. first and second are the two highest.
func frontier(heads []uint64) (at, first, second uint64) {
	for _, head := range heads {
		switch {
		case head >= first:
			first, second = head, first
		case head > second:
			second = head
		}
	}
	if len(heads) >= 3 {
		return second, first, second
	}
	return first, first, second
}

// breaker is the state of the circuit breaker.
func (h *health) breaker(now time.Time) Breaker {
	switch {
	case !h.tripped:
		return BreakerClosed
	case h.probeDue(now):
		return BreakerHalfOpen
	}
	return BreakerOpen
}

// round keeps a score readable.
func round(f float64) float64 { return math.Round(f*1000) / 1000 }
