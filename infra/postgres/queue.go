package postgres

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Only open rows have a holder. IS NOT DISTINCT FROM equals = here, but keeps the planner from
// scanning all leased rows for these.
const doneWork = `
WITH told AS (
  UPDATE work.queue q SET holder = NULL, leased_until = NULL, next_at = u.next_at, note = u.note,
    attempts = greatest(q.attempts, u.attempts), sent_at = coalesce(u.sent_at, q.sent_at), wait_nonce = u.wait_nonce,
    wait_since = CASE WHEN u.wait_nonce IS NOT NULL THEN coalesce(q.wait_since, clock_timestamp()) END,
    held_since = CASE WHEN u.held THEN clock_timestamp() END
  FROM unnest($2::bigint[], $3::bytea[], $4::timestamptz[], $5::text[], $6::integer[], $7::timestamptz[], $8::bigint[], $9::boolean[])
    u (chain, hash, next_at, note, attempts, sent_at, wait_nonce, held)
  WHERE q.chain = u.chain AND q.hash = u.hash AND q.holder IS NOT DISTINCT FROM $1
  RETURNING q.sequence, q.chain, q.sender, q.nonce_key, q.wait_nonce, q.named
)
INSERT INTO work.waiting (sequence, chain, sender, nonce_key)
SELECT DISTINCT sequence, chain, sender, nonce_key FROM told WHERE wait_nonce IS NOT NULL AND named IS NULL
ORDER BY sequence ON CONFLICT DO NOTHING`

// Done ends the holder's leases on rows and sets when they are due again.
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
	var held []bool
	chains := make([]chain.ID, len(done))
	for i, d := range done {
		chains[i] = d.Chain
		id, hash = append(id, int64(d.Chain)), append(hash, d.Hash[:])
		next, note = append(next, s.skew.stored(d.NextAt)), append(note, storedText(d.Note))
		attempts, sent = append(attempts, storedCount(d.Attempts)), append(sent, optionalTime(d.SentAt))
		wait = append(wait, optionalNonce(d.WaitNonce))
		held = append(held, d.Standing == tx.Unable && d.Account != (tx.Account{}))
	}
	return retry(ctx, func() error {
		q := &pgx.Batch{} // one implicit transaction, which holds the locks until it ends
		lockChains(q, lockShared, chains)
		q.Queue(doneWork, holder, id, hash, next, note, attempts, sent, wait, held)
		queueStandings(q, done, s.skew.stored)
		return s.pool.SendBatch(ctx, q).Close()
	})
}
