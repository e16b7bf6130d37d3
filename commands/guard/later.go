package guard

import (
	"errors"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/budget"
	"github.com/tempo-watchtower/watchtower/domain/safeguard"
)

// Later is a refusal of what may be asked for again after a while.
type Later struct {
	Why  error         // the refusal itself
	Wait time.Duration // until it may be asked for again; then too there may be no room
	// Of a rate: what it is called in headers, what it is, and how many may still be asked
	// for now. The name is empty where no rate refuses.
	Name string
	Rate safeguard.Rate
	Left int
}

func (l *Later) Error() string { return l.Why.Error() }
func (l *Later) Unwrap() error { return l.Why }

// untilTomorrow says of a budget that is spent when the next day begins. What is used of
// today's may be given back sooner, and nobody can say when.
func untilTomorrow(err error, now time.Time) error {
	if !errors.Is(err, budget.ErrSpent) {
		return err
	}
	return &Later{Why: err, Wait: budget.DayOf(now).End().Sub(now)}
}
