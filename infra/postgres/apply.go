package postgres

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Apply makes changes in order and moves the reader's checkpoint, in one database transaction.
// It returns eventlog.ErrMoved if the checkpoint is not at from.
func (s *Work) Apply(ctx context.Context, reader string, from, to eventlog.Position, changes []tx.Change) error {
	return retryRefused(ctx, func() error {
		return inTx(ctx, s.pool, func(dbtx pgx.Tx) error {
			if err := moveCheckpoint(ctx, dbtx, reader, from, to); err != nil || len(changes) == 0 {
				return err
			}
			f, err := s.load(ctx, dbtx, tx.Refs(changes))
			if err != nil {
				return err
			}
			for _, c := range changes {
				f.Apply(c)
			}
			return s.write(ctx, dbtx, f.Folded(), tx.Refs(changes))
		})
	})
}

const lockWork = `SELECT ` + workColumns + `, q.holder, q.leased_until
FROM unnest($1::bigint[], $2::bytea[]) u (chain, hash) JOIN work.queue q USING (chain, hash) FOR UPDATE OF q`

// load locks the chains and the rows that changes concern.
func (s *Work) load(ctx context.Context, dbtx pgx.Tx, refs []tx.Ref) (*tx.Fold, error) {
	chains := make([]chain.ID, len(refs))
	for i, ref := range refs {
		chains[i] = ref.Chain
	}
	id, hash := named(refs)
	q := &pgx.Batch{}
	lockChains(q, lockExclusive, chains)
	var now time.Time
	before := time.Now()
	q.Queue(`SELECT clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	var stored []tx.Row
	q.Queue(lockWork, id, hash).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var holder pgtype.Text
			var until pgtype.Timestamptz
			w, err := scanWork(rows, &holder, &until)
			if err != nil {
				return err
			}
			stored = append(stored, tx.Row{Work: w, Holder: holder.String, Until: timeOf(until)})
		}
		return rows.Err()
	})
	if err := dbtx.SendBatch(ctx, q).Close(); err != nil {
		return nil, err
	}
	f := tx.NewFold(tx.Clock{Now: now, Ahead: skewed(now, before, time.Now()), Beyond: s.beyond()})
	for _, r := range stored {
		f.Load(r)
	}
	return f, nil
}

// named converts references to columns for unnest.
func named(refs []tx.Ref) (id []int64, hash [][]byte) {
	for _, ref := range refs {
		id, hash = append(id, int64(ref.Chain)), append(hash, ref.Hash[:])
	}
	return id, hash
}

const (
	deleteWork = `DELETE FROM work.queue q USING unnest($1::bigint[], $2::bytea[]) u (chain, hash)
WHERE q.chain = u.chain AND q.hash = u.hash`

	insertWork = `INSERT INTO work.queue (chain, hash, sequence, sender, nonce_key, nonce, eligible_at, expires_at,
  phase, parked, verdict, block_number, block_hash, next_at, attempts, note, sent_at, wait_nonce, wait_since, account,
  client, bytes, claimed, named, shared)
SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::uuid[], $4::bytea[], $5::bytea[], $6::bigint[], $7::bigint[], $8::bigint[],
  $9::text[], $10::boolean[], $11::text[], $12::bigint[], $13::bytea[], $14::timestamptz[], $15::integer[], $16::text[],
  $17::timestamptz[], $18::bigint[], $19::timestamptz[], $20::uuid[], $21::text[], $22::integer[], $23::boolean[], $24::uuid[], $25::boolean[])`

	updateWork = `UPDATE work.queue q SET phase = u.phase, parked = u.parked, verdict = u.verdict,
  block_number = u.block_number, block_hash = u.block_hash, next_at = u.next_at, attempts = u.attempts, note = u.note,
  sent_at = u.sent_at, holder = u.holder, leased_until = u.leased_until,
  held_since = u.held_since, wait_nonce = u.wait_nonce, wait_since = u.wait_since,
  sequence = u.sequence, claimed = u.claimed, named = u.named, client = u.client, bytes = u.bytes
FROM unnest($1::bigint[], $2::bytea[], $3::text[], $4::boolean[], $5::text[], $6::bigint[], $7::bytea[], $8::timestamptz[],
  $9::integer[], $10::text[], $11::timestamptz[], $12::text[], $13::timestamptz[], $14::timestamptz[], $15::bigint[], $16::timestamptz[],
  $17::uuid[], $18::boolean[], $19::uuid[], $20::text[], $21::integer[])
  u (chain, hash, phase, parked, verdict, block_number, block_hash, next_at, attempts, note, sent_at, holder, leased_until, held_since,
     wait_nonce, wait_since, sequence, claimed, named, client, bytes)
WHERE q.chain = u.chain AND q.hash = u.hash`

	// One reader applies at a time; the order avoids a deadlock if two overlap.
	useMore = `INSERT INTO work.queue_clients AS c (client, waiting, bytes)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[]) u (client, waiting, bytes) ORDER BY client
ON CONFLICT (client) DO UPDATE SET waiting = c.waiting + excluded.waiting, bytes = c.bytes + excluded.bytes`

	// Rows loaded by Apply are updated there. These statements find rows by sequence, one
	// sequence after the other (OFFSET 0 ensures that), and update them by their key. Otherwise
	// a planner that estimates few rows would scan all sequences for them.
	wakeOthers = `UPDATE work.queue q SET next_at = clock_timestamp()
FROM unnest($1::uuid[]) u (sequence) CROSS JOIN LATERAL (
  SELECT chain, hash FROM work.queue
  WHERE sequence = u.sequence AND phase = 'open' AND wait_nonce IS NOT NULL AND next_at > clock_timestamp() OFFSET 0
) late WHERE q.chain = late.chain AND q.hash = late.hash AND q.hash <> ALL ($2::bytea[])`

	// The edge of a sequence's window is the nonce of its window-th open row. Rows above it are
	// parked, the others are not. Both kinds of rows are in index order. Finding the edge, and
	// the rows on its wrong side, reads one window of rows however long the sequence is.
	windowEdge = `WITH edge AS MATERIALIZED (
  SELECT u.sequence, (
    SELECT low.nonce FROM (
      (SELECT nonce FROM work.queue WHERE sequence = u.sequence AND phase = 'open' AND NOT parked ORDER BY nonce LIMIT $2)
      UNION ALL
      (SELECT nonce FROM work.queue WHERE sequence = u.sequence AND phase = 'open' AND parked ORDER BY nonce LIMIT $2)
    ) low ORDER BY low.nonce OFFSET $2 - 1 LIMIT 1
  ) AS nonce FROM unnest($1::uuid[]) u (sequence)
)
`
	unparkRows = windowEdge + `UPDATE work.queue q SET parked = false FROM edge e CROSS JOIN LATERAL (
  SELECT chain, hash FROM work.queue
  WHERE sequence = e.sequence AND phase = 'open' AND parked AND nonce <= coalesce(e.nonce, 9223372036854775807) OFFSET 0
) wrong WHERE q.chain = wrong.chain AND q.hash = wrong.hash`

	parkRows = windowEdge + `UPDATE work.queue q SET parked = true FROM edge e CROSS JOIN LATERAL (
  SELECT chain, hash FROM work.queue
  WHERE sequence = e.sequence AND phase = 'open' AND NOT parked AND nonce > e.nonce OFFSET 0
) wrong WHERE q.chain = wrong.chain AND q.hash = wrong.hash`
)

// write stores the fold's result; refs are the rows that load has read.
func (s *Work) write(ctx context.Context, dbtx pgx.Tx, f tx.Folded, refs []tx.Ref) error {
	q := &pgx.Batch{}
	if len(f.Drop) > 0 {
		gone := make([]tx.Ref, len(f.Drop))
		for i, r := range f.Drop {
			gone[i] = tx.Ref{Chain: r.Chain, Hash: r.Hash}
		}
		id, hash := named(gone)
		q.Queue(deleteWork, id, hash)
	}
	if len(f.Insert) > 0 {
		tx.ParkFresh(f.Insert, s.window) // so that few have to be parked afterwards
		queueInsert(q, f.Insert)
	}
	if len(f.Update) > 0 {
		queueUpdate(q, f.Update)
	}
	queueOwners(q, f)
	if len(f.Used) > 0 {
		var waiting, size []int64
		clients := slices.Sorted(maps.Keys(f.Used))
		for _, client := range clients {
			waiting, size = append(waiting, f.Used[client].Transactions), append(size, f.Used[client].Bytes)
		}
		q.Queue(useMore, clients, waiting, size)
	}
	if len(f.Woken) > 0 {
		_, atHand := named(refs)
		q.Queue(wakeOthers, ids(f.Woken), atHand)
	}
	if len(f.Shifted) > 0 {
		shifted := ids(f.Shifted)
		q.Queue(unparkRows, shifted, s.window)
		q.Queue(parkRows, shifted, s.window)
	}
	return dbtx.SendBatch(ctx, q).Close()
}

// ids are the short ids of sequences, in their order.
func ids(sequences []chain.Sequence) []pgtype.UUID {
	all := make([]pgtype.UUID, 0, len(sequences))
	for _, s := range sequences {
		all = append(all, sequenceID(s))
	}
	slices.SortFunc(all, func(a, b pgtype.UUID) int { return bytes.Compare(a.Bytes[:], b.Bytes[:]) })
	return all
}

// workColumn collects the rows' columns for unnest.
type workColumn struct {
	id, nonce, eligible, expires, block []int64
	hash, sender, key, blockHash        [][]byte
	sequence, named, account            []pgtype.UUID
	phase, verdict, note, client        []string
	parked, claimed, shared             []bool
	next                                []time.Time
	attempts, bytes                     []int32
	sent, since, until, held            []pgtype.Timestamptz
	wait                                []pgtype.Int8
	holder                              []pgtype.Text
}

func columns(rows []tx.Row) (c workColumn) {
	for _, r := range rows {
		c.id, c.nonce = append(c.id, int64(r.Chain)), append(c.nonce, flip(r.Nonce))
		c.eligible, c.expires = append(c.eligible, flip(r.EligibleAt)), append(c.expires, flip(r.ExpiresAt))
		c.block, c.blockHash = append(c.block, flip(r.Block.Number)), append(c.blockHash, r.Block.Hash[:])
		c.hash, c.sender, c.key = append(c.hash, r.Hash[:]), append(c.sender, r.Sender[:]), append(c.key, r.NonceKey[:])
		c.sequence = append(c.sequence, sequenceID(r.Sequence()))
		named := pgtype.UUID{}
		if r.Apart() {
			named = sequenceID(r.Named())
		}
		c.shared = append(c.shared, r.Shared)
		c.claimed, c.named = append(c.claimed, r.Claimed), append(c.named, named)
		c.account, c.client = append(c.account, accountID(r.Account)), append(c.client, r.Client)
		c.bytes = append(c.bytes, storedCount(r.Bytes))
		c.phase, c.verdict = append(c.phase, string(r.Phase)), append(c.verdict, string(r.Verdict))
		c.note, c.parked = append(c.note, storedText(r.Note)), append(c.parked, r.Parked)
		c.next, c.attempts = append(c.next, storedTime(r.NextAt)), append(c.attempts, storedCount(r.Attempts))
		c.sent, c.since = append(c.sent, optionalTime(r.SentAt)), append(c.since, optionalTime(r.WaitSince))
		c.wait = append(c.wait, optionalNonce(r.WaitNonce))
		c.holder, c.until = append(c.holder, pgtype.Text{String: r.Holder, Valid: r.Holder != ""}), append(c.until, optionalTime(r.Until))
		c.held = append(c.held, optionalTime(r.HeldSince))
	}
	return c
}

func queueInsert(q *pgx.Batch, rows []tx.Row) {
	c := columns(rows)
	q.Queue(insertWork, c.id, c.hash, c.sequence, c.sender, c.key, c.nonce, c.eligible, c.expires,
		c.phase, c.parked, c.verdict, c.block, c.blockHash, c.next, c.attempts, c.note, c.sent, c.wait, c.since, c.account,
		c.client, c.bytes, c.claimed, c.named, c.shared)
}

func queueUpdate(q *pgx.Batch, rows []tx.Row) {
	c := columns(rows)
	q.Queue(updateWork, c.id, c.hash, c.phase, c.parked, c.verdict, c.block, c.blockHash, c.next,
		c.attempts, c.note, c.sent, c.holder, c.until, c.held, c.wait, c.since,
		c.sequence, c.claimed, c.named, c.client, c.bytes)
}

// Unfilled lists rows that were written before the queue stored clients, or further owners, after
// one reference, in order.
func (s *Work) Unfilled(ctx context.Context, after tx.Ref, limit int) (refs []tx.Ref, err error) {
	err = retry(ctx, func() error {
		rows, err := s.pool.Query(ctx, `SELECT chain, hash FROM work.queue WHERE bytes = 0 AND (chain, hash) > ($1, $2)
			UNION SELECT chain, hash FROM work.queue WHERE shared IS NULL AND phase = 'open' AND (chain, hash) > ($1, $2)
			ORDER BY chain, hash LIMIT $3`,
			int64(after.Chain), after.Hash[:], limit)
		if err != nil {
			return err
		}
		refs, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (ref tx.Ref, err error) {
			var id int64
			var hash []byte
			err = row.Scan(&id, &hash)
			ref.Chain = chain.ID(id)
			copy(ref.Hash[:], hash)
			return ref, err
		})
		return err
	})
	return refs, err
}
