package embedded

import (
	"context"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// CarryOut applies commands on endpoints in their order, then adds news as Enqueue does, and
// moves the reader's checkpoint, in one transaction. It returns eventlog.ErrMoved if the checkpoint
// is not at from. Sweep applies the effect on all of an endpoint's notices. Nothing is
// redelivered to a disabled endpoint. Commands for an unknown endpoint, and the record that an
// endpoint was disabled automatically, do nothing.
func (s *Notices) CarryOut(ctx context.Context, reader string, from, to eventlog.Position, wishes []notice.Event, news []notice.News) error {
	return s.do(ctx, "carry out commands about endpoints", func(c *noticeChange) error {
		if err := moveCheckpoint(c.conn, reader, from, to); err != nil {
			return err
		}
		for _, n := range news { // an endpoint may exist by its news alone
			if err := c.know(n); err != nil {
				return err
			}
		}
		for _, w := range wishes {
			if err := c.carryOut(w); err != nil {
				return err
			}
		}
		for _, n := range news {
			if err := c.insert(n); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *noticeChange) carryOut(wish notice.Event) error {
	e, ok, err := endpointOf(c.conn, notice.About(wish))
	if err != nil || !ok {
		return err
	}
	switch w := wish.(type) {
	case notice.WasDisabled:
		if w.Reason == notice.Operator {
			return c.change(e.Disable(w.Reason, c.now))
		}
	case notice.WasEnabled:
		return c.change(e.Enable())
	case notice.RedeliveryAsked:
		if e.Disabled == notice.Enabled {
			return c.redeliver(w)
		}
	}
	return nil
}

func (c *noticeChange) change(e notice.Endpoint) error {
	c.touch(notice.Key{Endpoint: e.ID})
	return c.put(e)
}

// redeliver queues delivered or given-up notices again, with all their attempts. A notice that
// is sent again delays the later ones of its intent.
func (c *noticeChange) redeliver(w notice.RedeliveryAsked) error {
	keys := w.Keys()
	if len(keys) == 0 {
		return exec(c.conn, "UPDATE notice_endpoints SET sweep = 'redeliver', sweep_intent = zeroblob(16), sweep_seq = 0 WHERE endpoint = ?", w.Endpoint[:])
	}
	for _, k := range keys {
		if err := c.requeue(k, "<> 'queued'"); err != nil {
			return err
		}
	}
	return nil
}

func (c *noticeChange) requeue(k notice.Key, stage string) error {
	c.touch(k)
	return exec(c.conn, `UPDATE notices SET stage = 'queued', attempts = 0, next_at = ?, settled_at = NULL
		WHERE endpoint = ? AND intent = ? AND seq = ? AND stage `+stage, micros(c.now), k.Endpoint[:], k.Intent[:], int64(k.Seq))
}

// giveUp ends a queued notice of a disabled endpoint.
func (c *noticeChange) giveUp(k notice.Key) error {
	c.touch(k)
	return exec(c.conn, `UPDATE notices SET stage = 'dead', head = 0, holder = NULL, lease_until = NULL, cause = 'disabled', settled_at = ?
		WHERE endpoint = ? AND intent = ? AND seq = ? AND stage = 'queued'`, micros(c.now), k.Endpoint[:], k.Intent[:], int64(k.Seq))
}

// Sweep does the next part of a pending change to all notices of an endpoint: at most most
// notices. Clients take turns, beginning after turn, and each client's endpoints do too. It
// returns the client whose turn it was; found is false if nothing is pending.
func (s *Notices) Sweep(ctx context.Context, turn string, most int) (client string, found bool, err error) {
	// This check keeps the writer free for others if nothing is pending.
	err = s.work.file.readers.read(ctx, func(conn *sqlite.Conn) (err error) {
		_, client, found, err = nextSweep(conn, turn)
		return err
	})
	if err != nil || !found {
		return "", false, err
	}
	turnOf, err := doFor(ctx, s, "sweep notices", func(c *noticeChange) (of sweepTurn, err error) {
		var w sweep
		if w, of.client, of.found, err = nextSweep(c.conn, turn); err != nil || !of.found {
			return of, err
		}
		return of, c.sweep(w, most)
	})
	return turnOf.client, turnOf.found, err
}

// sweepTurn is the client whose turn a part of a sweep was.
type sweepTurn struct {
	client string
	found  bool
}

// sweep is a pending change to all notices of an endpoint, and its progress.
type sweep struct {
	kind notice.Sweep
	at   notice.Key
}

func nextSweep(conn *sqlite.Conn, turn string) (w sweep, client string, found bool, err error) {
	err = query(conn, `SELECT endpoint, client, sweep, sweep_intent, sweep_seq FROM notice_endpoints WHERE sweep <> ''
		ORDER BY client <= ?, client, swept_at LIMIT 1`, func(row *sqlite.Stmt) bool {
		row.ColumnBytes(0, w.at.Endpoint[:])
		client, w.kind, found = row.ColumnText(1), notice.Sweep(row.ColumnText(2)), true
		row.ColumnBytes(3, w.at.Intent[:])
		w.at.Seq = uint64(row.ColumnInt64(4))
		return false
	}, turn)
	return w, client, found, err
}

func (c *noticeChange) sweep(w sweep, most int) error {
	// Given-up notices are no longer queued, so the next part finds the rest of the same
	// intent.
	where, args := "INDEXED BY notices_queued WHERE endpoint = ? AND stage = 'queued' AND intent >= ? ORDER BY intent, head, seq LIMIT ?",
		[]any{w.at.Endpoint[:], w.at.Intent[:], int64(most)}
	do := c.giveUp
	if w.kind == notice.Requeuing {
		where = "INDEXED BY notices_dead WHERE endpoint = ? AND stage = 'dead' AND (intent, seq) > (?, ?) ORDER BY intent, seq LIMIT ?"
		args = []any{w.at.Endpoint[:], w.at.Intent[:], int64(w.at.Seq), int64(most)}
		do = func(k notice.Key) error { return c.requeue(k, "= 'dead'") }
	}
	var keys []notice.Key
	err := query(c.conn, "SELECT intent, seq FROM notices "+where, func(row *sqlite.Stmt) bool {
		k := notice.Key{Endpoint: w.at.Endpoint, Seq: uint64(row.ColumnInt64(1))}
		row.ColumnBytes(0, k.Intent[:])
		keys = append(keys, k)
		return true
	}, args...)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if err := do(k); err != nil {
			return err
		}
		if k.Compare(w.at) > 0 {
			w.at = k
		}
	}
	if len(keys) < most {
		w.kind, w.at = notice.NoSweep, notice.Key{Endpoint: w.at.Endpoint}
	}
	err = exec(c.conn, "UPDATE notice_endpoints SET sweep = ?2, sweep_intent = ?3, sweep_seq = ?4, swept_at = ?5 WHERE endpoint = ?1",
		w.at.Endpoint[:], string(w.kind), w.at.Intent[:], int64(w.at.Seq), micros(c.now))
	if err != nil {
		return err
	}
	return c.moveDue(w.at.Endpoint)
}

// Count counts an endpoint's queued or dead notices, up to most.
func (s *Notices) Count(ctx context.Context, endpoint notice.EndpointID, stage notice.Stage, most int) (n int, err error) {
	index := map[notice.Stage]string{notice.Queued: "notices_queued", notice.Dead: "notices_dead"}[stage]
	err = s.work.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		return query(conn, "SELECT count(*) FROM (SELECT 1 FROM notices INDEXED BY "+index+" WHERE endpoint = ? AND stage = '"+string(stage)+"' LIMIT ?)", func(row *sqlite.Stmt) bool {
			n = row.ColumnInt(0)
			return false
		}, endpoint[:], int64(most))
	})
	return n, err
}
