package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
)

// Requests forgets the requests that clients may repeat, once their time is over
// or there are too many of them.
type Requests struct {
	// Rows removes at most limit that have expired, and at most limit of the oldest
	// beyond most, and says how many it has removed.
	Rows interface {
		Forget(ctx context.Context, most, limit int) (int, error)
	}
	Most  int
	Pause time.Duration
}

// forgetAtOnce bounds one removal, which holds others up.
const forgetAtOnce = 1000

// Run sweeps until ctx ends.
func (r Requests) Run(ctx context.Context) error {
	for {
		removed, err := r.Rows.Forget(ctx, r.Most, forgetAtOnce)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("forget requests: %w", err)
		case removed >= forgetAtOnce:
			continue
		}
		if err := commands.Pause(ctx, r.Pause); err != nil {
			return err
		}
	}
}
