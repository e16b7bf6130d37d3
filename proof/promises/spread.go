package promises

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Spread is a histogram of durations with steps of about 9 %, in little memory for any number of
// them. The zero Spread is empty.
type Spread struct {
	Count uint64
	Max   time.Duration
	steps map[int]uint64
}

// stepsPerDoubling is the number of steps per factor of two.
const stepsPerDoubling = 8

// Add counts a duration. A duration below a microsecond counts as 0.
func (s *Spread) Add(d time.Duration) {
	if s.steps == nil {
		s.steps = map[int]uint64{}
	}
	step := -1
	if d >= time.Microsecond {
		step = int(math.Floor(stepsPerDoubling * math.Log2(float64(d)/float64(time.Microsecond))))
	}
	s.Count++
	s.steps[step]++
	s.Max = max(s.Max, d)
}

// Quantile returns the duration that the given share of all does not exceed, rounded up by a
// step.
func (s Spread) Quantile(share float64) time.Duration {
	if s.Count == 0 {
		return 0
	}
	rank, sum := uint64(math.Ceil(share*float64(s.Count))), uint64(0)
	const last = 64 * stepsPerDoubling
	for step := -1; step < last; step++ {
		if sum += s.steps[step]; sum >= rank && s.steps[step] > 0 {
			if step < 0 {
				return 0
			}
			upper := float64(time.Microsecond) * math.Exp2(float64(step+1)/stepsPerDoubling)
			return min(time.Duration(upper), s.Max)
		}
	}
	return s.Max
}

// String returns the median, the 99th percentile and the maximum.
func (s Spread) String() string {
	return fmt.Sprintf("p50 %s, p99 %s, max %s", s.Quantile(0.5), s.Quantile(0.99), s.Max)
}

// MarshalJSON encodes count and quantiles, in seconds.
func (s Spread) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"count": s.Count, "p50Seconds": s.Quantile(0.5).Seconds(), "p99Seconds": s.Quantile(0.99).Seconds(), "maxSeconds": s.Max.Seconds(),
	})
}
