package tx

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Schedule holds the settings of the retry strategy.
type Schedule struct {
	// RetryMin and RetryMax bound the pause after a refusal or a lost answer.
	RetryMin, RetryMax time.Duration
	// RebroadcastMin and RebroadcastMax bound the pause after a node took the
	// bytes: pools forget what they took.
	RebroadcastMin, RebroadcastMax time.Duration
	// Within ExpirySoonWindow of expiry no pause is longer than ExpirySoonRetryMax.
	ExpirySoonWindow, ExpirySoonRetryMax time.Duration
}

// DefaultSchedule tries every 250 to 500 ms near eligibility and backs off to 5 s.
func DefaultSchedule() Schedule {
	return Schedule{
		RetryMin: 250 * time.Millisecond, RetryMax: 5 * time.Second,
		RebroadcastMin: 5 * time.Second, RebroadcastMax: 15 * time.Second,
		ExpirySoonWindow: time.Hour, ExpirySoonRetryMax: 5 * time.Second,
	}
}

// Next says when to act again after attempt number n ended with an outcome at a
// time. It depends on nothing else: the jitter is drawn from hash and number, so
// that even back-off replays. expiresAt is in Unix seconds, 0 for never.
func (s Schedule) Next(hash chain.Hash, n int, o Outcome, at time.Time, expiresAt uint64) time.Time {
	low, high, steady := s.RetryMin, s.RetryMax, 3
	switch {
	case o.Class == Taken:
		low, high = s.RebroadcastMin, s.RebroadcastMax
	case o.Cause == RateLimited:
		low = high
	case o.Cause == TooEarly:
		steady = steadyEarly
	case o.Cause == NonceTooHigh:
		low = min(4*low, high) // its predecessor's landing wakes it sooner
	}
	// The first pauses stay between low and twice low; then they double.
	pause := float64(low) * math.Pow(2, float64(min(max(n-steady, 0), 30)))
	pause = min(pause*(1+jitter(hash, n)), float64(high))
	next := time.Duration(pause)
	if expiresAt != 0 {
		left := time.Unix(clampSeconds(expiresAt), 0).Sub(at)
		if left < s.ExpirySoonWindow {
			next = min(next, s.ExpirySoonRetryMax)
		}
		if left > 0 {
			next = min(next, left)
		}
	}
	return at.Add(next)
}

// steadyEarly is how many attempts are made at the first pace while a node says that it
// is too early: its clock is a little behind, and the window may be short.
const steadyEarly = 12

// jitter is a fraction in [0, 1) that only hash and n decide.
func jitter(hash chain.Hash, n int) float64 {
	x := binary.BigEndian.Uint64(hash[:8]) + uint64(n)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // SplitMix64's finaliser (Steele et al., 2014)
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// clampSeconds keeps Unix seconds inside what time.Unix can subtract.
func clampSeconds(s uint64) int64 {
	const farFuture = 1 << 33 // the year 2242
	return int64(min(s, farFuture))
}
