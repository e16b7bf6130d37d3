package embedded

import (
	"context"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Notices is the queue of webhook deliveries (notices) to endpoints. A power cut may lose the
// last changes: the notices sent meanwhile are sent again.
type Notices struct {
	work   *Work
	policy notice.Policy
}

// Notices is the queue of notices in this directory, under a policy.
func (d *DB) Notices(p notice.Policy) *Notices { return &Notices{d.work, p} }

// now is the store's time with the stored precision.
func (s *Notices) now() time.Time { return s.work.now().UTC().Truncate(time.Microsecond) }

// Enqueue adds news and moves the reader's checkpoint, in one transaction. It returns
// eventlog.ErrMoved if the checkpoint is not at from. An intent's news come in order. Existing
// notices stay unchanged. News to a disabled endpoint are dead.
func (s *Notices) Enqueue(ctx context.Context, reader string, from, to eventlog.Position, news []notice.News) error {
	return s.do(ctx, "enqueue notices", func(c *noticeChange) error {
		if err := moveCheckpoint(c.conn, reader, from, to); err != nil {
			return err
		}
		for _, n := range news {
			if err := c.know(n); err != nil {
				return err
			}
			if err := c.insert(n); err != nil {
				return err
			}
		}
		return nil
	})
}

// noticeChange is the state of one change of notices.
type noticeChange struct {
	conn    *sqlite.Conn
	policy  notice.Policy
	now     time.Time
	touched map[notice.Key]bool // keys without a sequence, one per endpoint and intent
}

// do makes a change, and then updates heads and due times.
func (s *Notices) do(ctx context.Context, what string, change func(*noticeChange) error) error {
	_, err := doFor(ctx, s, what, func(c *noticeChange) (struct{}, error) { return struct{}{}, change(c) })
	return err
}

// doFor is do for a change with a result. The result is returned and not set from within: a
// change may run twice, and goes on when ctx has ended.
func doFor[T any](ctx context.Context, s *Notices, what string, change func(*noticeChange) (T, error)) (T, error) {
	return write(ctx, s.work.file, what, func(conn *sqlite.Conn) (T, error) {
		c := &noticeChange{conn: conn, policy: s.policy, now: s.now(), touched: map[notice.Key]bool{}}
		result, err := change(c)
		if err != nil {
			return result, err
		}
		return result, c.settle()
	})
}

func (c *noticeChange) touch(k notice.Key) {
	k.Seq = 0
	c.touched[k] = true
}

// settle marks each intent's first queued notice, and sets when endpoints are due.
func (c *noticeChange) settle() error {
	endpoints := map[notice.EndpointID]bool{}
	for k := range c.touched {
		endpoints[k.Endpoint] = true
		if err := c.moveHead(k); err != nil {
			return err
		}
	}
	for id := range endpoints {
		if err := c.moveDue(id); err != nil {
			return err
		}
	}
	return nil
}

// moveHead makes an intent's first queued notice its head.
func (c *noticeChange) moveHead(k notice.Key) error {
	var head, rest int64 // the lowest sequence of each; 0 means none
	for _, q := range []struct {
		head int64
		into *int64
	}{{1, &head}, {0, &rest}} {
		err := query(c.conn, "SELECT seq FROM notices WHERE endpoint = ? AND intent = ? AND stage = 'queued' AND head = ? ORDER BY seq LIMIT 1",
			func(row *sqlite.Stmt) bool {
				*q.into = row.ColumnInt64(0)
				return false
			}, k.Endpoint[:], k.Intent[:], q.head)
		if err != nil {
			return err
		}
	}
	if rest == 0 || head != 0 && head < rest {
		return nil
	}
	return exec(c.conn, "UPDATE notices SET head = 1 - head WHERE endpoint = ? AND intent = ? AND seq IN (?, ?)",
		k.Endpoint[:], k.Intent[:], head, rest)
}

// moveDue sets when an endpoint is due. An endpoint with as many running attempts as allowed is
// due when a lease lapses; Done computes it again. An endpoint that becomes due goes behind
// those due before.
func (c *noticeChange) moveDue(id notice.EndpointID) error {
	return exec(c.conn, `UPDATE notice_endpoints AS e SET due_at = CASE WHEN e.disabled = '' THEN
			CASE WHEN x.due IS NOT NULL THEN max(x.due, coalesce(e.paused_until, ?2), ?2) END END, told_at = ?2
		FROM (
			SELECT CASE WHEN l.n >= CASE WHEN h.failures > 0 THEN 1 ELSE ?3 END OR f.next_at IS NULL THEN l.lapse
				ELSE min(f.next_at, coalesce(l.lapse, f.next_at)) END AS due
			FROM notice_endpoints h,
				(SELECT count(*) AS n, min(lease_until) AS lapse FROM notices WHERE endpoint = ?1 AND holder IS NOT NULL) l,
				(SELECT min(next_at) AS next_at FROM notices WHERE endpoint = ?1 AND head = 1 AND holder IS NULL) f
			WHERE h.endpoint = ?1
		) x WHERE e.endpoint = ?1`, id[:], micros(c.now), int64(c.policy.Concurrency))
}

// know records the endpoint of news, and its use.
func (c *noticeChange) know(n notice.News) error {
	err := exec(c.conn, `INSERT INTO notice_endpoints (endpoint, url, client) VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET client = excluded.client WHERE client <> excluded.client`, n.Endpoint[:], n.URL, n.Client)
	if err != nil || n.Seq != 0 {
		return err
	}
	return exec(c.conn, "UPDATE notice_endpoints SET asked_at = ?2 WHERE endpoint = ?1 AND (asked_at IS NULL OR asked_at < ?3)",
		n.Endpoint[:], micros(c.now), micros(c.now.Add(-askedEvery)))
}

func (c *noticeChange) insert(n notice.News) error {
	if n.Seq == 0 {
		return nil
	}
	c.touch(n.Key)
	body := n.Body
	if body == nil {
		body = []byte{}
	}
	return exec(c.conn, `INSERT INTO notices (endpoint, intent, seq, body, stage, head, attempts, next_at, class, cause, status, settled_at)
		SELECT ?1, ?2, ?3, ?4, CASE disabled WHEN '' THEN 'queued' ELSE 'dead' END, 0, 0, ?5, '', CASE disabled WHEN '' THEN '' ELSE 'disabled' END, 0,
			CASE WHEN disabled <> '' THEN ?5 END
		FROM notice_endpoints WHERE endpoint = ?1 ON CONFLICT DO NOTHING`,
		n.Endpoint[:], n.Intent[:], int64(n.Seq), body, micros(c.now))
}

const noticeColumns = `endpoint, intent, seq, body, stage, attempts, next_at, class, cause, status, last_at, lease_until`

// scanNotice reads noticeColumns.
func scanNotice(row *sqlite.Stmt, now time.Time) notice.Notice {
	n := notice.Notice{
		Body: columnBytes(row, 3), Stage: notice.Stage(row.ColumnText(4)), Attempts: row.ColumnInt(5), NextAt: timeAt(row, 6),
		Last:   notice.Outcome{Class: notice.Class(row.ColumnText(7)), Cause: notice.Cause(row.ColumnText(8)), Status: row.ColumnInt(9)},
		LastAt: timeAt(row, 10),
	}
	row.ColumnBytes(0, n.Endpoint[:])
	row.ColumnBytes(1, n.Intent[:])
	n.Seq = uint64(row.ColumnInt64(2))
	if timeAt(row, 11).After(now) {
		n.Stage = notice.Delivering
	}
	return n
}

func notices(conn *sqlite.Conn, now time.Time, where string, args ...any) (found []notice.Notice, err error) {
	err = query(conn, "SELECT "+noticeColumns+" FROM notices WHERE "+where, func(row *sqlite.Stmt) bool {
		found = append(found, scanNotice(row, now))
		return true
	}, args...)
	return found, err
}

// askedEvery is the precision with which use of an endpoint is recorded: a write per intent
// would cost too much.
const askedEvery = notice.UseFor / 60

// InUse lists up to most of a client's endpoints in use.
func (s *Notices) InUse(ctx context.Context, client string, most int) (used []notice.EndpointID, err error) {
	err = s.work.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		return query(conn, `SELECT endpoint FROM notice_endpoints INDEXED BY notice_endpoints_turns WHERE client = ?1 AND due_at IS NOT NULL AND disabled = ''
			UNION SELECT endpoint FROM notice_endpoints INDEXED BY notice_endpoints_asked WHERE client = ?1 AND asked_at > ?2 AND disabled = '' LIMIT ?3`, func(row *sqlite.Stmt) bool {
			var id notice.EndpointID
			row.ColumnBytes(0, id[:])
			used = append(used, id)
			return true
		}, client, micros(s.now().Add(-notice.UseFor)), int64(most))
	})
	return used, err
}

// Queued counts a client's queued notices, up to most. Those of disabled endpoints, which Sweep gives
// up, do not count.
func (s *Notices) Queued(ctx context.Context, client string, most int) (n int, err error) {
	err = s.work.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		return query(conn, `SELECT count(*) FROM (
			SELECT 1 FROM notice_endpoints e INDEXED BY notice_endpoints_turns
			CROSS JOIN notices n INDEXED BY notices_queued ON n.endpoint = e.endpoint AND n.stage = 'queued'
			WHERE e.client = ?1 AND e.due_at IS NOT NULL AND e.disabled = '' LIMIT ?2
		)`, func(row *sqlite.Stmt) bool {
			n = row.ColumnInt(0)
			return false
		}, client, int64(most))
	})
	return n, err
}

// Find returns a notice; ok is false if there is none.
func (s *Notices) Find(ctx context.Context, k notice.Key) (n notice.Notice, ok bool, err error) {
	err = s.work.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		found, err := notices(conn, s.work.now(), "endpoint = ? AND intent = ? AND seq = ?", k.Endpoint[:], k.Intent[:], int64(k.Seq))
		if ok = len(found) == 1; ok {
			n = found[0]
		}
		return err
	})
	return n, ok, err
}

// Dead lists an endpoint's dead notices after a key, ordered by intent and sequence.
func (s *Notices) Dead(ctx context.Context, endpoint notice.EndpointID, after notice.Key, limit int) (dead []notice.Notice, err error) {
	err = s.work.file.readers.read(ctx, func(conn *sqlite.Conn) (err error) {
		dead, err = notices(conn, s.work.now(), "endpoint = ? AND stage = 'dead' AND (intent, seq) > (?, ?) ORDER BY intent, seq LIMIT ?",
			endpoint[:], after.Intent[:], int64(after.Seq), int64(limit))
		return err
	})
	return dead, err
}

// Endpoint returns an endpoint's state; ok is false if it never had a notice.
func (s *Notices) Endpoint(ctx context.Context, id notice.EndpointID) (e notice.Endpoint, ok bool, err error) {
	err = s.work.file.readers.read(ctx, func(conn *sqlite.Conn) (err error) {
		e, ok, err = endpointOf(conn, id)
		return err
	})
	return e, ok, err
}

// Endpoints lists a client's endpoints after an id, ordered by id; with nil those of all clients.
func (s *Notices) Endpoints(ctx context.Context, client *string, after notice.EndpointID, limit int) (found []notice.Endpoint, err error) {
	err = s.work.file.readers.read(ctx, func(conn *sqlite.Conn) (err error) {
		if client == nil {
			found, err = endpoints(conn, "endpoint > ? ORDER BY endpoint LIMIT ?", after[:], int64(limit))
			return err
		}
		found, err = endpoints(conn, "client = ? AND endpoint > ? ORDER BY endpoint LIMIT ?", *client, after[:], int64(limit))
		return err
	})
	return found, err
}

func endpointOf(conn *sqlite.Conn, id notice.EndpointID) (e notice.Endpoint, ok bool, err error) {
	found, err := endpoints(conn, "endpoint = ?", id[:])
	if ok = len(found) == 1; ok {
		e = found[0]
	}
	return e, ok, err
}

func endpoints(conn *sqlite.Conn, where string, args ...any) (found []notice.Endpoint, err error) {
	err = query(conn, "SELECT endpoint, url, failures, failing_since, paused_until, disabled, disabled_at, client, attempts, delivered, last_at, last_class, last_cause, last_status FROM notice_endpoints WHERE "+where, func(row *sqlite.Stmt) bool {
		e := notice.Endpoint{
			URL: row.ColumnText(1), Failures: row.ColumnInt(2), FailingSince: timeAt(row, 3), PausedUntil: timeAt(row, 4),
			Disabled: notice.Reason(row.ColumnText(5)), DisabledAt: timeAt(row, 6), Client: row.ColumnText(7),
			Attempts: row.ColumnInt(8), Delivered: row.ColumnInt(9), LastAt: timeAt(row, 10),
			Last: notice.Outcome{Class: notice.Class(row.ColumnText(11)), Cause: notice.Cause(row.ColumnText(12)), Status: row.ColumnInt(13)},
		}
		row.ColumnBytes(0, e.ID[:])
		found = append(found, e)
		return true
	}, args...)
	return found, err
}

// Forget removes at most limit notices that were delivered or given up before a time.
func (s *Notices) Forget(ctx context.Context, before time.Time, limit int) (int, error) {
	return write(ctx, s.work.file, "forget notices", func(conn *sqlite.Conn) (int, error) {
		err := exec(conn, `DELETE FROM notices WHERE rowid IN (
			SELECT rowid FROM notices WHERE settled_at < ? ORDER BY settled_at LIMIT ?)`, micros(before), int64(limit))
		return conn.Changes(), err
	})
}
