package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

const (
	refillMost  = 100              // rows in one go, for which feeding waits
	refillEvery = 10 * time.Minute // a replica of an older version may write such rows for a while
)

// refill gives the rows of before clients what they lack, beside the feeding. What is done is
// in the rows: after a crash it goes on with the others.
func (f *Feeder) refill(ctx context.Context) {
	for ctx.Err() == nil {
		filled := 0
		for after, more := (tx.Ref{}), true; more && ctx.Err() == nil; {
			n, last, err := f.refillSome(ctx, after)
			switch {
			case errors.Is(err, event.ErrMoved):
				return // another replica feeds
			case err != nil:
				if ctx.Err() == nil {
					f.Log.Warn("rows of an older version not filled in", "err", err)
				}
				more = false
			default:
				filled, after, more = filled+n, last, last != tx.Ref{}
			}
		}
		if filled > 0 {
			f.Log.Info("rows of an older version are filled in", "rows", filled)
		}
		commands.Pause(ctx, refillEvery) //nolint:errcheck // the loop looks at ctx
	}
}

// refillSome fills in some rows behind one. It says how many, and the last that it has seen;
// there are no more when that is zero. Nothing is fed meanwhile: what it reads of the log is
// what the rows are told next, or before.
func (f *Feeder) refillSome(ctx context.Context, after tx.Ref) (n int, last tx.Ref, err error) {
	end, err := f.turn.Take(ctx)
	if err != nil {
		return 0, last, err
	}
	defer end()
	at, err := f.Checkpoints.Checkpoint(ctx, Reader)
	if err != nil {
		return 0, last, err
	}
	refs, err := f.Queue.Unfilled(ctx, after, refillMost)
	if err != nil || len(refs) == 0 {
		return 0, last, err
	}
	var changes []tx.Change
	for _, ref := range refs {
		lacks, err := f.lacks(ctx, ref)
		if err != nil {
			return 0, last, err
		}
		if lacks != nil {
			changes = append(changes, tx.Change{Chain: ref.Chain, Hash: ref.Hash, Refill: lacks})
		}
	}
	if len(changes) > 0 {
		if err := f.Queue.Apply(ctx, Reader, at, at, changes); err != nil {
			return 0, last, err
		}
	}
	if len(refs) == refillMost {
		last = refs[len(refs)-1]
	}
	return len(changes), last, nil
}

// lacks is what the log knows of a row; nil when it does not know the transaction.
func (f *Feeder) lacks(ctx context.Context, ref tx.Ref) (*tx.Refill, error) {
	var r *tx.Refill
	for e, err := range f.Store.ReadStream(ctx, tx.Stream(ref.Chain, ref.Hash), 0) {
		if err != nil {
			return nil, err
		}
		changes, err := f.plan(ctx, e)
		if err != nil {
			return nil, err
		}
		for _, c := range changes {
			switch {
			case c.Open != nil && c.Open.Bytes > 0:
				r = &tx.Refill{Client: c.Open.Client, Bytes: c.Open.Bytes, Claimed: c.Open.Claimed}
			case c.Confirm && r != nil:
				r.Claimed = false
			}
		}
	}
	return r, nil
}
