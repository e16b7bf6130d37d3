package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
)

const (
	refillMost  = 100              // rows per batch; feeding waits meanwhile
	refillEvery = 10 * time.Minute // a replica of an older version may write such rows for a while
)

// refill adds the fields missing in rows of the versions before clients, and before further owners,
// concurrently with feeding. Progress is in the rows: after a crash it continues with the others.
func (f *Feeder) refill(ctx context.Context) {
	for ctx.Err() == nil {
		filled := 0
		for after, more := (tx.Ref{}), true; more && ctx.Err() == nil; {
			n, last, err := f.refillSome(ctx, after)
			switch {
			case errors.Is(err, eventlog.ErrMoved):
				return // another replica feeds
			case err != nil:
				if ctx.Err() == nil {
					f.Log.Warn("rows of an older version could not be completed", "err", err)
				}
				more = false
			default:
				filled, after, more = filled+n, last, last != tx.Ref{}
			}
		}
		if filled > 0 {
			f.Log.Info("rows of an older version are completed", "rows", filled)
		}
		pause.For(ctx, refillEvery) //nolint:errcheck // the loop looks at ctx
	}
}

// refillSome fills in a batch of rows after one. It returns their number and the last row
// it has seen, which is zero if there are no more. Feeding waits meanwhile, so the log that
// it reads is consistent with the rows.
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

// lacks returns the log's values for a row; nil if the log does not know the transaction.
func (f *Feeder) lacks(ctx context.Context, ref tx.Ref) (*tx.Refill, error) {
	var r *tx.Refill
	var terms tx.Terms
	for e, err := range f.Store.ReadStream(ctx, tx.Stream(ref.Chain, ref.Hash), 0) {
		if err != nil {
			return nil, err
		}
		decoded, err := f.Codec.Decode(e.Name, e.Data)
		if err != nil {
			return nil, err
		}
		switch d := decoded.(type) {
		case tx.Accepted:
			terms = d.Terms()
		case tx.Resubmitted:
			if r != nil {
				r.Owners = append(r.Owners, *f.owner(ref.Chain, terms, d.Client, e))
			}
			continue
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
