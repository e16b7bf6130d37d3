package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// Intents is the work queue of intents. A crash of the server may set it back by the
// last instant; its reader's checkpoint goes back with it.
//
// Who changes it holds one lock: so what a claim sees of a row of intents stands until
// the claim does. A claim is sent as a whole, and nobody who stands still holds the lock.
type Intents struct{ pool *pgxpool.Pool }

// Intents is the work queue of intents.
func (db *DB) Intents() *Intents { return &Intents{db.work} }

// lockIntents takes the queue's lock: "wtintent".
const lockIntents = `SELECT pg_advisory_xact_lock(x'7774696e74656e74'::bigint)`

const (
	deleteIntents = `DELETE FROM work.intents WHERE intent = ANY ($1::uuid[])`

	insertIntents = `
INSERT INTO work.intents (intent, pos, chain, wants, nonce_key, in_row, deadline, head)
SELECT u.*, u.in_row IS NULL
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::bytea[], $6::text[], $7::bigint[])
  u (intent, pos, chain, wants, nonce_key, in_row, deadline)`

	placeIntents = `UPDATE work.intents i SET lane = u.lane, holder = NULL, claimed_until = NULL
FROM unnest($1::uuid[], $2::bytea[]) u (intent, lane) WHERE i.intent = u.intent`

	// The first of a row that is in the queue is its head, and no other.
	firstOfRow = `
FROM unnest($1::bigint[], $2::text[]) u (chain, in_row) CROSS JOIN LATERAL (
  SELECT intent FROM work.intents WHERE chain = u.chain AND in_row = u.in_row ORDER BY pos LIMIT 1
) f `
	dropIntentHeads = `UPDATE work.intents i SET head = false FROM (
  SELECT h.intent` + firstOfRow + `CROSS JOIN LATERAL (
    SELECT intent FROM work.intents WHERE chain = u.chain AND in_row = u.in_row AND head ORDER BY pos DESC LIMIT 1
  ) h WHERE h.intent <> f.intent
) wrong WHERE i.intent = wrong.intent`
	markIntentHeads = `UPDATE work.intents i SET head = true FROM (SELECT f.intent` + firstOfRow + `) f
WHERE i.intent = f.intent AND NOT i.head`
)

// Apply makes changes, in order, and moves the reader's checkpoint in one database
// transaction; event.ErrMoved if the checkpoint is not at from.
func (s *Intents) Apply(ctx context.Context, reader string, from, to event.Position, changes []intent.Change) error {
	return retryRefused(ctx, func() error {
		return inTx(ctx, s.pool, func(dbtx pgx.Tx) error {
			if err := moveCheckpoint(ctx, dbtx, reader, from, to); err != nil || len(changes) == 0 {
				return err
			}
			f := &intentFold{rows: map[chain.IntentID]*intentRow{}, rowsOf: map[intent.Row]bool{}}
			if err := f.load(ctx, dbtx, changes); err != nil {
				return err
			}
			for _, c := range changes {
				f.apply(c)
			}
			return f.write(ctx, dbtx)
		})
	})
}

// intentRow is a row of the queue: as it was, and as it shall be.
type intentRow struct {
	was, is bool // there
	row     intent.Row
	lane    []byte // nil: it waits
	claimed bool
	opened  *intent.Waiting // anew
	moved   bool            // in or out of a lane
}

// intentFold is what changes make of the queue.
type intentFold struct {
	rows   map[chain.IntentID]*intentRow
	rowsOf map[intent.Row]bool // whose head may be another one
}

func (f *intentFold) load(ctx context.Context, dbtx pgx.Tx, changes []intent.Change) error {
	ids := make([]pgtype.UUID, len(changes))
	for i, c := range changes {
		f.rows[c.ID] = &intentRow{}
		ids[i] = uuidOf(c.ID)
	}
	q := &pgx.Batch{}
	q.Queue(lockIntents)
	q.Queue(`SELECT intent, chain, coalesce(in_row, ''), lane, holder IS NOT NULL FROM work.intents WHERE intent = ANY ($1::uuid[])`, ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var id pgtype.UUID
			var of int64
			var name string
			r := &intentRow{was: true, is: true}
			if err := rows.Scan(&id, &of, &name, &r.lane, &r.claimed); err != nil {
				return err
			}
			r.row = intent.ParseRow(chain.ID(of), name)
			f.rows[id.Bytes] = r
		}
		return rows.Err()
	})
	return dbtx.SendBatch(ctx, q).Close()
}

func (f *intentFold) apply(c intent.Change) {
	r := f.rows[c.ID]
	switch {
	case c.Open != nil:
		if r.is {
			return
		}
		r.is, r.opened, r.row, r.lane, r.claimed = true, c.Open, c.Open.Row, nil, false
		f.rowsOf[r.row] = true
	case !r.is:
	case c.Place != nil:
		r.lane, r.claimed, r.moved = laneOf(c.Place.Signer, c.Place.NonceKey), false, true
	case c.Requeue:
		if r.lane != nil && !r.claimed {
			r.lane, r.moved = nil, true
		}
	case c.Close:
		r.is, r.opened, r.moved = false, nil, false
		f.rowsOf[r.row] = true
	default:
		panic(fmt.Sprintf("postgres: a change of nothing to %s", c.ID))
	}
}

// write brings the table to where the fold is.
func (f *intentFold) write(ctx context.Context, dbtx pgx.Tx) error {
	var gone, moved []pgtype.UUID
	var lanes [][]byte
	var fresh []*intent.Waiting
	for id, r := range f.rows {
		if r.was && (!r.is || r.opened != nil) {
			gone = append(gone, uuidOf(id))
		}
		if r.opened != nil {
			fresh = append(fresh, r.opened)
		}
		if r.moved {
			moved, lanes = append(moved, uuidOf(id)), append(lanes, r.lane)
		}
	}
	q := &pgx.Batch{}
	q.Queue(deleteIntents, gone)
	queueIntents(q, fresh)
	q.Queue(placeIntents, moved, lanes)
	var chains []int64
	var names []string
	for row := range f.rowsOf {
		if name := row.Name(); name != "" {
			chains, names = append(chains, int64(row.Chain)), append(names, name)
		}
	}
	q.Queue(dropIntentHeads, chains, names)
	q.Queue(markIntentHeads, chains, names)
	return dbtx.SendBatch(ctx, q).Close()
}

func queueIntents(q *pgx.Batch, fresh []*intent.Waiting) {
	var ids []pgtype.UUID
	var positions, chains, deadlines []int64
	var wants []string
	var keys [][]byte
	var rows []pgtype.Text
	for _, w := range fresh {
		ids, positions, chains = append(ids, uuidOf(w.ID)), append(positions, clamp(uint64(w.Position))), append(chains, int64(w.Chain))
		wants, keys, deadlines = append(wants, w.From.Name()), append(keys, keyColumn(w.Key)), append(deadlines, clamp(w.Deadline))
		rows = append(rows, pgtype.Text{String: w.Row.Name(), Valid: w.Row.Order != ""})
	}
	q.Queue(insertIntents, ids, positions, chains, wants, keys, rows, deadlines)
}

// laneOf names a lane among those of its chain.
func laneOf(signer chain.Address, key chain.NonceKey) []byte { return slices.Concat(signer[:], key[:]) }

// keyColumn is empty for any key.
func keyColumn(key *chain.NonceKey) []byte {
	if key == nil {
		return []byte{}
	}
	return key[:]
}

// keyOf is the way back.
func keyOf(column []byte) *chain.NonceKey {
	if len(column) == 0 {
		return nil
	}
	key := chain.NonceKey(column)
	return &key
}

const (
	// A claim that runs for longer than any is made for was made before the clock was
	// set back, and nobody may wait for it.
	lapseClaims = `UPDATE work.intents SET lane = NULL, holder = NULL, claimed_until = NULL
WHERE holder IS NOT NULL AND (claimed_until <= (SELECT clock_timestamp()) OR claimed_until > (SELECT clock_timestamp()) + $1::interval)`

	// elsewhere holds of a row of which something is in another lane, or another holder's.
	// It is asked of one row after the other (OFFSET 0 sees to it).
	elsewhere = `EXISTS (SELECT FROM work.intents o
        WHERE o.chain = $1 AND o.in_row = i.in_row AND o.lane IS NOT NULL AND (o.lane <> $2 OR o.holder <> $5) OFFSET 0)`

	// Candidates are the heads that wait and fit, and all that follows them or what has
	// come into this lane before, up to the first that does not fit. A row of which
	// anything is in another lane has none.
	claimIntents = `
WITH found AS MATERIALIZED (
  SELECT c.* FROM unnest($3::text[]) w (wants) CROSS JOIN unnest($4::bytea[]) k (nonce_key) CROSS JOIN LATERAL (
    SELECT intent, pos, in_row FROM work.intents i
    WHERE chain = $1 AND i.wants = w.wants AND i.nonce_key = k.nonce_key AND head AND lane IS NULL AND pos > $8
      AND (in_row IS NULL OR NOT ` + elsewhere + `)
    ORDER BY pos LIMIT $6
  ) c ORDER BY c.pos LIMIT $6
), mine AS (
  SELECT in_row FROM found WHERE in_row IS NOT NULL
  UNION
  SELECT in_row FROM (
    SELECT DISTINCT in_row FROM work.intents WHERE chain = $1 AND lane = $2 AND in_row IS NOT NULL
  ) i WHERE NOT ` + elsewhere + `
), chosen AS MATERIALIZED (
  SELECT intent, pos FROM (
    SELECT intent, pos FROM found WHERE in_row IS NULL
    UNION ALL
    SELECT r.intent, r.pos FROM mine CROSS JOIN LATERAL (
      SELECT intent, pos, bool_and(wants = ANY ($3::text[]) AND nonce_key = ANY ($4::bytea[]) AND pos > $8) OVER (ORDER BY pos) AS fits FROM (
        SELECT intent, pos, wants, nonce_key FROM work.intents
        WHERE chain = $1 AND in_row = mine.in_row AND lane IS NULL ORDER BY pos LIMIT $6
      ) waiting
    ) r WHERE r.fits
  ) candidates ORDER BY pos LIMIT $6
)
UPDATE work.intents i SET lane = $2, holder = $5, claimed_until = clock_timestamp() + $7::interval
FROM chosen c WHERE i.intent = c.intent
RETURNING i.intent, i.pos, i.chain, i.wants, i.nonce_key, coalesce(i.in_row, ''), i.deadline,
  CASE WHEN NOT i.head THEN (
    SELECT intent FROM work.intents b WHERE b.chain = $1 AND b.in_row = i.in_row AND b.pos < i.pos ORDER BY b.pos DESC LIMIT 1
  ) END`
)

// Claim gives what waits, is claimed by nobody and fits the lane to a holder, in the
// order of positions, at most c.Limit. Of a row, an intent is given only if each earlier
// one that is in the queue is in this lane: has a nonce there, or was claimed for it by
// this holder, now or before; and none, earlier or later, is in another. A claim of
// unknown outcome lapses.
func (s *Intents) Claim(ctx context.Context, c intent.Claim) (claimed []intent.Claimed, err error) {
	lane := laneOf(c.Lane.Sender, c.Lane.Key)
	keys := [][]byte{{}, c.Lane.Key[:]}
	err = retryRefused(ctx, func() error {
		claimed = nil
		q := &pgx.Batch{} // one implicit transaction
		q.Queue(lockIntents)
		q.Queue(lapseClaims, c.TTL+leaseSlack)
		q.Queue(claimIntents, int64(c.Lane.Chain), lane, c.Names(), keys, c.Holder, c.Limit, c.TTL, clamp(uint64(c.After))).Query(func(rows pgx.Rows) error {
			claimed, err = pgx.CollectRows(rows, scanClaimed)
			return err
		})
		return s.pool.SendBatch(ctx, q).Close()
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(claimed, func(a, b intent.Claimed) int { return cmp.Compare(a.Position, b.Position) })
	return claimed, nil
}

func scanClaimed(row pgx.CollectableRow) (c intent.Claimed, err error) {
	var id, behind pgtype.UUID
	var position, of, deadline int64
	var wants, name string
	var key []byte
	if err := row.Scan(&id, &position, &of, &wants, &key, &name, &deadline, &behind); err != nil {
		return c, err
	}
	c.ID, c.Behind, c.Position, c.Chain, c.Deadline = id.Bytes, behind.Bytes, event.Position(position), chain.ID(of), uint64(deadline)
	c.Key, c.Row = keyOf(key), intent.ParseRow(c.Chain, name)
	c.From, err = intent.ParseFrom(wants)
	return c, err
}

// Return ends a holder's claims of these intents. What it has not claimed, or what does
// not wait any more, is left alone.
func (s *Intents) Return(ctx context.Context, holder string, ids []chain.IntentID) error {
	if len(ids) == 0 {
		return nil
	}
	column := make([]pgtype.UUID, len(ids))
	for i, id := range ids {
		column[i] = uuidOf(id)
	}
	return retry(ctx, func() error {
		q := &pgx.Batch{}
		q.Queue(lockIntents)
		q.Queue(`UPDATE work.intents SET lane = NULL, holder = NULL, claimed_until = NULL WHERE intent = ANY ($2::uuid[]) AND holder = $1`, holder, column)
		return s.pool.SendBatch(ctx, q).Close()
	})
}

// Demand counts a chain's rows: those that wait by whom and under which key they want to
// be carried out, those that have a nonce by their lane.
func (s *Intents) Demand(ctx context.Context, id chain.ID) (found []intent.Demand, err error) {
	const count = `
SELECT wants, nonce_key, NULL::bytea, count(*) FROM work.intents WHERE chain = $1 AND (lane IS NULL OR holder IS NOT NULL) GROUP BY 1, 2
UNION ALL
SELECT NULL, NULL, lane, count(*) FROM work.intents WHERE chain = $1 AND lane IS NOT NULL AND holder IS NULL GROUP BY 3`
	err = retry(ctx, func() error {
		rows, err := s.pool.Query(ctx, count, int64(id))
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d intent.Demand, err error) {
			var wants pgtype.Text
			var key, lane []byte
			var n int
			if err := row.Scan(&wants, &key, &lane, &n); err != nil {
				return d, err
			}
			if lane != nil {
				signer, key := chain.Address(lane[:20]), chain.NonceKey(lane[20:])
				return intent.Demand{From: intent.From{Signer: &signer}, Key: &key, Assigned: n}, nil
			}
			d.Waiting, d.Key = n, keyOf(key)
			d.From, err = intent.ParseFrom(wants.String)
			return d, err
		})
		return err
	})
	return intent.Sum(found), err
}
