package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tempo-watchtower/watchtower/domain/relay/rate"
)

// Rates are rate-limit buckets that all replicas share, by the server's clock. A call is not
// retried: if its answer was lost, it may have taken a token.
type Rates struct{ pool *pgxpool.Pool }

// Rates are the buckets in this database.
func (db *DB) Rates() *Rates { return &Rates{db.work} }

// takeRate changes no row if the bucket is empty. capRate then limits the deficit to the
// window, so that a lowered rate, or a clock set back, blocks no client for longer.
const (
	takeRate = `
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
INSERT INTO work.rates AS r (bucket, full_at) SELECT $1, now + $2::interval FROM clock
ON CONFLICT (bucket) DO UPDATE SET full_at = greatest(r.full_at, (SELECT now FROM clock)) + $2::interval
WHERE r.full_at + $2::interval <= (SELECT now FROM clock) + $3::interval`

	capRate = `UPDATE work.rates SET full_at = clock_timestamp() + $2::interval
WHERE bucket = $1 AND full_at > clock_timestamp() + $2::interval`

	waitRate = `SELECT coalesce((SELECT full_at + $2::interval - clock_timestamp() - $3::interval FROM work.rates WHERE bucket = $1), '0')`

	forgetRates = `DELETE FROM work.rates WHERE bucket = ANY (ARRAY(
  SELECT bucket FROM work.rates WHERE full_at <= clock_timestamp() LIMIT $1 FOR UPDATE SKIP LOCKED))`
)

// errNoneLeft rolls back the tokens taken from other buckets.
var errNoneLeft = errors.New("a bucket is empty")

// Take takes one token from each bucket if all have one, and none otherwise. It returns for
// each bucket the time until it has a token.
func (s *Rates) Take(ctx context.Context, of []rate.Bucket) (waits []time.Duration, err error) {
	sorted := slices.Clone(of) // a fixed order prevents deadlocks
	slices.SortFunc(sorted, func(a, b rate.Bucket) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	if len(sorted) == 1 {
		err = takeFrom(ctx, s.pool, sorted[0])
	} else {
		err = inTx(ctx, s.pool, func(dbtx pgx.Tx) error {
			for _, b := range sorted {
				if err := takeFrom(ctx, dbtx, b); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if !errors.Is(err, errNoneLeft) {
		return nil, classed(err)
	}
	waits = make([]time.Duration, len(of))
	for i, b := range of {
		if _, err := s.pool.Exec(ctx, capRate, b.ID[:], b.Window); err != nil {
			return nil, classed(err)
		}
		err := s.pool.QueryRow(ctx, waitRate, b.ID[:], b.Interval, b.Window).Scan(&waits[i])
		if err != nil {
			return nil, classed(err)
		}
		waits[i] = max(waits[i], 0)
	}
	if slices.Max(waits) == 0 {
		waits[0] = time.Millisecond // it had none a moment ago
	}
	return waits, nil
}

func takeFrom(ctx context.Context, on execer, b rate.Bucket) error {
	tag, err := on.Exec(ctx, takeRate, b.ID[:], b.Interval, b.Window)
	if err == nil && tag.RowsAffected() == 0 {
		return errNoneLeft
	}
	return err
}

// Forget removes at most limit full buckets, and returns their number.
func (s *Rates) Forget(ctx context.Context, limit int) (int, error) {
	tag, err := s.pool.Exec(ctx, forgetRates, limit)
	return int(tag.RowsAffected()), classed(err)
}
