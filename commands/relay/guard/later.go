package guard

import (
	"errors"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
)

// Later is a refusal of a request that may be repeated after a while.
type Later struct {
	Why  error         // the refusal itself
	Wait time.Duration // time until a retry, which may be refused too
	// Name, Rate and Left describe the rate that refuses: its name in headers, the rate,
	// and the requests left now. Name is empty if no rate refuses.
	Name string
	Rate safeguard.Rate
	Left int
}

func (l *Later) Error() string { return l.Why.Error() }
func (l *Later) Unwrap() error { return l.Why }

// untilTomorrow adds to the refusal of a spent budget the time until the next day.
// Reservations of today may be released sooner, at an unknown time.
func untilTomorrow(err error, now time.Time) error {
	if !errors.Is(err, budget.ErrSpent) {
		return err
	}
	return &Later{Why: err, Wait: budget.DayOf(now).End().Sub(now)}
}
