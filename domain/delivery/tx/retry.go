package tx

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Schedule holds the retry settings.
type Schedule struct {
	// RetryMin and RetryMax bound the backoff after a refusal or a lost answer.
	RetryMin, RetryMax time.Duration
	// RebroadcastMin and RebroadcastMax bound the pause after a node accepted the bytes: pools
	// can drop accepted transactions.
	RebroadcastMin, RebroadcastMax time.Duration
	// Within ExpirySoonWindow of expiry, no pause is longer than ExpirySoonRetryMax.
	ExpirySoonWindow, ExpirySoonRetryMax time.Duration
}

// DefaultSchedule retries every 250 to 500 ms at first and backs off to 5 s.
func DefaultSchedule() Schedule {
	return Schedule{
		RetryMin: 250 * time.Millisecond, RetryMax: 5 * time.Second,
		RebroadcastMin: 5 * time.Second, RebroadcastMax: 15 * time.Second,
		ExpirySoonWindow: time.Hour, ExpirySoonRetryMax: 5 * time.Second,
	}
}

// Next returns the time of the next attempt after attempt n ended with outcome o at a time. The
// jitter is derived from hash and n, so that replays give the same backoff. expiresAt is in Unix
// seconds, 0 for never.
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
		low = min(4*low, high) // the row is woken when its predecessor lands
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

// steadyEarly is the number of attempts before backoff while a node answers "too early": its
// clock is a little behind, and the window may be short.
const steadyEarly = 12

// jitter returns a fraction in [0, 1) derived from hash and n.
func jitter(hash chain.Hash, n int) float64 {
	x := binary.BigEndian.Uint64(hash[:8]) + uint64(n)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // SplitMix64's finaliser (Steele et al., 2014)
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// clampSeconds limits Unix seconds to the range that Time.Sub can subtract.
func clampSeconds(s uint64) int64 {
	const farFuture = 1 << 33 // the year 2242
	return int64(min(s, farFuture))
}
