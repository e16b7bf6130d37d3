package postgres

import (
	"testing"
	"time"
)

// A clock is looked after when it is first seen, when it was set back, and once more when
// that has settled; not for what clocks are put right by every day.
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
