package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/request"
)

// Requests forgets repeatable requests once they have expired or there are too many of
// them.
type Requests struct {
	// Rows stores the requests. Forget removes at most Limit expired requests, at most
	// Limit that one client has beyond its share, and then the oldest ones beyond Most.
	Rows interface {
		Forget(ctx context.Context, b request.Bounds) (request.Forgotten, error)
	}
	Most  int // of all clients
	Share int // of one client
	Pause time.Duration
	// Used, when set, is called with the number of remembered requests of the client with
	// the most.
	Used func(largest int)
}

// forgetAtOnce bounds one removal, which blocks other users of the table.
const forgetAtOnce = 1000

// Run sweeps until ctx ends.
func (r Requests) Run(ctx context.Context) error {
	for {
		f, err := r.Rows.Forget(ctx, request.Bounds{Most: r.Most, Share: r.Share, Limit: forgetAtOnce})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("delete remembered requests: %w", err)
		case f.Removed >= forgetAtOnce:
			continue
		case r.Used != nil:
			r.Used(f.Largest)
		}
		if err := commands.Pause(ctx, r.Pause); err != nil {
			return err
		}
	}
}
