package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/payload"
)

// Payloads keeps sealed payloads in one table and the wrapped keys that open them in another.
// Erase removes both for every reader. The sealed bytes may stay longer in the server's files,
// its WAL archive and backups. To make those useless, exclude log.payload_keys from backups, or
// change the master key.
type Payloads struct{ pool *pgxpool.Pool }

// A key is written only for the bytes that are stored, so the two match in any race. A key that
// exists already is the same key, or belongs to a row that is gone.
const (
	putSealed = `
INSERT INTO log.payloads (chain, hash, sealed)
SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[])
ON CONFLICT (chain, hash) DO UPDATE SET kept = clock_timestamp()`

	putKeys = `
INSERT INTO log.payload_keys (chain, hash, master, wrapped)
SELECT u.chain, u.hash, u.master, u.wrapped
FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bytea[]) u (chain, hash, sealed, master, wrapped)
JOIN log.payloads p ON p.chain = u.chain AND p.hash = u.hash AND p.sealed = u.sealed
ON CONFLICT (chain, hash) DO UPDATE SET master = excluded.master, wrapped = excluded.wrapped`
)

// Put stores rows, durable when it returns. An existing row stays unchanged, and counts as kept
// now.
func (s *Payloads) Put(ctx context.Context, rows []payload.Sealed) error {
	if len(rows) == 0 {
		return nil
	}
	c := columnsOf(rows)
	return retry(ctx, func() error {
		var added int
		q := &pgx.Batch{} // one implicit transaction
		q.Queue(putSealed, c.chain, c.hash, c.sealed)
		q.Queue(putKeys, c.chain, c.hash, c.sealed, c.master, c.wrapped).Exec(counted(&added))
		err := s.pool.SendBatch(ctx, q).Close()
		if err != nil || added == len(c.chain) {
			return err
		}
		return s.mend(ctx, c)
	})
}

// OFFSET 0 keeps an EXISTS from becoming a join: it is evaluated for few rows, each by the
// index.

// Rows without a key, as after a restore from a backup without the keys, count as missing.
// Their lock keeps two concurrent repairs from mixing rows and keys.
const (
	lockKeyless = `
SELECT u.ord FROM unnest($1::bigint[], $2::bytea[]) WITH ORDINALITY u (chain, hash, ord)
JOIN log.payloads p USING (chain, hash)
WHERE NOT EXISTS (SELECT FROM log.payload_keys k WHERE k.chain = p.chain AND k.hash = p.hash OFFSET 0)
ORDER BY p.chain, p.hash FOR UPDATE OF p`

	mendPayloads = `
UPDATE log.payloads p SET sealed = u.sealed, kept = clock_timestamp()
FROM unnest($1::bigint[], $2::bytea[], $3::bytea[]) u (chain, hash, sealed)
WHERE p.chain = u.chain AND p.hash = u.hash
  AND NOT EXISTS (SELECT FROM log.payload_keys k WHERE k.chain = p.chain AND k.hash = p.hash OFFSET 0)`
)

// mend replaces rows without a key.
func (s *Payloads) mend(ctx context.Context, c payloadColumns) error {
	return inTx(ctx, s.pool, func(dbtx pgx.Tx) error {
		rows, err := dbtx.Query(ctx, lockKeyless, c.chain, c.hash)
		if err != nil {
			return err
		}
		keyless, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil || len(keyless) == 0 {
			return err
		}
		// Separate statements: they see the keys that others wrote while this one waited.
		if _, err = dbtx.Exec(ctx, mendPayloads, c.chain, c.hash, c.sealed); err != nil {
			return err
		}
		_, err = dbtx.Exec(ctx, putKeys, c.chain, c.hash, c.sealed, c.master, c.wrapped)
		return err
	})
}

// payloadColumns are rows as columns: each payload once, and in a fixed order, so that two
// callers with the same rows do not deadlock.
type payloadColumns struct {
	chain, master         []int64
	hash, sealed, wrapped [][]byte
}

func columnsOf(rows []payload.Sealed) (c payloadColumns) {
	order := func(a, b payload.Sealed) int {
		return cmp.Or(cmp.Compare(a.Chain, b.Chain), bytes.Compare(a.Hash[:], b.Hash[:]))
	}
	rows = slices.SortedStableFunc(slices.Values(rows), order)
	for i, r := range rows {
		if i > 0 && r.Ref == rows[i-1].Ref {
			continue
		}
		c.chain, c.hash = append(c.chain, int64(r.Chain)), append(c.hash, r.Hash[:])
		c.master, c.wrapped = append(c.master, int64(r.KeyID)), append(c.wrapped, notNull(r.Wrapped))
		c.sealed = append(c.sealed, notNull(r.Bytes))
	}
	return c
}

// Get returns payload.ErrGone if the row or its key is missing.
func (s *Payloads) Get(ctx context.Context, id chain.ID, hash chain.Hash) (payload.Sealed, error) {
	sealed := payload.Sealed{Ref: payload.Ref{Chain: id, Hash: hash}}
	err := retry(ctx, func() error {
		return s.pool.QueryRow(ctx, `SELECT p.sealed, k.master, k.wrapped FROM log.payloads p
			JOIN log.payload_keys k USING (chain, hash) WHERE chain = $1 AND hash = $2`,
			int64(id), hash[:]).Scan(&sealed.Bytes, &sealed.KeyID, &sealed.Wrapped)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return payload.Sealed{}, payload.ErrGone
	}
	return sealed, err
}

// Rows first, then their keys, in the same order as Put, which prevents deadlocks. The second
// statement is for keys whose row is gone already.
const (
	erasePayloads = `
WITH gone AS (
  DELETE FROM log.payloads WHERE chain = $1 AND hash = ANY ($2::bytea[]) RETURNING chain, hash
)
DELETE FROM log.payload_keys k USING gone WHERE k.chain = gone.chain AND k.hash = gone.hash`

	eraseKeys = `
DELETE FROM log.payload_keys k WHERE chain = $1 AND hash = ANY ($2::bytea[])
  AND NOT EXISTS (SELECT FROM log.payloads p WHERE p.chain = k.chain AND p.hash = k.hash OFFSET 0)`
)

// Erase removes rows and keys for good. A missing row is no error.
func (s *Payloads) Erase(ctx context.Context, id chain.ID, hashes []chain.Hash) error {
	if len(hashes) == 0 {
		return nil
	}
	sorted := slices.SortedFunc(slices.Values(hashes), func(a, b chain.Hash) int { return bytes.Compare(a[:], b[:]) })
	return retry(ctx, func() error {
		q := &pgx.Batch{}
		q.Queue(erasePayloads, int64(id), bytesOf(sorted))
		q.Queue(eraseKeys, int64(id), bytesOf(sorted))
		return s.pool.SendBatch(ctx, q).Close()
	})
}

const eraseOrphan = `
WITH gone AS (
  DELETE FROM log.payloads WHERE chain = $1 AND hash = $2 AND kept < $3 RETURNING chain, hash
)
DELETE FROM log.payload_keys k USING gone WHERE k.chain = gone.chain AND k.hash = gone.hash`

// EraseOrphan is Erase of one row, unless the row was kept since before.
func (s *Payloads) EraseOrphan(ctx context.Context, ref payload.Ref, before time.Time) error {
	return retry(ctx, func() error {
		_, err := s.pool.Exec(ctx, eraseOrphan, int64(ref.Chain), ref.Hash[:], before) //nolint:gosec // keeps every bit
		return err
	})
}

// Orphans lists payloads kept before a time, after a cursor, ordered by (chain, hash).
func (s *Payloads) Orphans(ctx context.Context, before time.Time, after payload.Ref, limit int) ([]payload.Ref, error) {
	var refs []payload.Ref
	err := retry(ctx, func() error {
		rows, err := s.pool.Query(ctx, `SELECT chain, hash FROM log.payloads
			WHERE kept < $1 AND (chain, hash) > ($2, $3) ORDER BY chain, hash LIMIT $4`,
			before, int64(after.Chain), after.Hash[:], max(limit, 0))
		if err != nil {
			return err
		}
		refs, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (ref payload.Ref, err error) {
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

func bytesOf(hashes []chain.Hash) [][]byte {
	all := make([][]byte, len(hashes))
	for i := range hashes {
		all[i] = hashes[i][:]
	}
	return all
}
