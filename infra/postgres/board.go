package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// perSequence converts numbers by sequence to columns for unnest.
func perSequence(numbers map[chain.Sequence]uint64) (id []pgtype.UUID, number []int64, chains []chain.ID) {
	for s, n := range numbers {
		id, number, chains = append(id, sequenceID(s)), append(number, flip(n)), append(chains, s.Chain)
	}
	return id, number, chains
}

// Verdicts returns rows in a phase whose verdict rests on a block with number from..to, lowest
// first and by hash within a block. Of block from it returns only rows with a hash above after.
func (s *Work) Verdicts(ctx context.Context, id chain.ID, phase tx.Phase, from, to uint64, after chain.Hash, limit int) ([]tx.Work, error) {
	return s.rows(ctx, `SELECT `+workColumns+` FROM work.queue q
		WHERE q.chain = $1 AND q.phase = $2 AND q.phase IN ('announced', 'sealed') AND q.block_number BETWEEN $3 AND $4
		  AND (q.block_number > $3 OR q.hash > $5)
		ORDER BY q.block_number, q.hash LIMIT $6`,
		int64(id), string(phase), flip(from), flip(to), after[:], max(limit, 0))
}

const mayExpire = `chain = $1 AND phase IN ('open', 'watched') AND expires_at > (-9223372036854775808)::bigint`

// expiringWork finds one client after the other, each by one index lookup, and then each client's
// earliest rows, however many it has.
func expiringWork() string {
	return `SELECT ` + workColumns + ` FROM work.queue q WHERE q.chain = $1 AND q.hash = ANY (ARRAY(
WITH RECURSIVE of (client, at) AS (
  (SELECT client, expires_at FROM work.queue WHERE ` + mayExpire + ` ORDER BY client, expires_at LIMIT 1)
  UNION ALL
  SELECT n.client, n.expires_at FROM of CROSS JOIN LATERAL (
    SELECT client, expires_at FROM work.queue WHERE ` + mayExpire + ` AND client > of.client ORDER BY client, expires_at LIMIT 1) n
)
SELECT e.hash FROM of CROSS JOIN LATERAL (
  SELECT hash, expires_at, row_number() OVER (ORDER BY expires_at, hash) AS place FROM (
    SELECT hash, expires_at FROM work.queue WHERE ` + mayExpire + ` AND client = of.client AND expires_at <= $2
    ORDER BY client, expires_at, hash LIMIT $3) first
) e WHERE of.at <= $2 ORDER BY e.place, e.expires_at LIMIT $4))`
}

// Expiring returns open and watched rows with 0 < ExpiresAt <= time, of each client at most `each`.
func (s *Work) Expiring(ctx context.Context, id chain.ID, time uint64, each, limit int) ([]tx.Work, error) {
	return s.rows(ctx, expiringWork(), int64(id), flip(time), max(each, 0), max(limit, 0))
}

// Watched returns watched rows with a hash above after, in the order of their hashes.
func (s *Work) Watched(ctx context.Context, id chain.ID, after chain.Hash, limit int) ([]tx.Work, error) {
	return s.rows(ctx, `SELECT `+workColumns+` FROM work.queue q
		WHERE q.chain = $1 AND q.phase = 'watched' AND q.hash > $2 ORDER BY q.hash LIMIT $3`,
		int64(id), after[:], max(limit, 0))
}

// Wake makes rows due now whose sequence has reached their WaitNonce, by the given nonces.
func (s *Work) Wake(ctx context.Context, now map[chain.Sequence]uint64) (woken int, err error) {
	if len(now) == 0 {
		return 0, nil
	}
	id, nonce, chains := perSequence(now)
	err = retry(ctx, func() error {
		q := &pgx.Batch{}
		lockChains(q, lockExclusive, chains)
		q.Queue(`UPDATE work.queue q SET next_at = clock_timestamp()
			FROM unnest($1::uuid[], $2::bigint[]) u (sequence, now) CROSS JOIN LATERAL (
				SELECT chain, hash FROM work.queue WHERE sequence = u.sequence AND phase = 'open'
				  AND wait_nonce IS NOT NULL AND wait_nonce <= u.now AND next_at > clock_timestamp() OFFSET 0
			) late WHERE q.chain = late.chain AND q.hash = late.hash`, id, nonce).Exec(counted(&woken))
		return s.pool.SendBatch(ctx, q).Close()
	})
	return woken, err
}

const (
	pageOfWaiting = `SELECT w.sequence, w.sender, w.nonce_key, EXISTS (
  SELECT FROM work.queue q WHERE q.sequence = w.sequence AND q.phase = 'open' AND q.wait_nonce IS NOT NULL
) FROM work.waiting w WHERE w.chain = $1 AND w.seen <= $2 ORDER BY w.seen LIMIT $3`

	sawWaiting = `UPDATE work.waiting SET seen = clock_timestamp() WHERE sequence = ANY ($1::uuid[])`
	endWaiting = `DELETE FROM work.waiting WHERE sequence = ANY ($1::uuid[])`
)

// Waiting returns sequences with rows that wait for a nonce, least recently checked first, and
// marks them checked.
func (s *Work) Waiting(ctx context.Context, id chain.ID, limit int) (waiting []chain.Sequence, err error) {
	err = retry(ctx, func() error {
		waiting = nil
		return inTx(ctx, s.pool, func(dbtx pgx.Tx) error {
			var started pgtype.Timestamptz
			q := &pgx.Batch{}
			lockChains(q, lockExclusive, []chain.ID{id})
			q.Queue(`SELECT clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&started) })
			if err := dbtx.SendBatch(ctx, q).Close(); err != nil {
				return err
			}
			for len(waiting) < limit {
				page, idle, err := waitingPage(ctx, dbtx, id, started, limit-len(waiting))
				waiting = append(waiting, page...)
				if err != nil || idle == 0 { // otherwise idle sequences took the place of others: read on
					return err
				}
			}
			return nil
		})
	})
	return waiting, err
}

// waitingPage returns the least recently checked sequences, without those checked since
// started. It removes sequences without waiting rows, and returns their number.
func waitingPage(ctx context.Context, dbtx pgx.Tx, id chain.ID, started pgtype.Timestamptz, limit int) (page []chain.Sequence, idle int, err error) {
	rows, err := dbtx.Query(ctx, pageOfWaiting, int64(id), started, limit)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	var seen, ended []pgtype.UUID
	for rows.Next() {
		var short pgtype.UUID
		var sender, key []byte
		var waits bool
		if err := rows.Scan(&short, &sender, &key, &waits); err != nil {
			return nil, 0, err
		}
		if !waits {
			ended = append(ended, short)
			continue
		}
		seen = append(seen, short)
		page = append(page, chain.Sequence{Chain: id, Sender: chain.Address(sender), Key: chain.NonceKey(key)})
	}
	if err := rows.Err(); err != nil {
		return nil, 0, err
	}
	q := &pgx.Batch{}
	q.Queue(sawWaiting, seen)
	q.Queue(endWaiting, ended)
	return page, len(ended), dbtx.SendBatch(ctx, q).Close()
}

// changeMost bounds the rows changed by one statement that concerns a whole chain.
const changeMost = 5000

// chunks repeats a statement that changes at most changeMost rows until it finds no more.
func (s *Work) chunks(ctx context.Context, sql string, args ...any) (total int, err error) {
	args = append(args, changeMost)
	for n := changeMost; n == changeMost && err == nil; total += n {
		n = 0
		err = retry(ctx, func() error {
			tag, err := s.pool.Exec(ctx, sql, args...)
			n = int(tag.RowsAffected())
			return err
		})
	}
	return total, err
}

// Advance makes rows without attempts due now if the head's block time has reached their
// EligibleAt, even if the wall clock has not.
func (s *Work) Advance(ctx context.Context, id chain.ID, blockTime uint64) (int, error) {
	return s.chunks(ctx, `UPDATE work.queue q SET next_at = clock_timestamp()
		WHERE q.chain = $1 AND q.hash = ANY (ARRAY(
			SELECT hash FROM work.queue WHERE chain = $1 AND phase = 'open' AND attempts = 0
			  AND eligible_at > (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint - 9223372036854775807 - 1) AND eligible_at <= $2
			  AND next_at > clock_timestamp() LIMIT $3 FOR UPDATE SKIP LOCKED))`,
		int64(id), flip(blockTime))
}

// DropSealed removes sealed rows whose block is below a number.
func (s *Work) DropSealed(ctx context.Context, id chain.ID, below uint64) (int, error) {
	return s.chunks(ctx, `DELETE FROM work.queue q WHERE q.chain = $1 AND q.hash = ANY (ARRAY(
			SELECT hash FROM work.queue WHERE chain = $1 AND phase = 'sealed' AND block_number < $2
			LIMIT $3 FOR UPDATE SKIP LOCKED))`,
		int64(id), flip(below))
}
