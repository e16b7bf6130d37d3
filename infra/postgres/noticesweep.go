package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/notice"
)

const (
	requeueNamed = `UPDATE work.notices n SET stage = 'queued', attempts = 0, next_at = clock_timestamp(), settled_at = NULL
FROM unnest($2::uuid[], $3::bigint[]) u (intent, seq)
WHERE n.endpoint = $1 AND n.intent = u.intent AND n.seq = u.seq AND n.stage <> 'queued'`

	beginSweep = `UPDATE work.notice_endpoints SET sweep = 'redeliver', sweep_intent = '00000000-0000-0000-0000-000000000000', sweep_seq = 0
WHERE endpoint = $1`

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

// CarryOut applies a command on an endpoint and moves the reader's checkpoint, in one database
// transaction. It returns event.ErrMoved if the checkpoint is not at from. Sweep applies the
// effect on all of the endpoint's notices. Nothing is redelivered to a disabled endpoint.
// Commands for an unknown endpoint, and the record that an endpoint was disabled automatically,
// do nothing.
func (s *Notices) CarryOut(ctx context.Context, reader string, from, to event.Position, wish notice.Event) error {
	return retryRefused(ctx, func() error {
		return inTx(ctx, s.pool, func(dbtx pgx.Tx) error {
			if err := moveCheckpoint(ctx, dbtx, reader, from, to); err != nil {
				return err
			}
			switch w := wish.(type) {
			case notice.WasDisabled:
				if w.Reason != notice.Operator {
					return nil
				}
				return s.change(ctx, dbtx, w.Endpoint, func(e notice.Endpoint, now time.Time) notice.Endpoint { return e.Disable(w.Reason, now) })
			case notice.WasEnabled:
				return s.change(ctx, dbtx, w.Endpoint, func(e notice.Endpoint, _ time.Time) notice.Endpoint { return e.Enable() })
			case notice.RedeliveryAsked:
				return s.redeliver(ctx, dbtx, w)
			}
			return nil
		})
	})
}

func (s *Notices) change(ctx context.Context, dbtx pgx.Tx, id notice.EndpointID, to func(notice.Endpoint, time.Time) notice.Endpoint) error {
	endpoint := []pgtype.UUID{uuidOf(id)}
	found, err := endpointsOf(ctx, dbtx, lockedEndpoints, endpoint)
	if err != nil || len(found) == 0 {
		return err
	}
	var now time.Time
	if err := dbtx.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
		return err
	}
	q := &pgx.Batch{}
	queueEndpoint(q, to(found[0], now.UTC()))
	q.Queue(moveDue, endpoint, s.policy.Concurrency)
	return dbtx.SendBatch(ctx, q).Close()
}

// redeliver queues delivered or given-up notices again, with all their attempts. A notice that
// is sent again delays the later ones of its intent.
func (s *Notices) redeliver(ctx context.Context, dbtx pgx.Tx, w notice.RedeliveryAsked) error {
	found, err := endpointsOf(ctx, dbtx, lockedEndpoints, []pgtype.UUID{uuidOf(w.Endpoint)})
	if err != nil || len(found) == 0 || found[0].Disabled != notice.Enabled {
		return err
	}
	keys := w.Keys()
	if len(keys) == 0 {
		_, err := dbtx.Exec(ctx, beginSweep, uuidOf(w.Endpoint))
		return err
	}
	_, intents, seqs := keyColumns(keys)
	q := &pgx.Batch{}
	q.Queue(requeueNamed, uuidOf(w.Endpoint), intents, seqs)
	s.settle(q, touch(keys))
	return dbtx.SendBatch(ctx, q).Close()
}

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
