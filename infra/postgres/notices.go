package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Notices is the queue of webhook deliveries (notices) to endpoints. A crash of the server may
// lose the last changes: the notices sent meanwhile are sent again.
//
// A change to an endpoint's notices holds the lock of the endpoint's row. Several endpoints are
// locked in the order of their ids. Lease never waits: it skips locked endpoints.
type Notices struct {
	pool   *pgxpool.Pool
	policy notice.Policy
}

// Notices is the queue of notices in this database, under a policy.
func (db *DB) Notices(p notice.Policy) *Notices {
	return &Notices{db.notices, p}
}

const (
	insertEndpoints = `INSERT INTO work.notice_endpoints AS e (endpoint, url, client)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[])
ON CONFLICT (endpoint) DO UPDATE SET client = excluded.client WHERE e.client <> excluded.client`

	askedEndpoints = `UPDATE work.notice_endpoints SET asked_at = clock_timestamp()
WHERE endpoint = ANY ($1::uuid[]) AND (asked_at IS NULL OR asked_at < clock_timestamp() - $2::interval)`

	endpointsInUse = `SELECT endpoint FROM work.notice_endpoints WHERE client = $1 AND due_at IS NOT NULL AND disabled = ''
UNION SELECT endpoint FROM work.notice_endpoints WHERE client = $1 AND asked_at > clock_timestamp() - $2::interval AND disabled = '' LIMIT $3`

	// An endpoint with queued notices is due at some time.
	queuedOfClient = `SELECT count(*) FROM (
  SELECT FROM work.notice_endpoints e CROSS JOIN LATERAL (
    SELECT FROM work.notices WHERE endpoint = e.endpoint AND stage = 'queued' ORDER BY intent, head, seq LIMIT $2
  ) q WHERE e.client = $1 AND e.due_at IS NOT NULL AND e.disabled = '' LIMIT $2
) n`

	lockEndpoints = `SELECT FROM work.notice_endpoints WHERE endpoint = ANY ($1::uuid[]) ORDER BY endpoint FOR UPDATE`

	insertNotices = `
INSERT INTO work.notices (endpoint, intent, seq, body, stage, head, attempts, next_at, class, cause, status, settled_at)
SELECT u.endpoint, u.intent, u.seq, u.body, CASE e.disabled WHEN '' THEN 'queued' ELSE 'dead' END, false, 0, clock_timestamp(),
  '', CASE e.disabled WHEN '' THEN '' ELSE 'disabled' END, 0, CASE WHEN e.disabled <> '' THEN clock_timestamp() END
FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bytea[]) u (endpoint, intent, seq, body)
JOIN work.notice_endpoints e USING (endpoint) ON CONFLICT DO NOTHING`

	// An intent's first queued notice is its head. The statement looks up two rows per intent,
	// independent of the planner's statistics: the head, and the first of the rest.
	moveHeads = `
UPDATE work.notices n SET head = NOT n.head WHERE n.ctid = ANY (ARRAY(
  SELECT t.tid FROM unnest($1::uuid[], $2::uuid[]) u (endpoint, intent) LEFT JOIN LATERAL (
    SELECT ctid, seq FROM work.notices WHERE endpoint = u.endpoint AND intent = u.intent AND stage = 'queued' AND head ORDER BY seq LIMIT 1
  ) h ON true CROSS JOIN LATERAL (
    SELECT ctid, seq FROM work.notices WHERE endpoint = u.endpoint AND intent = u.intent AND stage = 'queued' AND NOT head ORDER BY seq LIMIT 1
  ) f CROSS JOIN LATERAL (VALUES (h.ctid), (f.ctid)) t (tid)
  WHERE h.seq IS NULL OR f.seq < h.seq
))`

	// An endpoint with as many running attempts as allowed is due when a lease lapses; Done
	// computes it again. An endpoint that becomes due goes behind those due before.
	moveDue = `
UPDATE work.notice_endpoints e SET
  due_at = CASE WHEN e.disabled = '' AND x.due IS NOT NULL THEN greatest(x.due, e.paused_until, clock_timestamp()) END,
  told_at = clock_timestamp()
FROM (
  SELECT h.endpoint, CASE WHEN l.n >= CASE WHEN h.failures > 0 THEN 1 ELSE $2 END THEN l.lapse ELSE least(f.next_at, l.lapse) END AS due
  FROM work.notice_endpoints h CROSS JOIN LATERAL (
    SELECT count(*) AS n, min(leased_until) AS lapse FROM work.notices WHERE endpoint = h.endpoint AND holder IS NOT NULL
  ) l LEFT JOIN LATERAL (
    SELECT next_at FROM work.notices WHERE endpoint = h.endpoint AND head AND holder IS NULL ORDER BY next_at LIMIT 1
  ) f ON true
  WHERE h.endpoint = ANY ($1::uuid[])
) x WHERE e.endpoint = x.endpoint`
)

// askedEvery is the precision with which use of an endpoint is recorded: a write per intent
// would cost too much.
const askedEvery = notice.UseFor / 60

func uuidOf(id [16]byte) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

// touched are the endpoints, in order, and their intents that a change concerns.
type touched struct {
	endpoints []pgtype.UUID
	at, of    []pgtype.UUID // endpoint and intent of each pair
}

func touch(keys []notice.Key) (t touched) {
	keys = slices.SortedFunc(slices.Values(keys), func(a, b notice.Key) int {
		return cmp.Or(slices.Compare(a.Endpoint[:], b.Endpoint[:]), slices.Compare(a.Intent[:], b.Intent[:]))
	})
	for i, k := range keys {
		first := i == 0 || keys[i-1].Endpoint != k.Endpoint
		if first {
			t.endpoints = append(t.endpoints, uuidOf(k.Endpoint))
		}
		if first || keys[i-1].Intent != k.Intent {
			t.at, t.of = append(t.at, uuidOf(k.Endpoint)), append(t.of, uuidOf(k.Intent))
		}
	}
	return t
}

// settle queues the updates that follow any change of notices.
func (s *Notices) settle(q *pgx.Batch, t touched) {
	q.Queue(moveHeads, t.at, t.of)
	q.Queue(moveDue, t.endpoints, s.policy.Concurrency)
}

// Enqueue adds news and moves the reader's checkpoint, in one database transaction. It returns
// eventlog.ErrMoved if the checkpoint is not at from. An intent's news come in order. Existing
// notices stay unchanged. News to a disabled endpoint are dead.
func (s *Notices) Enqueue(ctx context.Context, reader string, from, to eventlog.Position, news []notice.News) error {
	in := newsIn(news)
	return retryRefused(ctx, func() error {
		return inTx(ctx, s.pool, func(dbtx pgx.Tx) error {
			if err := moveCheckpoint(ctx, dbtx, reader, from, to); err != nil || len(news) == 0 {
				return err
			}
			q := &pgx.Batch{}
			q.Queue(lockEndpoints, in.endpoints)
			in.know(q)
			in.insert(q)
			s.settle(q, touch(in.all))
			return dbtx.SendBatch(ctx, q).Close()
		})
	})
}

// newsColumns is news in the columns of the statements that store it.
type newsColumns struct {
	all []notice.Key // also of news without a sequence

	endpoints     []pgtype.UUID // in order
	urls, clients []string      // of the endpoints
	asked         []pgtype.UUID // endpoints of news without a sequence

	at, intents []pgtype.UUID
	seqs        []int64
	bodies      [][]byte
}

func newsIn(news []notice.News) (c newsColumns) {
	named := map[notice.EndpointID]notice.News{}
	var keys []notice.Key
	for _, n := range news {
		named[n.Endpoint], c.all = n, append(c.all, n.Key)
		if n.Seq == 0 {
			c.asked = append(c.asked, uuidOf(n.Endpoint))
			continue
		}
		keys, c.bodies = append(keys, n.Key), append(c.bodies, notNull(n.Body))
	}
	c.at, c.intents, c.seqs = keyColumns(keys)
	c.endpoints = touch(c.all).endpoints
	for _, id := range c.endpoints {
		c.urls, c.clients = append(c.urls, named[id.Bytes].URL), append(c.clients, named[id.Bytes].Client)
	}
	return c
}

// know queues the statements that record the endpoints and their use. The endpoints that exist
// are locked before.
func (c newsColumns) know(q *pgx.Batch) {
	if len(c.all) == 0 {
		return
	}
	q.Queue(insertEndpoints, c.endpoints, c.urls, c.clients)
	q.Queue(askedEndpoints, c.asked, askedEvery)
}

func (c newsColumns) insert(q *pgx.Batch) {
	if len(c.at) > 0 {
		q.Queue(insertNotices, c.at, c.intents, c.seqs, c.bodies)
	}
}

const (
	noticeColumns = `n.endpoint, n.intent, n.seq, n.body,
CASE WHEN n.leased_until > clock_timestamp() THEN 'delivering' ELSE n.stage END, n.attempts, n.next_at, n.class, n.cause, n.status, n.last_at`

	endpointColumns = `endpoint, url, failures, failing_since, paused_until, disabled, disabled_at, client,
attempts, delivered, last_at, last_class, last_cause, last_status`
)

// scanNotice reads noticeColumns, and the columns after them into more.
func scanNotice(row pgx.Row, more ...any) (n notice.Notice, err error) {
	var endpoint, intent pgtype.UUID
	var seq int64
	var last pgtype.Timestamptz
	err = row.Scan(append([]any{&endpoint, &intent, &seq, &n.Body, &n.Stage, &n.Attempts, &n.NextAt,
		&n.Last.Class, &n.Last.Cause, &n.Last.Status, &last}, more...)...)
	n.Key = notice.Key{Endpoint: endpoint.Bytes, Intent: chain.IntentID(intent.Bytes), Seq: uint64(seq)}
	n.NextAt, n.LastAt = n.NextAt.UTC(), timeOf(last)
	return n, err
}

// scanEndpoint reads endpointColumns, and the columns after them into more.
func scanEndpoint(row pgx.CollectableRow, more ...any) (e notice.Endpoint, err error) {
	var id pgtype.UUID
	var since, paused, disabled, last pgtype.Timestamptz
	err = row.Scan(append([]any{&id, &e.URL, &e.Failures, &since, &paused, &e.Disabled, &disabled, &e.Client,
		&e.Attempts, &e.Delivered, &last, &e.Last.Class, &e.Last.Cause, &e.Last.Status}, more...)...)
	e.ID, e.FailingSince, e.PausedUntil, e.DisabledAt, e.LastAt = id.Bytes, timeOf(since), timeOf(paused), timeOf(disabled), timeOf(last)
	return e, err
}

// InUse lists up to most of a client's endpoints in use.
func (s *Notices) InUse(ctx context.Context, client string, most int) (used []notice.EndpointID, err error) {
	err = retry(ctx, func() error {
		rows, err := s.pool.Query(ctx, endpointsInUse, client, notice.UseFor, most)
		if err != nil {
			return err
		}
		used, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (notice.EndpointID, error) {
			var id pgtype.UUID
			err := row.Scan(&id)
			return id.Bytes, err
		})
		return err
	})
	return used, err
}

// Queued counts a client's queued notices, up to most. Those of disabled endpoints, which Sweep gives
// up, do not count.
func (s *Notices) Queued(ctx context.Context, client string, most int) (n int, err error) {
	err = retry(ctx, func() error {
		return s.pool.QueryRow(ctx, queuedOfClient, client, most).Scan(&n)
	})
	return n, err
}

// Find returns a notice; ok is false if there is none.
func (s *Notices) Find(ctx context.Context, k notice.Key) (n notice.Notice, ok bool, err error) {
	err = retry(ctx, func() error {
		n, err = scanNotice(s.pool.QueryRow(ctx, `SELECT `+noticeColumns+` FROM work.notices n WHERE endpoint = $1 AND intent = $2 AND seq = $3`,
			uuidOf(k.Endpoint), uuidOf(k.Intent), clamp(k.Seq)))
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return notice.Notice{}, false, nil
	}
	return n, err == nil, err
}

// Dead lists an endpoint's dead notices after a key, ordered by intent and sequence.
func (s *Notices) Dead(ctx context.Context, endpoint notice.EndpointID, after notice.Key, limit int) (dead []notice.Notice, err error) {
	err = retry(ctx, func() error {
		rows, err := s.pool.Query(ctx, `SELECT `+noticeColumns+` FROM work.notices n
			WHERE endpoint = $1 AND stage = 'dead' AND (intent, seq) > ($2, $3) ORDER BY intent, seq LIMIT $4`,
			uuidOf(endpoint), uuidOf(after.Intent), clamp(after.Seq), limit)
		if err != nil {
			return err
		}
		dead, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (notice.Notice, error) { return scanNotice(row) })
		return err
	})
	return dead, err
}

// Endpoint returns an endpoint's state; ok is false if it never had a notice.
func (s *Notices) Endpoint(ctx context.Context, id notice.EndpointID) (e notice.Endpoint, ok bool, err error) {
	err = retry(ctx, func() error {
		found, err := endpointsOf(ctx, s.pool, `SELECT `+endpointColumns+` FROM work.notice_endpoints WHERE endpoint = $1`, uuidOf(id))
		if ok = len(found) == 1; ok {
			e = found[0]
		}
		return err
	})
	return e, ok, err
}

// Endpoints lists a client's endpoints after an id, ordered by id; with nil those of all clients.
func (s *Notices) Endpoints(ctx context.Context, client *string, after notice.EndpointID, limit int) (found []notice.Endpoint, err error) {
	which, args := `endpoint > $1`, []any{uuidOf(after), limit}
	if client != nil {
		which, args = which+` AND client = $3`, append(args, *client)
	}
	err = retry(ctx, func() error {
		found, err = endpointsOf(ctx, s.pool, `SELECT `+endpointColumns+` FROM work.notice_endpoints WHERE `+which+` ORDER BY endpoint LIMIT $2`, args...)
		return err
	})
	return found, err
}

// querier is a pool or a database transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func endpointsOf(ctx context.Context, db querier, sql string, args ...any) ([]notice.Endpoint, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (notice.Endpoint, error) { return scanEndpoint(row) })
}

const forgetNotices = `DELETE FROM work.notices WHERE settled_at < $1 AND ctid = ANY (ARRAY(
  SELECT ctid FROM work.notices WHERE settled_at < $1 ORDER BY settled_at LIMIT $2))`

// Forget removes at most limit notices that were delivered or given up before a time.
func (s *Notices) Forget(ctx context.Context, before time.Time, limit int) (int, error) {
	removed := 0
	err := retry(ctx, func() error {
		tag, err := s.pool.Exec(ctx, forgetNotices, storedTime(before), limit)
		removed = int(tag.RowsAffected())
		return err
	})
	return removed, err
}
