package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Leases hands out rights that lapse by the server's clock. Its commits wait for
// the disk: a crash of the server takes a lease from nobody.
type Leases struct{ pool *pgxpool.Pool }

// takeRight takes or renews a right: a row that one holder has until a time. The clock is
// read while the row is locked, and not at the statement's start: after a wait for the
// lock, now() is in the past. A right that runs for longer than any is taken for was given
// before the clock was set back, and nobody may wait for it.
const takeRight = ` AS l (name, holder, token, until)
VALUES ($1, $2, 1, clock_timestamp() + $3)
ON CONFLICT (name) DO UPDATE SET
  holder = excluded.holder,
  token = CASE WHEN l.holder = excluded.holder AND l.until > clock_timestamp() AND l.until <= clock_timestamp() + $4 THEN l.token ELSE l.token + 1 END,
  until = clock_timestamp() + $3
WHERE l.holder = excluded.holder OR l.until <= clock_timestamp() OR l.until > clock_timestamp() + $4
RETURNING token`

const acquireLease = `INSERT INTO work.leases` + takeRight

// take runs a statement of [takeRight] for ttl and scans what it returns; held is false
// while another holder's right runs.
func take(ctx context.Context, pool *pgxpool.Pool, sql, name, holder string, ttl time.Duration, into ...any) (held bool, err error) {
	err = retry(ctx, func() error { return pool.QueryRow(ctx, sql, name, holder, ttl, ttl+leaseSlack).Scan(into...) })
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Acquire takes or renews a lease for ttl; held is false while another holder's runs.
func (s *Leases) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (held bool, err error) {
	var token int64 // consumer groups' alone are asked for
	return take(ctx, s.pool, acquireLease, name, holder, ttl, &token)
}

// Release gives a lease up at once; not holding it is no error.
func (s *Leases) Release(ctx context.Context, name, holder string) error {
	return retry(ctx, func() error {
		_, err := s.pool.Exec(ctx, `UPDATE work.leases SET until = '-infinity' WHERE name = $1 AND holder = $2`, name, holder)
		return err
	})
}
