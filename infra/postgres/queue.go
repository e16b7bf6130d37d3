package postgres

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Only open rows have a holder. IS NOT DISTINCT FROM equals = here, but keeps the planner from
// scanning all leased rows for these.
const doneWork = `
WITH told AS (
  UPDATE work.queue q SET holder = NULL, leased_until = NULL, note = u.note,
    next_at = CASE WHEN u.all_owners OR q.account = u.account OR q.shared IS NOT TRUE THEN u.next_at ELSE q.next_at END,
    attempts = greatest(q.attempts, u.attempts), sent_at = coalesce(u.sent_at, q.sent_at), wait_nonce = u.wait_nonce,
    wait_since = CASE WHEN u.wait_nonce IS NOT NULL THEN coalesce(q.wait_since, clock_timestamp()) END,
    held_since = CASE WHEN q.account <> u.account AND q.shared THEN q.held_since WHEN u.held THEN clock_timestamp() END
  FROM unnest($2::bigint[], $3::bytea[], $4::timestamptz[], $5::text[], $6::integer[], $7::timestamptz[], $8::bigint[], $9::boolean[],
    $10::uuid[], $11::boolean[]) u (chain, hash, next_at, note, attempts, sent_at, wait_nonce, held, account, all_owners)
  WHERE q.chain = u.chain AND q.hash = u.hash AND q.holder IS NOT DISTINCT FROM $1
  RETURNING q.sequence, q.chain, q.sender, q.nonce_key, q.wait_nonce, q.named, q.hash, q.shared, u.next_at, u.held, u.account, u.all_owners
), turns AS (
  UPDATE work.owners o SET next_at = t.next_at,
    held_since = CASE WHEN o.account <> t.account THEN o.held_since WHEN t.held THEN clock_timestamp() END
  FROM told t WHERE t.shared AND o.chain = t.chain AND o.hash = t.hash AND (t.all_owners OR o.account = t.account)
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
	var held, all []bool
	var account []pgtype.UUID
	chains := make([]chain.ID, len(done))
	for i, d := range done {
		chains[i] = d.Chain
		id, hash = append(id, int64(d.Chain)), append(hash, d.Hash[:])
		next, note = append(next, s.skew.stored(d.NextAt)), append(note, storedText(d.Note))
		attempts, sent = append(attempts, storedCount(d.Attempts)), append(sent, optionalTime(d.SentAt))
		wait = append(wait, optionalNonce(d.WaitNonce))
		account, all = append(account, accountID(d.Account)), append(all, d.ForAll || d.Account == tx.Account{})
		held = append(held, d.Standing == tx.Unable && d.Account != (tx.Account{}))
	}
	return retry(ctx, func() error {
		q := &pgx.Batch{} // one implicit transaction, which holds the locks until it ends
		lockChains(q, lockShared, chains)
		q.Queue(doneWork, holder, id, hash, next, note, attempts, sent, wait, held, account, all)
		queueStandings(q, done, s.skew.stored)
		return s.pool.SendBatch(ctx, q).Close()
	})
}
