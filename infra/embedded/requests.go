package embedded

import (
	"context"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/request"
)

// Requests stores idempotency keys: requests that clients may repeat, and their answers.
type Requests struct{ work *Work }

// found is the stored state of a request.
type found struct {
	stage  request.Stage
	answer request.Answer
}

// Claim claims a request. The answer is set if the stage is request.Answered.
func (r Requests) Claim(ctx context.Context, c request.Claim) (request.Stage, request.Answer, error) {
	f, err := write(ctx, r.work.file, "claim request", func(conn *sqlite.Conn) (found, error) {
		now := r.work.now()
		f, err := findRequest(conn, c, micros(now))
		if err != nil || f.stage != request.Claimed {
			return f, err
		}
		return f, exec(conn, `INSERT OR REPLACE INTO requests (name, print, claim, held_until, expires_at, client) VALUES (?, ?, ?, ?, ?, ?)`,
			c.Name[:], c.Print[:], c.ID[:], micros(now.Add(c.Hold)), micros(now.Add(c.Keep)), c.Client)
	})
	return f.stage, f.answer, err
}

func findRequest(conn *sqlite.Conn, c request.Claim, now int64) (f found, err error) {
	err = query(conn, `SELECT print, claim, held_until, status, media, body FROM requests WHERE name = ? AND expires_at > ?`, func(s *sqlite.Stmt) bool {
		var print request.Print
		var claim event.ID
		s.ColumnBytes(0, print[:])
		s.ColumnBytes(1, claim[:])
		answered := !s.ColumnIsNull(3)
		switch {
		case claim == c.ID: // the same claim, retried after a lost answer
		case print != c.Print:
			f.stage = request.Differs
		case answered:
			f.stage = request.Answered
			f.answer = request.Answer{Status: s.ColumnInt(3), Media: s.ColumnText(4), Body: columnBytes(s, 5)}
		case s.ColumnInt64(2) > now:
			f.stage = request.Running
		}
		return false
	}, c.Name[:], now)
	return f, err
}

// Answer stores the answer if the claim is still held; otherwise it does nothing.
func (r Requests) Answer(ctx context.Context, name request.Name, claim event.ID, a request.Answer) error {
	_, err := write(ctx, r.work.file, "answer request", func(conn *sqlite.Conn) (struct{}, error) {
		return struct{}{}, exec(conn, `UPDATE requests SET status = ?3, media = ?4, body = ?5 WHERE name = ?1 AND claim = ?2`,
			name[:], claim[:], int64(a.Status), a.Media, a.Body)
	})
	return err
}

// Release lets the next caller carry out a request, if the claim is still held.
func (r Requests) Release(ctx context.Context, name request.Name, claim event.ID) error {
	_, err := write(ctx, r.work.file, "release request", func(conn *sqlite.Conn) (struct{}, error) {
		return struct{}{}, exec(conn, `DELETE FROM requests WHERE name = ? AND claim = ?`, name[:], claim[:])
	})
	return err
}

// Forget removes expired requests and each client's requests beyond its share. If no client
// exceeds its share, it removes the oldest of all beyond b.Most. It removes at most b.Limit of
// each.
func (r Requests) Forget(ctx context.Context, b request.Bounds) (request.Forgotten, error) {
	return write(ctx, r.work.file, "forget requests", func(conn *sqlite.Conn) (f request.Forgotten, err error) {
		remove := func(statement string, args ...any) (int, error) {
			err := exec(conn, statement, args...)
			if err != nil {
				return 0, err
			}
			f.Removed += conn.Changes()
			return conn.Changes(), nil
		}
		if _, err = remove(`DELETE FROM requests WHERE name IN (
			SELECT name FROM requests WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`, micros(r.work.now()), int64(b.Limit)); err != nil {
			return f, err
		}
		if b.Share > 0 {
			n, err := remove(`DELETE FROM requests WHERE name IN (
				SELECT name FROM (
					SELECT name, row_number() OVER (PARTITION BY client ORDER BY expires_at DESC) AS place FROM requests
					WHERE client IN (SELECT client FROM requests WHERE client IS NOT NULL GROUP BY client HAVING count(*) > ?1)
				) WHERE place > ?1 ORDER BY place DESC LIMIT ?2)`, int64(b.Share), int64(b.Limit))
			if err != nil || n >= b.Limit {
				return f, err
			}
		}
		if _, err = remove(`DELETE FROM requests WHERE name IN (
			SELECT name FROM requests ORDER BY expires_at
			LIMIT min(?2, max(0, (SELECT count(*) FROM requests) - ?1)))`, int64(b.Most), int64(b.Limit)); err != nil {
			return f, err
		}
		return f, query(conn, `SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM requests WHERE client IS NOT NULL GROUP BY client)`,
			func(s *sqlite.Stmt) bool { f.Largest = s.ColumnInt(0); return false })
	})
}
