package retention

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
)

// Requests forgets repeatable requests once they have expired or there are too many of
// them.
type Requests struct {
	// Rows stores the requests. Usage counts them. Forget removes the oldest.
	Rows interface {
		Usage(ctx context.Context, share int) (request.Usage, error)
		Forget(ctx context.Context, o request.Oldest) (int, error)
	}
	Most  int // of all clients
	Share int // of one client; 0: no bound
	Pause time.Duration
	// Used, when set, is called with the number of remembered requests of the client with
	// the most.
	Used func(largest int)
}

// forgetAtOnce bounds one removal: other users of the store wait for it.
const forgetAtOnce = 100

// Run sweeps until ctx ends.
func (r Requests) Run(ctx context.Context) error {
	for {
		largest, err := r.sweep(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("delete remembered requests: %w", err)
		case r.Used != nil:
			r.Used(largest)
		}
		if err := pause.For(ctx, r.Pause); err != nil {
			return err
		}
	}
}

// sweep forgets the expired requests, then each client's oldest beyond its share, then the
// oldest of all beyond r.Most. It counts once. If a client's requests become fewer meanwhile,
// it may keep as many fewer than its share.
func (r Requests) sweep(ctx context.Context) (largest int, err error) {
	if err := r.forget(ctx, request.Oldest{Expired: true}, math.MaxInt); err != nil {
		return 0, err
	}
	u, err := r.Rows.Usage(ctx, r.Share)
	if err != nil {
		return 0, err
	}
	for _, c := range u.Beyond {
		beyond := c.Records - r.Share
		if err := r.forget(ctx, request.Oldest{Client: &c.Client}, beyond); err != nil {
			return 0, err
		}
		u.All, u.Largest = u.All-beyond, min(u.Largest, r.Share)
	}
	return u.Largest, r.forget(ctx, request.Oldest{}, u.All-r.Most)
}

// forget forgets at most n requests, in batches. It rests after each batch as long as the batch
// took, to leave the store to others.
func (r Requests) forget(ctx context.Context, o request.Oldest, n int) error {
	for n > 0 {
		began := time.Now()
		o.Limit = min(n, forgetAtOnce)
		removed, err := r.Rows.Forget(ctx, o)
		if err != nil || removed < o.Limit {
			return err // a smaller batch was the last one
		}
		n -= removed
		if err := pause.For(ctx, time.Since(began)); err != nil {
			return err
		}
	}
	return nil
}
