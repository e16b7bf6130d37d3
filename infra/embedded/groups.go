package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/consumer"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Groups stores the state of consumer groups of the log's external feed, in feed.db. Several
// processes may have it open. Every commit is on disk before it is acknowledged, and every
// write is idempotent.
type Groups struct {
	file *file
	now  func() time.Time
}

// Claim takes or renews the right to a group's events for ttl. held is false while another
// holder's claim runs. The token grows with each new holder, and when a holder returns after
// its claim has lapsed.
func (g *Groups) Claim(ctx context.Context, group, holder string, ttl time.Duration) (_ consumer.Claim, held bool, _ error) {
	type grant struct {
		term
		at eventlog.Position
	}
	h, err := write(ctx, g.file, "claim consumer group "+group, func(conn *sqlite.Conn) (h grant, err error) {
		if h.term, err = take(conn, "groups", group, holder, g.now(), ttl); err != nil || !h.held {
			return h, err
		}
		err = query(conn, "SELECT pos FROM groups WHERE name = ?", func(s *sqlite.Stmt) bool {
			h.at = eventlog.Position(s.ColumnInt64(0))
			return false
		}, group)
		return h, err
	})
	return consumer.Claim{Token: h.token, Position: h.at}, h.held, err
}

// Yield ends a claim at once. Not holding it is no error.
func (g *Groups) Yield(ctx context.Context, group string, token uint64) error {
	_, err := write(ctx, g.file, "yield consumer group "+group, func(conn *sqlite.Conn) (struct{}, error) {
		return struct{}{}, exec(conn, "UPDATE groups SET holder = NULL WHERE name = ? AND token = ?", group, int64(token))
	})
	return err
}

// fenced runs a write if the token is the newest.
func (g *Groups) fenced(ctx context.Context, what, group string, token uint64, do func(conn *sqlite.Conn) error) error {
	newest, err := write(ctx, g.file, what+" of consumer group "+group, func(conn *sqlite.Conn) (newest bool, err error) {
		err = query(conn, "SELECT 1 FROM groups WHERE name = ? AND token = ?", func(*sqlite.Stmt) bool {
			newest = true
			return false
		}, group, int64(token))
		if err != nil || !newest {
			return false, err
		}
		if err := do(conn); errors.Is(err, consumer.ErrSuperseded) { // the error is an answer; do has written nothing
			return false, nil
		} else if err != nil {
			return false, err
		}
		return true, nil
	})
	if err == nil && !newest {
		return fmt.Errorf("%s of consumer group %s: %w", what, group, consumer.ErrSuperseded)
	}
	return err
}

// Save moves the checkpoint forward. It returns consumer.ErrSuperseded if the token is not the
// newest, or the checkpoint is already further.
func (g *Groups) Save(ctx context.Context, group string, token uint64, to eventlog.Position) error {
	return g.fenced(ctx, "checkpoint", group, token, func(conn *sqlite.Conn) error {
		err := exec(conn, "UPDATE groups SET pos = ?2 WHERE name = ?1 AND pos <= ?2", group, int64(to))
		if err == nil && conn.Changes() == 0 {
			return consumer.ErrSuperseded
		}
		return err
	})
}

// Park records that a group could not process an event, and replaces the stream's earlier
// record. It returns consumer.ErrSuperseded if the token is not the newest.
func (g *Groups) Park(ctx context.Context, group string, token uint64, p consumer.Parked) error {
	return g.fenced(ctx, "parked stream", group, token, func(conn *sqlite.Conn) error {
		return exec(conn, `INSERT OR REPLACE INTO parked (name, stream, version, pos, error, attempts, since, wish)
			VALUES (?, ?, ?, ?, ?, ?, ?, '')`, group, string(p.Stream), int64(p.Version), int64(p.Position), p.Error, int64(p.Attempts), micros(g.now()))
	})
}

// Unpark removes a stream's parked record; no error if there is none. It returns
// consumer.ErrSuperseded if the token is not the newest.
func (g *Groups) Unpark(ctx context.Context, group string, token uint64, stream eventlog.Stream) error {
	return g.fenced(ctx, "parked stream", group, token, func(conn *sqlite.Conn) error {
		return exec(conn, "DELETE FROM parked WHERE name = ? AND stream = ?", group, string(stream))
	})
}

// Parked lists a group's parked streams, ordered by name.
func (g *Groups) Parked(ctx context.Context, group string) (all []consumer.Parked, err error) {
	err = g.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		return query(conn, "SELECT stream, version, pos, error, attempts, since, wish FROM parked WHERE name = ? ORDER BY stream", func(s *sqlite.Stmt) bool {
			all = append(all, consumer.Parked{
				Stream: eventlog.Stream(s.ColumnText(0)), Version: eventlog.Version(s.ColumnInt64(1)), Position: eventlog.Position(s.ColumnInt64(2)),
				Error: s.ColumnText(3), Attempts: s.ColumnInt(4), Since: time.UnixMicro(s.ColumnInt64(5)).UTC(), Wish: consumer.Wish(s.ColumnText(6)),
			})
			return true
		}, group)
	})
	return all, err
}

// Wish asks the process that holds the group to resume a stream that is parked at a version, or
// to skip it. It returns consumer.ErrNotParked if the stream is not parked at that version, so
// that a command for one event does not affect a later one.
func (g *Groups) Wish(ctx context.Context, group string, stream eventlog.Stream, at eventlog.Version, w consumer.Wish) error {
	there, err := write(ctx, g.file, "parked stream of consumer group "+group, func(conn *sqlite.Conn) (bool, error) {
		err := exec(conn, "UPDATE parked SET wish = ? WHERE name = ? AND stream = ? AND version = ?", string(w), group, string(stream), int64(at))
		return conn.Changes() > 0, err
	})
	if err == nil && !there {
		return consumer.ErrNotParked
	}
	return err
}

// Groups lists all groups ever seen, ordered by name.
func (g *Groups) Groups(ctx context.Context) (all []consumer.Group, err error) {
	now := g.now()
	err = g.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		return query(conn, `SELECT name, pos, CASE WHEN until > ? THEN coalesce(holder, '') ELSE '' END,
			(SELECT count(*) FROM parked p WHERE p.name = g.name) FROM groups g ORDER BY name`, func(s *sqlite.Stmt) bool {
			all = append(all, consumer.Group{
				Name: s.ColumnText(0), Position: eventlog.Position(s.ColumnInt64(1)), Holder: s.ColumnText(2), Parked: s.ColumnInt(3),
			})
			return true
		}, micros(now))
	})
	return all, err
}
