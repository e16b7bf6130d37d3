package rpc

import (
	"math"
	"time"
)

// Constants of the health score.
const (
	latencyWeight  = 0.2 // weight of the newest call in the moving average of latency
	failureWeight  = 0.2 // weight of the newest call in the moving share of failures
	tripAt         = 0.45
	coolFirst      = time.Second // after the first trip; doubles while probes fail
	coolLast       = 30 * time.Second
	latencyHalf    = 250 * time.Millisecond // the latency that halves a score
	lagHalf        = 5                      // the lag in blocks that halves it
	onTrial        = 0.35                   // share of failures after a successful probe: one more failure trips again
	acquitted      = 0.1                    // share of failures below which past trips are forgotten
	maxErrorLength = 200

	liesMax      = 3 // contradictions within lieMemory of each other
	lieMemory    = 2 * time.Minute
	distrustMin  = 30 * time.Second // doubles with each repetition
	distrustMax  = 10 * time.Minute
	distrustPast = time.Hour // after this long without a contradiction the distrust starts at distrustMin again
)

// health is an endpoint's record of failures and latency. It has no clock: the caller passes
// the time.
//
// The breaker trips when the moving share of failures reaches tripAt: after three failures in a
// row, or when about every other call fails. It stays tripped for a cool-down, after which one
// probe is due. A failed probe doubles the cool-down; any success closes the breaker. After
// that the endpoint is on trial until more calls succeed: one failure trips it again, for twice
// as long as before. So an endpoint that answers now and then is out of rotation most of the
// time.
//
// Contradictions are counted separately, because a lying endpoint may answer every other call.
// After a few of them the endpoint is distrusted for a while, whatever its other answers. A
// single one may be a load balancer with two nodes behind it.
type health struct {
	latency  time.Duration // moving average
	failures float64       // moving share, 0 to 1
	tripped  bool
	until    time.Time // a tripped endpoint is probed from then on
	cool     time.Duration
	trips    uint64

	lies       int // recent contradictions
	liedAt     time.Time
	distrusted time.Time // until then
	distrust   time.Duration
	lied       uint64 // contradictions since the start

	differences uint64 // disagreements with another endpoint that no majority decided
	differedAt  time.Time

	head   uint64 // number of the newest block it has shown; 0 before the first
	headAt time.Time
	lag    uint64 // blocks behind the others when it showed its head
	lead   uint64 // blocks ahead of all the others when an endpoint last showed its head

	outFor State // the last reason for being out of rotation
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

// contradict counts an answer that contradicts the endpoint's own answers or other endpoints.
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

// frontier is the height against which endpoints are measured: the highest head, or the second
// highest if there are three or more, so that no single lying endpoint can make the others look
// behind. first and second are the two highest.
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

// round rounds a score to three digits.
func round(f float64) float64 { return math.Round(f*1000) / 1000 }
