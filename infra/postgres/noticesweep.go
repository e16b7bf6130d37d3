package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
)

const (
	nextSweep = `SELECT endpoint, client, sweep, sweep_intent, sweep_seq FROM work.notice_endpoints WHERE sweep <> ''
ORDER BY client <= $1, client, swept_at NULLS FIRST LIMIT 1 FOR UPDATE SKIP LOCKED`

	moveSweep = `UPDATE work.notice_endpoints SET sweep = $2, sweep_intent = $3, sweep_seq = $4, swept_at = clock_timestamp() WHERE endpoint = $1`

	// Given-up notices are no longer queued, so the next part finds the rest of the same
	// intent.
	giveUpSome = `
UPDATE work.notices SET stage = 'dead', head = false, holder = NULL, leased_until = NULL, cause = 'disabled', settled_at = clock_timestamp()
WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM work.notices WHERE endpoint = $1 AND stage = 'queued' AND intent >= $2 ORDER BY intent, head, seq LIMIT $3
)) RETURNING intent, seq`

	requeueSome = `
UPDATE work.notices SET stage = 'queued', attempts = 0, next_at = clock_timestamp(), settled_at = NULL
WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM work.notices WHERE endpoint = $1 AND stage = 'dead' AND (intent, seq) > ($2, $3) ORDER BY intent, seq LIMIT $4
)) RETURNING intent, seq`

	// Each count reads its partial index, in order, and at most $2 rows.
	countQueued = `SELECT count(*) FROM (SELECT FROM work.notices WHERE endpoint = $1 AND stage = 'queued' ORDER BY intent, head, seq LIMIT $2) n`
	countDead   = `SELECT count(*) FROM (SELECT FROM work.notices WHERE endpoint = $1 AND stage = 'dead' ORDER BY intent, seq LIMIT $2) n`
)

// Sweep does the next part of a pending change to all notices of an endpoint: at most most
// notices. Clients take turns, beginning after turn, and each client's endpoints do too. It
// returns the client whose turn it was; found is false if nothing is pending.
func (s *Notices) Sweep(ctx context.Context, turn string, most int) (client string, found bool, err error) {
	err = retryRefused(ctx, func() error {
		return inTx(ctx, s.pool, func(dbtx pgx.Tx) error {
			var endpoint, intent pgtype.UUID
			var sweep notice.Sweep
			var seq int64
			err := dbtx.QueryRow(ctx, nextSweep, turn).Scan(&endpoint, &client, &sweep, &intent, &seq)
			if found = err == nil; !found {
				if errors.Is(err, pgx.ErrNoRows) {
					err = nil
				}
				return err
			}
			sql, args := giveUpSome, []any{endpoint, intent, most}
			if sweep == notice.Requeuing {
				sql, args = requeueSome, []any{endpoint, intent, seq, most}
			}
			keys, err := sweptKeys(ctx, dbtx, endpoint.Bytes, sql, args...)
			if err != nil {
				return err
			}
			for _, k := range keys {
				if k.Compare(notice.Key{Endpoint: k.Endpoint, Intent: intent.Bytes, Seq: uint64(seq)}) > 0 { //nolint:gosec // stored from a sequence
					intent, seq = uuidOf(k.Intent), clamp(k.Seq)
				}
			}
			if len(keys) < most {
				sweep, intent, seq = notice.NoSweep, pgtype.UUID{Valid: true}, 0
			}
			q := &pgx.Batch{}
			q.Queue(moveSweep, endpoint, string(sweep), intent, seq)
			t := touch(keys)
			t.endpoints = []pgtype.UUID{endpoint}
			s.settle(q, t)
			return dbtx.SendBatch(ctx, q).Close()
		})
	})
	return client, found && err == nil, err
}

func sweptKeys(ctx context.Context, dbtx pgx.Tx, endpoint notice.EndpointID, sql string, args ...any) ([]notice.Key, error) {
	rows, err := dbtx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (notice.Key, error) {
		var intent pgtype.UUID
		var seq int64
		err := row.Scan(&intent, &seq)
		return notice.Key{Endpoint: endpoint, Intent: chain.IntentID(intent.Bytes), Seq: uint64(seq)}, err //nolint:gosec // stored from a sequence
	})
}

// Count counts an endpoint's queued or dead notices, up to most.
func (s *Notices) Count(ctx context.Context, endpoint notice.EndpointID, stage notice.Stage, most int) (n int, err error) {
	err = retry(ctx, func() error {
		sql := map[notice.Stage]string{notice.Queued: countQueued, notice.Dead: countDead}[stage]
		return s.pool.QueryRow(ctx, sql, uuidOf(endpoint), most).Scan(&n)
	})
	return n, err
}
