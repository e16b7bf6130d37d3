package postgres

import (
	"testing"
	"time"
)

// Rows are checked when a clock is first seen, when it was set back, and once more after that
// has settled. Daily clock corrections do not cause a check.
func TestClockThatWasSetBack(t *testing.T) {
	var s shown
	at := time.Unix(1_800_000_000, 0)
	for i, step := range []struct {
		by   time.Duration
		want bool
	}{
		{0, true}, {time.Second, false}, {settled, true}, {time.Second, false}, {settled, false},
		{time.Hour, false}, {-clockSlack / 2, false}, {-time.Hour, true}, {time.Second, false}, {settled, true}, {settled, false},
		{-24 * time.Hour, true}, {-time.Hour, true}, {settled, true}, {settled, false},
	} {
		at = at.Add(step.by)
		if got := s.setBack(at); got != step.want {
			t.Errorf("step %d, by %v: %v", i, step.by, got)
		}
	}
}
