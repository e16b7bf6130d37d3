package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

const (
	// The clock is read by a subquery, once: compared with a function that changes
	// its mind from row to row, an index could not be asked where to stop. Rows
	// whose lease has lapsed are few, and found by an index of their own.
	leaseWork = `
WITH free AS (
  SELECT hash, next_at FROM work.queue
  WHERE chain = $1 AND phase = 'open' AND NOT parked AND holder IS NULL AND next_at <= (SELECT clock_timestamp())
  ORDER BY next_at LIMIT $4 FOR UPDATE SKIP LOCKED
), lapsed AS (
  SELECT hash, next_at FROM work.queue
  WHERE chain = $1 AND holder IS NOT NULL AND leased_until <= (SELECT clock_timestamp())
    AND phase = 'open' AND NOT parked AND next_at <= (SELECT clock_timestamp())
  ORDER BY next_at LIMIT $4 FOR UPDATE SKIP LOCKED
)
UPDATE work.queue q SET holder = $2, leased_until = clock_timestamp() + $3
WHERE q.chain = $1 AND q.hash = ANY (ARRAY(
  SELECT hash FROM (SELECT * FROM free UNION ALL SELECT * FROM lapsed) due ORDER BY next_at LIMIT $4
))
RETURNING ` + workColumns

	untilDue = `
SELECT greatest(least(next_at - clock_timestamp(), $2::interval), '0') FROM work.queue
WHERE chain = $1 AND phase = 'open' AND NOT parked AND holder IS NULL ORDER BY next_at LIMIT 1`
)

// horizon bounds what Lease answers for until.
const horizon = time.Minute

// Lease takes at most limit due rows of a chain, oldest due first. until is how long
// it is until the next row is due that nobody has leased: 0 when there may be more
// due now, horizon when nothing is due before.
func (s *Work) Lease(ctx context.Context, id chain.ID, holder string, ttl time.Duration, limit int) (work []tx.Work, until time.Duration, err error) {
	if limit > 0 {
		work, err = s.rows(ctx, leaseWork, int64(id), holder, ttl, limit)
	}
	slices.SortStableFunc(work, func(a, b tx.Work) int { return a.NextAt.Compare(b.NextAt) })
	if err != nil || len(work) >= limit {
		return work, 0, err
	}
	until = horizon
	err = retry(ctx, func() error {
		return s.pool.QueryRow(ctx, untilDue, int64(id), horizon).Scan(&until)
	})
	if errors.Is(err, pgx.ErrNoRows) || err != nil && len(work) > 0 { // the rows are leased, whatever else
		err = nil
	}
	return work, until, err
}

// Only open rows have a holder. IS NOT DISTINCT FROM is = to us, but not to the
// planner, which would look through all leased rows for these.
const doneWork = `
WITH told AS (
  UPDATE work.queue q SET holder = NULL, leased_until = NULL, next_at = u.next_at, note = u.note,
    attempts = greatest(q.attempts, u.attempts), sent_at = coalesce(u.sent_at, q.sent_at), wait_nonce = u.wait_nonce,
    wait_since = CASE WHEN u.wait_nonce IS NOT NULL THEN coalesce(q.wait_since, clock_timestamp()) END
  FROM unnest($2::bigint[], $3::bytea[], $4::timestamptz[], $5::text[], $6::integer[], $7::timestamptz[], $8::bigint[])
    u (chain, hash, next_at, note, attempts, sent_at, wait_nonce)
  WHERE q.chain = u.chain AND q.hash = u.hash AND q.holder IS NOT DISTINCT FROM $1
  RETURNING q.sequence, q.chain, q.sender, q.nonce_key, q.wait_nonce
)
INSERT INTO work.waiting (sequence, chain, sender, nonce_key)
SELECT DISTINCT sequence, chain, sender, nonce_key FROM told WHERE wait_nonce IS NOT NULL
ORDER BY sequence ON CONFLICT DO NOTHING`

// Done ends the holder's leases on rows and says when they are due again.
func (s *Work) Done(ctx context.Context, holder string, done []tx.Done) error {
	if len(done) == 0 {
		return nil
	}
	done = slices.SortedFunc(slices.Values(done), func(a, b tx.Done) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	var id []int64
	var hash [][]byte
	var next []time.Time
	var note []string
	var attempts []int32
	var sent []pgtype.Timestamptz
	var wait []pgtype.Int8
	chains := make([]chain.ID, len(done))
	for i, d := range done {
		chains[i] = d.Chain
		id, hash = append(id, int64(d.Chain)), append(hash, d.Hash[:])
		next, note = append(next, storedTime(d.NextAt)), append(note, storedText(d.Note))
		attempts, sent = append(attempts, storedCount(d.Attempts)), append(sent, optionalTime(d.SentAt))
		wait = append(wait, optionalNonce(d.WaitNonce))
	}
	return retry(ctx, func() error {
		q := &pgx.Batch{} // one implicit transaction, which holds the locks until it ends
		lockChains(q, lockShared, chains)
		q.Queue(doneWork, holder, id, hash, next, note, attempts, sent, wait)
		return s.pool.SendBatch(ctx, q).Close()
	})
}
