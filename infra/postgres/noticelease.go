package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

const (
	// Times stored before the clock was set back count as due: for notices without attempts,
	// notices attempted by the earlier clock, and paused endpoints. A lease ends no later than
	// a lease that begins now. An endpoint changed since has a new due time already.
	rewindNotices = `
WITH astray AS (
  SELECT endpoint FROM work.notice_endpoints WHERE due_at IS NOT NULL AND told_at > (SELECT clock_timestamp()) + $2::interval
  ORDER BY told_at DESC LIMIT $1 FOR UPDATE SKIP LOCKED
), due AS (
  UPDATE work.notices SET leased_until = CASE WHEN holder IS NOT NULL THEN least(leased_until, clock_timestamp() + $3::interval) END,
    next_at = CASE WHEN attempts = 0 OR last_at > clock_timestamp() THEN least(next_at, clock_timestamp()) ELSE next_at END
  WHERE endpoint = ANY (ARRAY(SELECT endpoint FROM astray)) AND stage = 'queued' AND (next_at > (SELECT clock_timestamp()) OR holder IS NOT NULL)
)
UPDATE work.notice_endpoints SET due_at = clock_timestamp(), told_at = clock_timestamp(), paused_until = NULL,
  failing_since = CASE WHEN failing_since IS NOT NULL THEN least(failing_since, clock_timestamp()) END
WHERE endpoint = ANY (ARRAY(SELECT endpoint FROM astray))`

	// Clients are found one by one, by the index, without clients that have no free slots.
	// Clients take turns, and each client's endpoint that is due longest goes first. Each of
	// these endpoints has a notice to send.
	dueEndpoints = `
WITH RECURSIVE clients AS (
  (SELECT client FROM work.notice_endpoints WHERE due_at IS NOT NULL ORDER BY client LIMIT 1)
  UNION ALL
  SELECT n.client FROM clients c CROSS JOIN LATERAL (
    SELECT client FROM work.notice_endpoints WHERE due_at IS NOT NULL AND client > c.client ORDER BY client LIMIT 1
  ) n
), due AS MATERIALIZED (
  SELECT d.endpoint FROM (
    SELECT e.*, c.client, row_number() OVER (PARTITION BY c.client ORDER BY e.due_at) AS place FROM clients c CROSS JOIN LATERAL (
      SELECT endpoint, due_at FROM work.notice_endpoints WHERE client = c.client AND due_at <= (SELECT clock_timestamp()) ORDER BY due_at LIMIT $1
    ) e WHERE c.client <> ALL ($3::text[])
  ) d ORDER BY d.place, d.client <= $2, d.client LIMIT $1
)
SELECT endpoint FROM work.notice_endpoints WHERE endpoint = ANY (ARRAY(SELECT endpoint FROM due)) AND due_at <= (SELECT clock_timestamp())
ORDER BY due_at FOR UPDATE SKIP LOCKED`

	endLapsed = `UPDATE work.notices SET holder = NULL, leased_until = NULL
WHERE endpoint = ANY ($1::uuid[]) AND holder IS NOT NULL AND leased_until <= (SELECT clock_timestamp())`

	offeredEndpoints = `SELECT ` + endpointColumns + `, (SELECT count(*) FROM work.notices n WHERE n.endpoint = e.endpoint AND n.holder IS NOT NULL), clock_timestamp()
FROM work.notice_endpoints e WHERE endpoint = ANY ($1::uuid[]) ORDER BY due_at`

	offeredNotices = `SELECT ` + noticeColumns + ` FROM unnest($1::uuid[]) u (endpoint) CROSS JOIN LATERAL (
  SELECT * FROM work.notices WHERE endpoint = u.endpoint AND head AND holder IS NULL AND next_at <= (SELECT clock_timestamp()) ORDER BY next_at LIMIT $2
) n ORDER BY n.next_at`

	leaseNotices = `UPDATE work.notices n SET holder = $4, leased_until = clock_timestamp() + $5
FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) u (endpoint, intent, seq)
WHERE n.endpoint = u.endpoint AND n.intent = u.intent AND n.seq = u.seq`

	untilNotice = `SELECT greatest(due_at - clock_timestamp(), '0') FROM work.notice_endpoints
WHERE due_at < (SELECT clock_timestamp()) + $1::interval AND client <> ALL ($2::text[]) ORDER BY due_at LIMIT 1`
)

// Lease gives notices to a holder, as chosen by [notice.Policy.Choose]. until is the time until
// there may be more: 0 if there may be now, a minute if nothing is due before that.
func (s *Notices) Lease(ctx context.Context, c notice.Claim) (leased []notice.Sending, until time.Duration, err error) {
	if c.Limit <= 0 {
		return nil, 0, nil
	}
	full := c.Full()
	err = retryRefused(ctx, func() error {
		leased = nil
		return inTx(ctx, s.pool, func(dbtx pgx.Tx) error {
			var endpoints []pgtype.UUID
			q := &pgx.Batch{}
			q.Queue(rewindNotices, c.Limit, clockSlack, c.TTL)
			q.Queue(dueEndpoints, c.Limit, c.Turn, c.Full()).Query(func(rows pgx.Rows) (err error) {
				endpoints, err = pgx.CollectRows(rows, pgx.RowTo[pgtype.UUID])
				return err
			})
			if err := dbtx.SendBatch(ctx, q).Close(); err != nil || len(endpoints) == 0 {
				return err
			}
			offers, now, err := s.offers(ctx, dbtx, endpoints)
			if err != nil {
				return err
			}
			leased, full = s.policy.Choose(c, offers, now)
			full = append(full, c.Full()...)
			var keys []notice.Key
			for _, n := range leased {
				keys = append(keys, n.Key)
			}
			at, intents, seqs := keyColumns(keys)
			q = &pgx.Batch{}
			q.Queue(leaseNotices, at, intents, seqs, c.Holder, c.TTL)
			q.Queue(moveDue, endpoints, s.policy.Concurrency)
			return dbtx.SendBatch(ctx, q).Close()
		})
	})
	if err != nil {
		return nil, 0, err
	}
	if len(leased) == c.Limit {
		return leased, 0, nil
	}
	until = horizon
	err = retry(ctx, func() error {
		err := s.pool.QueryRow(ctx, untilNotice, horizon, full).Scan(&until)
		if errors.Is(err, pgx.ErrNoRows) {
			err = nil
		}
		return err
	})
	if len(leased) > 0 {
		err = nil // the leased ones are returned without the error
	}
	return leased, until, err
}

// offers reads the endpoints, which are locked, their due notices, and the time. The statements
// see every change committed before the locks.
func (s *Notices) offers(ctx context.Context, dbtx pgx.Tx, endpoints []pgtype.UUID) (offers []notice.Offer, now time.Time, err error) {
	at := map[notice.EndpointID]int{}
	q := &pgx.Batch{}
	q.Queue(endLapsed, endpoints)
	q.Queue(offeredEndpoints, endpoints).Query(func(rows pgx.Rows) (err error) {
		offers, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (o notice.Offer, err error) {
			o.Endpoint, err = scanEndpoint(row, &o.Leased, &now)
			return o, err
		})
		for i, o := range offers {
			at[o.ID] = i
		}
		return err
	})
	q.Queue(offeredNotices, endpoints, s.policy.Concurrency).Query(func(rows pgx.Rows) error {
		heads, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (notice.Notice, error) { return scanNotice(row) })
		for _, n := range heads {
			o := &offers[at[n.Endpoint]]
			o.Heads = append(o.Heads, n)
		}
		return err
	})
	err = dbtx.SendBatch(ctx, q).Close()
	return offers, now.UTC(), err
}

const (
	lockedEndpoints = `SELECT ` + endpointColumns + ` FROM work.notice_endpoints WHERE endpoint = ANY ($1::uuid[]) ORDER BY endpoint FOR UPDATE`

	heldNotices = `SELECT ` + noticeColumns + `, clock_timestamp() FROM unnest($2::uuid[], $3::uuid[], $4::bigint[]) u (endpoint, intent, seq)
JOIN work.notices n USING (endpoint, intent, seq) WHERE n.holder = $1`

	updateNotices = `
UPDATE work.notices n SET stage = u.stage, attempts = u.attempts, next_at = u.next_at, class = u.class, cause = u.cause,
  status = u.status, last_at = u.last_at, holder = NULL, leased_until = NULL, head = n.head AND u.stage = 'queued',
  settled_at = CASE WHEN u.stage <> 'queued' THEN u.last_at END
FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::integer[], $6::timestamptz[], $7::text[], $8::text[], $9::integer[], $10::timestamptz[])
  u (endpoint, intent, seq, stage, attempts, next_at, class, cause, status, last_at)
WHERE n.endpoint = u.endpoint AND n.intent = u.intent AND n.seq = u.seq`

	// Sweep gives up the queued notices of an endpoint that becomes disabled. If it is enabled
	// before Sweep has finished, the rest stays queued.
	updateEndpoint = `UPDATE work.notice_endpoints SET failures = $2, failing_since = $3, paused_until = $4, disabled = $5, disabled_at = $6,
  attempts = $7, delivered = $8, last_at = $9, last_class = $10, last_cause = $11, last_status = $12,
  sweep = CASE WHEN $5 <> '' AND disabled = '' THEN 'give-up' WHEN $5 = '' AND sweep = 'give-up' THEN '' ELSE sweep END,
  sweep_intent = CASE WHEN $5 <> '' AND disabled = '' THEN '00000000-0000-0000-0000-000000000000' ELSE sweep_intent END
WHERE endpoint = $1`
)

// Done ends the holder's leases with the results of the attempts. It returns the endpoints that
// become disabled; Sweep gives up their queued notices. Reports on notices that the holder no
// longer holds change nothing.
func (s *Notices) Done(ctx context.Context, holder string, reports []notice.Report) (disabled []notice.Endpoint, err error) {
	if len(reports) == 0 {
		return nil, nil
	}
	outcomes := map[notice.Key]notice.Outcome{}
	for _, r := range reports {
		outcomes[r.Key] = r.Outcome
	}
	keys := slices.Collect(maps.Keys(outcomes))
	t := touch(keys)
	err = retryRefused(ctx, func() error {
		disabled = nil
		return inTx(ctx, s.pool, func(dbtx pgx.Tx) error {
			endpoints, err := endpointsOf(ctx, dbtx, lockedEndpoints, t.endpoints)
			if err != nil {
				return err
			}
			f := &noticeFold{policy: s.policy, endpoints: map[notice.EndpointID]notice.Endpoint{}}
			for _, e := range endpoints {
				f.endpoints[e.ID] = e
			}
			if err := f.load(ctx, dbtx, holder, keys, outcomes); err != nil {
				return err
			}
			q := &pgx.Batch{}
			f.write(q)
			for _, before := range endpoints {
				after := f.endpoints[before.ID]
				queueEndpoint(q, after)
				if before.Disabled == notice.Enabled && after.Disabled != notice.Enabled {
					disabled = append(disabled, after)
				}
			}
			s.settle(q, t)
			return dbtx.SendBatch(ctx, q).Close()
		})
	})
	return disabled, err
}

// queueEndpoint queues an update of an endpoint.
func queueEndpoint(q *pgx.Batch, e notice.Endpoint) {
	q.Queue(updateEndpoint, uuidOf(e.ID), e.Failures, optionalTime(e.FailingSince), optionalTime(e.PausedUntil), string(e.Disabled), optionalTime(e.DisabledAt),
		e.Attempts, e.Delivered, optionalTime(e.LastAt), string(e.Last.Class), string(e.Last.Cause), storedCount(e.Last.Status))
}

// noticeFold is the changes to notices and endpoints that reports cause.
type noticeFold struct {
	policy    notice.Policy
	endpoints map[notice.EndpointID]notice.Endpoint
	notices   []notice.Notice
}

// load reads the notices that the holder still holds, and decides their next state.
func (f *noticeFold) load(ctx context.Context, dbtx pgx.Tx, holder string, keys []notice.Key, outcomes map[notice.Key]notice.Outcome) error {
	endpoints, intents, seqs := keyColumns(keys)
	rows, err := dbtx.Query(ctx, heldNotices, holder, endpoints, intents, seqs)
	if err != nil {
		return err
	}
	var now time.Time
	held, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (notice.Notice, error) { return scanNotice(row, &now) })
	for _, n := range held {
		n, f.endpoints[n.Endpoint] = f.policy.After(n, f.endpoints[n.Endpoint], outcomes[n.Key], now.UTC())
		f.notices = append(f.notices, n)
	}
	return err
}

func keyColumns(keys []notice.Key) (endpoints, intents []pgtype.UUID, seqs []int64) {
	for _, k := range keys {
		endpoints, intents, seqs = append(endpoints, uuidOf(k.Endpoint)), append(intents, uuidOf(k.Intent)), append(seqs, clamp(k.Seq))
	}
	return endpoints, intents, seqs
}

func (f *noticeFold) write(q *pgx.Batch) {
	var keys []notice.Key
	var stages, classes, causes []string
	var attempts, statuses []int32
	var next, last []time.Time
	for _, n := range f.notices {
		keys, stages, attempts = append(keys, n.Key), append(stages, string(n.Stage)), append(attempts, storedCount(n.Attempts))
		next, last = append(next, storedTime(n.NextAt)), append(last, n.LastAt)
		classes, causes = append(classes, string(n.Last.Class)), append(causes, string(n.Last.Cause))
		statuses = append(statuses, storedCount(n.Last.Status))
	}
	endpoints, intents, seqs := keyColumns(keys)
	q.Queue(updateNotices, endpoints, intents, seqs, stages, attempts, next, classes, causes, statuses, last)
}
