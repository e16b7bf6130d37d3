package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Intents is the work queue of intents. A crash of the server may lose its last changes; its
// reader's checkpoint falls back with it.
//
// Every change holds one lock. So the ordering group that a claim reads does not change before
// the claim is made. A claim is sent in one piece, so a stalled process does not hold the lock.
type Intents struct{ pool *pgxpool.Pool }

// Intents is the work queue of intents in this database.
func (db *DB) Intents() *Intents { return &Intents{db.work} }

// lockIntents takes the queue's lock: "wtintent".
const lockIntents = `SELECT pg_advisory_xact_lock(x'7774696e74656e74'::bigint)`

const (
	deleteIntents = `DELETE FROM work.intents WHERE intent = ANY ($1::uuid[])`

	insertIntents = `
INSERT INTO work.intents (intent, pos, chain, client, wants, nonce_key, in_row, deadline, lane, max_fee, size, not_before, head, asleep)
SELECT u.*, u.in_row IS NULL AND NOT s.asleep, s.asleep
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::bigint[], $9::bytea[], $10::text[], $11::bigint[], $12::bigint[])
  u (intent, pos, chain, client, wants, nonce_key, in_row, deadline, lane, max_fee, size, not_before)
CROSS JOIN LATERAL (SELECT u.not_before > ` + unixNow + ` AS asleep) s`

	placeIntents = `UPDATE work.intents i SET lane = u.lane, holder = NULL, claimed_until = NULL
FROM unnest($1::uuid[], $2::bytea[]) u (intent, lane) WHERE i.intent = u.intent`

	// unixNow is the store's time.
	unixNow = `extract(epoch FROM (SELECT clock_timestamp()))`

	// The first queued intent of an ordering group is its head, unless it sleeps; no other is.
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
WHERE i.intent = f.intent AND NOT i.head AND NOT i.asleep`

	awakenIntents = `UPDATE work.intents i SET asleep = false, head = in_row IS NULL OR NOT EXISTS (
  SELECT FROM work.intents b WHERE b.chain = i.chain AND b.in_row = i.in_row AND b.pos < i.pos
) WHERE intent = ANY (ARRAY(SELECT intent FROM work.intents WHERE asleep AND not_before <= ` + unixNow + ` ORDER BY not_before LIMIT $1))`
)

// Apply makes changes in order and moves the reader's checkpoint, in one database transaction.
// It returns eventlog.ErrMoved if the checkpoint is not at from.
func (s *Intents) Apply(ctx context.Context, reader string, from, to eventlog.Position, changes []intent.Change) error {
	return retryRefused(ctx, func() error {
		return inTx(ctx, s.pool, func(dbtx pgx.Tx) error {
			if err := moveCheckpoint(ctx, dbtx, reader, from, to); err != nil || len(changes) == 0 {
				return err
			}
			stored, err := loadIntents(ctx, dbtx, changes)
			if err != nil {
				return err
			}
			f := intent.NewFold(stored)
			for _, c := range changes {
				f.Apply(c)
			}
			return writeIntents(ctx, dbtx, f.Rows())
		})
	})
}

// loadIntents takes the queue's lock and reads the intents that changes concern.
func loadIntents(ctx context.Context, dbtx pgx.Tx, changes []intent.Change) (stored []intent.Entry, err error) {
	ids := make([]pgtype.UUID, len(changes))
	for i, c := range changes {
		ids[i] = uuidOf(c.ID)
	}
	q := &pgx.Batch{}
	q.Queue(lockIntents)
	q.Queue(`SELECT `+intentColumns+`, NULL::uuid FROM work.intents i WHERE intent = ANY ($1::uuid[])`, ids).Query(func(rows pgx.Rows) error {
		stored, err = pgx.CollectRows(rows, scanIntent)
		return err
	})
	return stored, dbtx.SendBatch(ctx, q).Close()
}

// writeIntents stores the changed intents.
func writeIntents(ctx context.Context, dbtx pgx.Tx, rows []intent.Folded) error {
	var gone, moved []pgtype.UUID
	var lanes [][]byte
	var opened []*intent.Entry
	groups := map[intent.Row]bool{} // ordering groups whose head may change
	for _, r := range rows {
		if r.Was != nil && (r.Is == nil || r.Opened) {
			gone = append(gone, uuidOf(r.Was.ID))
			groups[r.Was.Row] = true
		}
		switch {
		case r.Opened:
			opened = append(opened, r.Is)
			groups[r.Is.Row] = true
		case r.Moved:
			moved, lanes = append(moved, uuidOf(r.Is.ID)), append(lanes, laneColumn(r.Is.Lane))
		}
	}
	q := &pgx.Batch{}
	q.Queue(deleteIntents, gone)
	queueIntents(q, opened)
	q.Queue(placeIntents, moved, lanes)
	var chains []int64
	var names []string
	for row := range groups {
		if name := row.Name(); name != "" {
			chains, names = append(chains, int64(row.Chain)), append(names, name)
		}
	}
	q.Queue(dropIntentHeads, chains, names)
	q.Queue(markIntentHeads, chains, names)
	return dbtx.SendBatch(ctx, q).Close()
}

func queueIntents(q *pgx.Batch, opened []*intent.Entry) {
	var ids []pgtype.UUID
	var positions, chains, deadlines, sizes, begins []int64
	var clients, wants, fees []string
	var keys, lanes [][]byte
	var rows []pgtype.Text
	for _, e := range opened {
		ids, positions, chains = append(ids, uuidOf(e.ID)), append(positions, clamp(uint64(e.Position))), append(chains, int64(e.Chain))
		clients, wants, keys = append(clients, e.Client), append(wants, e.From.Name()), append(keys, keyColumn(e.Key))
		rows = append(rows, pgtype.Text{String: e.Row.Name(), Valid: e.Row.Order != ""})
		deadlines, lanes = append(deadlines, clamp(e.Deadline)), append(lanes, laneColumn(e.Lane))
		fees, sizes = append(fees, feeColumn(e.MaxFee)), append(sizes, int64(e.Size))
		begins = append(begins, clamp(e.NotBefore))
	}
	q.Queue(insertIntents, ids, positions, chains, clients, wants, keys, rows, deadlines, lanes, fees, sizes, begins)
}

// laneOf encodes a lane, unique within its chain.
func laneOf(s chain.Sequence) []byte { return slices.Concat(s.Sender[:], s.Key[:]) }

// laneColumn is NULL for no lane.
func laneColumn(s *chain.Sequence) []byte {
	if s == nil {
		return nil
	}
	return laneOf(*s)
}

// laneAt decodes a lane encoded by [laneOf]; nil for none.
func laneAt(on chain.ID, column []byte) *chain.Sequence {
	if len(column) == 0 {
		return nil
	}
	n := len(chain.Address{})
	return &chain.Sequence{Chain: on, Sender: chain.Address(column[:n]), Key: chain.NonceKey(column[n:])}
}

// keyColumn is empty for any key.
func keyColumn(key *chain.NonceKey) []byte {
	if key == nil {
		return []byte{}
	}
	return key[:]
}

// keyOf is the inverse of keyColumn.
func keyOf(column []byte) *chain.NonceKey {
	if len(column) == 0 {
		return nil
	}
	key := chain.NonceKey(column)
	return &key
}

// feeColumn is empty for no ceiling.
func feeColumn(a intent.Amount) string {
	if a.IsZero() {
		return ""
	}
	return a.String()
}

// feeOf is the inverse of feeColumn.
func feeOf(column string) (intent.Amount, error) {
	if column == "" {
		return intent.Amount{}, nil
	}
	return intent.ParseAmount(column)
}

// Return ends a holder's claims of these intents. Intents that it has not claimed, or that no
// longer wait, are not changed.
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

// Demand counts a chain's intents by client. Waiting intents are counted by requested signer
// and nonce key, intents with a nonce by their lane.
func (s *Intents) Demand(ctx context.Context, id chain.ID) (found []intent.Demand, err error) {
	const count = `
SELECT wants, nonce_key, NULL::bytea, client, count(*), min(pos) FROM work.intents WHERE chain = $1 AND (lane IS NULL OR holder IS NOT NULL)
  AND (NOT asleep OR not_before <= ` + unixNow + `) GROUP BY 1, 2, 4
UNION ALL
SELECT NULL, NULL, lane, client, count(*), min(pos) FROM work.intents WHERE chain = $1 AND lane IS NOT NULL AND holder IS NULL GROUP BY 3, 4`
	err = retry(ctx, func() error {
		rows, err := s.pool.Query(ctx, count, int64(id))
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d intent.Demand, err error) {
			var wants pgtype.Text
			var key, lane []byte
			var n int
			var first int64
			if err := row.Scan(&wants, &key, &lane, &d.Client, &n, &first); err != nil {
				return d, err
			}
			d.First = eventlog.Position(first)
			if in := laneAt(id, lane); in != nil {
				d.From, d.Key, d.Assigned = intent.From{Signer: &in.Sender}, &in.Key, n
				return d, nil
			}
			d.Waiting, d.Key = n, keyOf(key)
			d.From, err = intent.ParseFrom(wants.String)
			return d, err
		})
		return err
	})
	return intent.Sum(found), err
}

// Open counts a client's intents, up to most.
func (s *Intents) Open(ctx context.Context, client string, most int) (n int, err error) {
	err = retry(ctx, func() error {
		return s.pool.QueryRow(ctx, `SELECT count(*) FROM (SELECT FROM work.intents WHERE client = $1 LIMIT $2) i`, client, most).Scan(&n)
	})
	return n, err
}

// aheadInRow reads the intents of an ordering group backwards by intents_row, and stops at the
// first one without a nonce.
const aheadInRow = `SELECT intent FROM (
  SELECT intent, pos, lane, holder FROM work.intents WHERE chain = $1 AND in_row = $2 AND pos < $3 ORDER BY pos DESC LIMIT $4
) i WHERE lane IS NULL OR holder IS NOT NULL ORDER BY pos DESC LIMIT 1`

// Ahead returns the nearest earlier intent of an ordering group that has no nonce, among the
// [intent.AheadMost] right before a position; zero if there is none.
func (s *Intents) Ahead(ctx context.Context, row intent.Row, before eventlog.Position) (chain.IntentID, error) {
	var found pgtype.UUID
	err := retry(ctx, func() error {
		err := s.pool.QueryRow(ctx, aheadInRow, int64(row.Chain), row.Name(), clamp(uint64(before)), intent.AheadMost).Scan(&found)
		if errors.Is(err, pgx.ErrNoRows) {
			found, err = pgtype.UUID{}, nil
		}
		return err
	})
	return found.Bytes, err
}
