package embedded

import (
	"context"
	"fmt"
	"math"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/eventlog"
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
		// REPLACE would not fire the trigger that counts.
		if err := exec(conn, `DELETE FROM requests WHERE name = ?`, c.Name[:]); err != nil {
			return f, err
		}
		if err := exec(conn, `INSERT INTO requests (name, print, claim, held_until, expires_at, client) VALUES (?, ?, ?, ?, ?, ?)`,
			c.Name[:], c.Print[:], c.ID[:], micros(now.Add(c.Hold)), micros(now.Add(c.Keep)), c.Client); err != nil {
			return f, err
		}
		return f, displaceOldest(conn, c, micros(now))
	})
	return f.stage, f.answer, err
}

// displacedAtOnce is how many of its client's requests a claim removes, once so many exceed the
// share: a removal costs less among many.
const displacedAtOnce = 50

// displaceOldest removes the client's oldest requests beyond its share, except the claimed one and
// those that are running. A client that goes on beyond its share thus waits for the removals
// itself, and leaves no backlog to the sweep.
func displaceOldest(conn *sqlite.Conn, c request.Claim, now int64) error {
	if c.Share == 0 {
		return nil
	}
	stored := 0
	err := query(conn, `SELECT requests FROM request_counts WHERE client = ?`, func(s *sqlite.Stmt) bool {
		stored = s.ColumnInt(0)
		return false
	}, c.Client)
	if err != nil || stored < c.Share+displacedAtOnce {
		return err
	}
	return exec(conn, `DELETE FROM requests WHERE name IN (
		SELECT name FROM requests WHERE client = ? AND name <> ? AND `+notRunning+` ORDER BY expires_at LIMIT ?)`,
		c.Client, c.Name[:], now, int64(displacedAtOnce))
}

// notRunning excludes running requests. A repeated request whose claim was removed would be
// carried out a second time meanwhile.
const notRunning = `(status IS NOT NULL OR held_until <= ?)`

// findRequest finds the request of a claim's name. An expired request counts only while it runs.
func findRequest(conn *sqlite.Conn, c request.Claim, now int64) (f found, err error) {
	err = query(conn, `SELECT print, claim, held_until, status, media, body FROM requests
		WHERE name = ?1 AND (expires_at > ?2 OR status IS NULL AND held_until > ?2)`, func(s *sqlite.Stmt) bool {
		var print request.Print
		var claim eventlog.ID
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
func (r Requests) Answer(ctx context.Context, name request.Name, claim eventlog.ID, a request.Answer) error {
	_, err := write(ctx, r.work.file, "answer request", func(conn *sqlite.Conn) (struct{}, error) {
		return struct{}{}, exec(conn, `UPDATE requests SET status = ?3, media = ?4, body = ?5 WHERE name = ?1 AND claim = ?2`,
			name[:], claim[:], int64(a.Status), a.Media, a.Body)
	})
	return err
}

// Release lets the next caller carry out a request, if the claim is still held.
func (r Requests) Release(ctx context.Context, name request.Name, claim eventlog.ID) error {
	_, err := write(ctx, r.work.file, "release request", func(conn *sqlite.Conn) (struct{}, error) {
		return struct{}{}, exec(conn, `DELETE FROM requests WHERE name = ? AND claim = ?`, name[:], claim[:])
	})
	return err
}

// Usage counts the stored requests, and lists the clients with more than share, unless share is
// 0. The writer is not used.
func (r Requests) Usage(ctx context.Context, share int) (u request.Usage, err error) {
	err = r.work.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		return query(conn, `SELECT client, requests FROM request_counts`, func(s *sqlite.Stmt) bool {
			c := request.Count{Client: s.ColumnText(0), Records: s.ColumnInt(1)}
			u.All += c.Records
			u.Largest = max(u.Largest, c.Records)
			if share > 0 && c.Records > share {
				u.Beyond = append(u.Beyond, c)
			}
			return true
		})
	})
	if err != nil {
		return request.Usage{}, fmt.Errorf("count requests: %w", err)
	}
	return u, nil
}

// Each finds the oldest requests by an index: the writer reads no request that it keeps, except
// running ones.
const (
	forgetOldest = `DELETE FROM requests WHERE name IN (
		SELECT name FROM requests WHERE expires_at <= ? AND ` + notRunning + ` ORDER BY expires_at LIMIT ?)`
	forgetOldestOfClient = `DELETE FROM requests WHERE name IN (
		SELECT name FROM requests WHERE client = ? AND expires_at <= ? AND ` + notRunning + ` ORDER BY expires_at LIMIT ?)`
)

// Forget removes the oldest requests of a client or of all clients, and returns their number. It
// keeps running requests.
func (r Requests) Forget(ctx context.Context, o request.Oldest) (removed int, err error) {
	return write(ctx, r.work.file, "forget requests", func(conn *sqlite.Conn) (int, error) {
		now := micros(r.work.now())
		text, args := forgetOldest, []any{int64(math.MaxInt64), now, int64(o.Limit)}
		if o.Expired {
			args[0] = now
		}
		if o.Client != nil {
			text, args = forgetOldestOfClient, append([]any{*o.Client}, args...)
		}
		err := exec(conn, text, args...)
		return conn.Changes(), err
	})
}
