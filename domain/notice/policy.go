package notice

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Policy holds the settings for retries and for disabling endpoints.
type Policy struct {
	// Pauses are the pauses after the first attempt, the second, and so on. If the attempt after
	// the last pause fails, the notice is dead.
	Pauses []time.Duration
	// Jitter lengthens pauses by up to this fraction, so that simultaneous failures are not
	// retried simultaneously.
	Jitter float64
	// RetryAfterMax bounds the pause that a receiver may ask for.
	RetryAfterMax time.Duration
	// Concurrency bounds the concurrent attempts at one endpoint. A failing endpoint gets one at
	// a time.
	Concurrency int
	// After BreakAfter consecutive failures an endpoint is paused, for BreakMin at first and then
	// for twice as long each time, up to BreakMax.
	BreakAfter         int
	BreakMin, BreakMax time.Duration
	// DisableAfter is how long an endpoint may fail without a success before it is disabled.
	DisableAfter time.Duration
}

// Bounds of a policy.
const (
	PausesMax      = 30
	PauseMax       = 7 * 24 * time.Hour
	ConcurrencyMax = 100
)

// DefaultPolicy returns the retry schedule that the specification suggests: ten attempts within
// 76 hours. Source: Standard Webhooks 1.0.0, "Deliverability and reliability".
func DefaultPolicy() Policy {
	return Policy{
		Pauses: []time.Duration{
			5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
			10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
		},
		Jitter:        0.1,
		RetryAfterMax: 24 * time.Hour,
		Concurrency:   4,
		BreakAfter:    5, BreakMin: 10 * time.Second, BreakMax: 10 * time.Minute,
		DisableAfter: 5 * 24 * time.Hour,
	}
}

// Check returns an error if the policy is invalid.
func (p Policy) Check() error {
	for _, pause := range p.Pauses {
		if pause <= 0 || pause > PauseMax {
			return fmt.Errorf("a pause of %s is not between 0 and %s", pause, PauseMax)
		}
	}
	switch {
	case len(p.Pauses) > PausesMax:
		return fmt.Errorf("at most %d pauses can be listed", PausesMax)
	case !(p.Jitter >= 0 && p.Jitter <= 1):
		return errors.New("jitter must be from 0 to 1")
	case p.RetryAfterMax < 0 || p.RetryAfterMax > PauseMax:
		return fmt.Errorf("the longest pause that a receiver may request is at most %s", PauseMax)
	case p.Concurrency < 1 || p.Concurrency > ConcurrencyMax:
		return fmt.Errorf("the number of parallel attempts must be 1 to %d", ConcurrencyMax)
	case p.BreakAfter < 1 || p.BreakMin <= 0 || p.BreakMax < p.BreakMin || p.BreakMax > PauseMax:
		return fmt.Errorf("an endpoint is paused after at least 1 failure, for up to %s", PauseMax)
	case p.DisableAfter <= 0:
		return errors.New("an endpoint cannot be disabled at its first failure")
	}
	return nil
}

// After returns a notice and its endpoint after an attempt that ended at a time. The result
// depends only on the arguments, so that even the jitter replays.
func (p Policy) After(n Notice, e Endpoint, o Outcome, at time.Time) (Notice, Endpoint) {
	if n.Stage != Queued && n.Stage != Delivering {
		panic(fmt.Sprintf("an attempt of a webhook delivery that is %s", n.Stage))
	}
	n.Attempts++
	n.Last, n.LastAt = o, at
	n.Last.RetryAfter = 0
	e.Attempts++
	e.Last, e.LastAt = n.Last, at
	if o.Class == Delivered {
		n.Stage = Settled
		e.Delivered++
		e.Failures, e.FailingSince, e.PausedUntil = 0, time.Time{}, time.Time{}
		return n, e
	}
	if o.Cause == Unfit { // the notice is at fault, not the endpoint
		n.Stage = Dead
		return n, e
	}
	asked := min(o.RetryAfter, p.RetryAfterMax)
	e = p.failed(e, o, at, asked)
	if n.Attempts > len(p.Pauses) || e.Disabled != Enabled {
		n.Stage = Dead
		return n, e
	}
	n.Stage = Queued
	n.NextAt = at.Add(max(p.pause(n.Key, n.Attempts), asked))
	return n, e
}

// failed returns an endpoint after a failure.
func (p Policy) failed(e Endpoint, o Outcome, at time.Time, asked time.Duration) Endpoint {
	e.Failures++
	if e.FailingSince.IsZero() {
		e.FailingSince = at
	}
	rest := asked
	if e.Failures >= p.BreakAfter {
		const doublingsMax = 62
		doublings, doubled := min(e.Failures-p.BreakAfter, doublingsMax), p.BreakMax
		if p.BreakMin <= p.BreakMax>>doublings { // otherwise it would overflow
			doubled = p.BreakMin << doublings
		}
		rest = max(rest, doubled)
	}
	if until := at.Add(rest); rest > 0 && until.After(e.PausedUntil) {
		e.PausedUntil = until
	}
	switch {
	case e.Disabled != Enabled:
	case o.Class == Gone:
		e.Disabled, e.DisabledAt = SaidGone, at
	case at.Sub(e.FailingSince) >= p.DisableAfter:
		e.Disabled, e.DisabledAt = FailedLong, at
	}
	return e
}

// pause returns the pause after attempt n.
func (p Policy) pause(k Key, n int) time.Duration {
	pause := p.Pauses[n-1]
	return pause + time.Duration(p.Jitter*jitter(k, n)*float64(pause))
}

// jitter returns a fraction in [0, 1) derived from key and n.
func jitter(k Key, n int) float64 {
	digest := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", k.Endpoint, k.MessageID(), n))
	return float64(binary.BigEndian.Uint64(digest[:8])>>11) / (1 << 53)
}

// Enable returns the endpoint enabled, without its failures. Its attempts stay counted.
func (e Endpoint) Enable() Endpoint {
	return Endpoint{ID: e.ID, Client: e.Client, URL: e.URL, Attempts: e.Attempts, Delivered: e.Delivered, Last: e.Last, LastAt: e.LastAt}
}

// Disable returns the endpoint disabled. An earlier reason stays.
func (e Endpoint) Disable(r Reason, at time.Time) Endpoint {
	if e.Disabled == Enabled {
		e.Disabled, e.DisabledAt = r, at
	}
	return e
}
