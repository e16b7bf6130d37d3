package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tempo-watchtower/watchtower/domain/consumer"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Groups stores the state of consumer groups of the log's external feed. Its commits wait for
// the disk. Every write is idempotent, so every call is retried after a connection error.
type Groups struct{ pool *pgxpool.Pool }

// claimGroup takes or renews a claim. It reads the clock while the row is locked, not at the
// statement's start: after a wait for the lock, now() is in the past. A claim that runs longer
// than any term was given before the clock was set back, and counts as lapsed.
const claimGroup = `INSERT INTO feed.groups AS l (name, holder, token, until)
VALUES ($1, $2, 1, clock_timestamp() + $3)
ON CONFLICT (name) DO UPDATE SET
  holder = excluded.holder,
  token = CASE WHEN l.holder = excluded.holder AND l.until > clock_timestamp() AND l.until <= clock_timestamp() + $4 THEN l.token ELSE l.token + 1 END,
  until = clock_timestamp() + $3
WHERE l.holder = excluded.holder OR l.until <= clock_timestamp() OR l.until > clock_timestamp() + $4
RETURNING token, pos`

// Claim takes or renews the right to a group's events for ttl. held is false while another
// holder's claim runs. The token grows with each new holder, and when a holder returns after
// its claim has lapsed.
func (s *Groups) Claim(ctx context.Context, group, holder string, ttl time.Duration) (c consumer.Claim, held bool, err error) {
	var token, pos int64
	err = retry(ctx, func() error {
		return s.pool.QueryRow(ctx, claimGroup, group, holder, ttl, ttl+leaseSlack).Scan(&token, &pos)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return consumer.Claim{}, false, nil
	}
	return consumer.Claim{Token: uint64(token), Position: eventlog.Position(pos)}, err == nil, err
}

// Yield ends a claim at once. Not holding it is no error.
func (s *Groups) Yield(ctx context.Context, group string, token uint64) error {
	return retry(ctx, func() error {
		_, err := s.pool.Exec(ctx, `UPDATE feed.groups SET until = '-infinity' WHERE name = $1 AND token = $2`, group, clamp(token))
		return err
	})
}

// fenced runs a write to one row if the token is the newest.
func (s *Groups) fenced(ctx context.Context, sql string, args ...any) error {
	return retry(ctx, func() error {
		tag, err := s.pool.Exec(ctx, sql, args...)
		if err == nil && tag.RowsAffected() == 0 {
			err = consumer.ErrSuperseded
		}
		return err
	})
}

// Save moves the checkpoint forward. It returns consumer.ErrSuperseded if the token is not the
// newest, or the checkpoint is already further.
func (s *Groups) Save(ctx context.Context, group string, token uint64, to eventlog.Position) error {
	return s.fenced(ctx, `UPDATE feed.groups SET pos = $3 WHERE name = $1 AND token = $2 AND pos <= $3`,
		group, clamp(token), clamp(uint64(to)))
}

// The lock on the group's row keeps a new holder from reading the parked streams before this
// stream is among them.
const parkStream = `
INSERT INTO feed.parked AS p (name, stream, version, pos, error, attempts, wish)
SELECT g.name, $3::text, $4::bigint, $5::bigint, $6::text, $7::integer, '' FROM feed.groups g WHERE g.name = $1 AND g.token = $2 FOR UPDATE
ON CONFLICT (name, stream) DO UPDATE SET version = excluded.version, pos = excluded.pos,
  error = excluded.error, attempts = excluded.attempts, since = excluded.since, wish = ''`

// Park records that a group could not process an event, and replaces the stream's earlier
// record. It returns consumer.ErrSuperseded if the token is not the newest.
func (s *Groups) Park(ctx context.Context, group string, token uint64, p consumer.Parked) error {
	return s.fenced(ctx, parkStream, group, clamp(token), string(p.Stream), clamp(uint64(p.Version)), clamp(uint64(p.Position)), p.Error, p.Attempts)
}

const unparkStream = `
WITH held AS (SELECT 1 FROM feed.groups WHERE name = $1 AND token = $2 FOR UPDATE),
     gone AS (DELETE FROM feed.parked WHERE name = $1 AND stream = $3 AND EXISTS (SELECT 1 FROM held))
SELECT 1 FROM held`

// Unpark removes a stream's parked record; no error if there is none. It returns
// consumer.ErrSuperseded if the token is not the newest.
func (s *Groups) Unpark(ctx context.Context, group string, token uint64, stream eventlog.Stream) error {
	return s.fenced(ctx, unparkStream, group, clamp(token), string(stream))
}

// Parked lists a group's parked streams, ordered by name.
func (s *Groups) Parked(ctx context.Context, group string) (all []consumer.Parked, err error) {
	err = retry(ctx, func() error {
		rows, err := s.pool.Query(ctx, `SELECT stream, version, pos, error, attempts, since, wish
			FROM feed.parked WHERE name = $1 ORDER BY name, stream`, group)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p consumer.Parked, err error) {
			var stream, wish string
			var version, pos int64
			err = row.Scan(&stream, &version, &pos, &p.Error, &p.Attempts, &p.Since, &wish)
			p.Stream, p.Version, p.Position, p.Wish = eventlog.Stream(stream), eventlog.Version(version), eventlog.Position(pos), consumer.Wish(wish)
			p.Since = p.Since.UTC()
			return p, err
		})
		return err
	})
	return all, err
}

// Wish asks the process that holds the group to resume a stream that is parked at a version, or
// to skip it. It returns consumer.ErrNotParked if the stream is not parked at that version, so
// that a command for one event does not affect a later one.
func (s *Groups) Wish(ctx context.Context, group string, stream eventlog.Stream, at eventlog.Version, w consumer.Wish) error {
	err := s.fenced(ctx, `UPDATE feed.parked SET wish = $3 WHERE name = $1 AND stream = $2 AND version = $4`, group, string(stream), string(w), clamp(uint64(at)))
	if errors.Is(err, consumer.ErrSuperseded) {
		return consumer.ErrNotParked
	}
	return err
}

// Groups lists all groups ever seen, ordered by name.
func (s *Groups) Groups(ctx context.Context) (all []consumer.Group, err error) {
	err = retry(ctx, func() error {
		rows, err := s.pool.Query(ctx, `SELECT name, pos, CASE WHEN until > clock_timestamp() THEN holder ELSE '' END,
			(SELECT count(*) FROM feed.parked p WHERE p.name = g.name) FROM feed.groups g ORDER BY name`)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (g consumer.Group, err error) {
			var pos int64
			err = row.Scan(&g.Name, &pos, &g.Holder, &g.Parked)
			g.Position = eventlog.Position(pos)
			return g, err
		})
		return err
	})
	return all, err
}
