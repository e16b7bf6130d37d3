package postgres

import (
	"context"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Work is the due queue, and the open transactions for the watcher: two views of the same rows.
//
// Changes that wait for locked rows hold an advisory lock of the chain: exclusive for Apply,
// Wake and Waiting, shared for Done, whose rows belong to one holder anyway. This prevents
// deadlocks. All other changes never wait: they skip locked rows.
type Work struct {
	pool   *pgxpool.Pool
	window int
	lease  lease
	pause  time.Duration // the longest pause between two attempts; 0: unknown
	skew   skew
	shown  shown
}

// workColumns are the columns that scanWork reads.
const workColumns = `q.chain, q.hash, q.sender, q.nonce_key, q.nonce, q.eligible_at, q.expires_at, q.phase,
q.verdict, q.block_number, q.block_hash, q.next_at, q.attempts, q.note, q.sent_at, q.parked, q.wait_nonce, q.wait_since,
q.account, q.held_since, q.client, q.bytes, q.claimed, q.shared`

// scanWork reads workColumns, and the columns after them into more.
func scanWork(row pgx.Row, more ...any) (w tx.Work, err error) {
	var id, nonce, eligible, expires, block int64
	var hash, sender, key, blockHash []byte
	var phase, verdict string
	var sent, since, held pgtype.Timestamptz
	var account pgtype.UUID
	var wait pgtype.Int8
	var shared pgtype.Bool
	err = row.Scan(append([]any{&id, &hash, &sender, &key, &nonce, &eligible, &expires, &phase,
		&verdict, &block, &blockHash, &w.NextAt, &w.Attempts, &w.Note, &sent, &w.Parked, &wait, &since,
		&account, &held, &w.Client, &w.Bytes, &w.Claimed, &shared}, more...)...)
	if err != nil {
		return w, err
	}
	w.Chain, w.Phase, w.Verdict = chain.ID(id), tx.Phase(phase), tx.Status(verdict)
	copy(w.Hash[:], hash)
	copy(w.Sender[:], sender)
	copy(w.NonceKey[:], key)
	copy(w.Block.Hash[:], blockHash)
	w.Nonce, w.EligibleAt, w.ExpiresAt, w.Block.Number = unflip(nonce), unflip(eligible), unflip(expires), unflip(block)
	w.NextAt, w.Account = w.NextAt.UTC(), tx.Account(account.Bytes)
	w.Shared = shared.Bool
	w.SentAt, w.HeldSince = timeOf(sent), timeOf(held)
	if wait.Valid {
		w.WaitNonce, w.WaitSince = unflip(wait.Int64), since.Time.UTC()
	}
	return w, nil
}

// rows runs a query for workColumns.
func (s *Work) rows(ctx context.Context, sql string, args ...any) (all []tx.Work, err error) {
	err = retry(ctx, func() error {
		rows, err := s.pool.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (tx.Work, error) { return scanWork(row) })
		return err
	})
	return all, err
}

// Find returns the rows of a chain with these hashes, in any phase.
func (s *Work) Find(ctx context.Context, id chain.ID, hashes []chain.Hash) ([]tx.Work, error) {
	if len(hashes) == 0 {
		return nil, nil
	}
	found, err := s.rows(ctx, `SELECT `+workColumns+` FROM work.queue q WHERE q.chain = $1 AND q.hash = ANY ($2::bytea[])`,
		int64(id), bytesOf(hashes))
	if err == nil {
		err = s.tellOwners(ctx, found)
	}
	if err != nil || !slices.ContainsFunc(found, func(w tx.Work) bool { return w.Parked }) {
		return found, err
	}
	return found, s.tellWaits(ctx, found)
}

// tellWaits sets the WaitNonce of parked rows that are due: the nonce for which the first row
// of their sequence waits, or the one after that row's own.
func (s *Work) tellWaits(ctx context.Context, found []tx.Work) error {
	waiting := map[pgtype.UUID][]*tx.Work{}
	for i := range found {
		if w := &found[i]; w.Parked && w.WaitNonce == 0 && !w.Apart() {
			sequence := sequenceID(w.Sequence())
			waiting[sequence] = append(waiting[sequence], w)
		}
	}
	const heads = `SELECT u.sequence, coalesce(head.wait_nonce, head.nonce + 1), clock_timestamp()
		FROM unnest($1::uuid[]) u (sequence) CROSS JOIN LATERAL (
			SELECT nonce, wait_nonce FROM work.queue
			WHERE sequence = u.sequence AND phase = 'open' AND NOT parked ORDER BY nonce LIMIT 1
		) head`
	return retry(ctx, func() error {
		rows, err := s.pool.Query(ctx, heads, slices.Collect(maps.Keys(waiting)))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var sequence pgtype.UUID
			var nonce int64
			var now time.Time
			if err := rows.Scan(&sequence, &nonce, &now); err != nil {
				return err
			}
			for _, w := range waiting[sequence] {
				if !w.NextAt.After(now) {
					w.WaitNonce, w.WaitSince = unflip(nonce), w.NextAt
				}
			}
		}
		return rows.Err()
	})
}

// sequenceID is the short id of a sequence.
func sequenceID(s chain.Sequence) pgtype.UUID {
	digest := chain.Keccak(binary.BigEndian.AppendUint64(nil, uint64(s.Chain)), s.Sender[:], s.Key[:])
	return pgtype.UUID{Bytes: [16]byte(digest[:16]), Valid: true}
}

// The advisory locks of the chains.
const (
	workLock      = 0x77746368 // "wtch"
	lockExclusive = `SELECT pg_advisory_xact_lock($1, $2)`
	lockShared    = `SELECT pg_advisory_xact_lock_shared($1, $2)`
)

// lockChains queues the locks of chains, in a fixed order.
func lockChains(q *pgx.Batch, lock string, chains []chain.ID) {
	keys := make([]int32, len(chains))
	for i, id := range chains {
		keys[i] = lockKey(id)
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		q.Queue(lock, workLock, key)
	}
}

// lockKey maps a chain to the key of an advisory lock. Chains with the same key share a lock.
func lockKey(id chain.ID) int32 { return int32(uint32(id) ^ uint32(id>>32)) }

// storedTime is a time with the queue's precision.
func storedTime(t time.Time) time.Time { return tx.StoredTime(t) }

// optionalTime stores the zero time as NULL.
func optionalTime(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: storedTime(t), Valid: !t.IsZero()}
}

// timeOf is the zero time for NULL.
func timeOf(t pgtype.Timestamptz) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}

// optionalNonce stores 0, "not waiting", as NULL.
func optionalNonce(n uint64) pgtype.Int8 { return pgtype.Int8{Int64: flip(n), Valid: n != 0} }

// storedCount limits a count to the queue's range.
func storedCount(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

// storedText makes a text, possibly from a node, acceptable to Postgres.
func storedText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}
