package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Leases grants leases that lapse by the server's clock. Its commits wait for the disk, so no
// holder loses a lease by a crash of the server.
//
// A call whose answer is lost is retried, and the server may run the first try's statement
// after the call has returned. So each statement changes a row only in the state that its try
// has read, and each change gives the row a new token. Once one try has changed the row, or has
// found another holder, the earlier tries change nothing.
type Leases struct{ pool *pgxpool.Pool }

const (
	// A lease that runs longer than any term was given before the clock was set back, and
	// counts as lapsed.
	lookLease = `SELECT token, holder = $2, until <= clock_timestamp() OR until > clock_timestamp() + $3::interval
FROM work.leases WHERE name = $1`

	// The clock is read while the row is locked, not at the statement's start: after a wait for
	// the lock, now() is in the past.
	acquireLease = `INSERT INTO work.leases AS l (name, holder, token, until)
VALUES ($1, $2, 1, clock_timestamp() + $4)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, token = l.token + 1, until = clock_timestamp() + $4
WHERE l.token = $3 AND (l.holder = excluded.holder OR l.until <= clock_timestamp() OR l.until > clock_timestamp() + $5)`

	releaseLease = `UPDATE work.leases SET until = '-infinity', token = token + 1 WHERE name = $1 AND holder = $2 AND token = $3`
)

// seen is a lease's row as a holder has read it.
type seen struct {
	token int64 // 0: never granted
	own   bool  // the holder was the last one
	free  bool  // it is not running
}

// look reads a lease's row, for a holder that takes it for ttl.
func (s *Leases) look(ctx context.Context, name, holder string, ttl time.Duration) (l seen, err error) {
	err = s.pool.QueryRow(ctx, lookLease, name, holder, ttl+leaseSlack).Scan(&l.token, &l.own, &l.free)
	if errors.Is(err, pgx.ErrNoRows) {
		return seen{free: true}, nil
	}
	return l, err
}

// Acquire takes or renews a lease for ttl; held is false while another holder's runs.
func (s *Leases) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (held bool, err error) {
	err = retry(ctx, func() error {
		for held = false; !held; { // again if the row was changed since look
			l, err := s.look(ctx, name, holder, ttl)
			if err != nil || !l.own && !l.free {
				return err
			}
			tag, err := s.pool.Exec(ctx, acquireLease, name, holder, l.token, ttl, ttl+leaseSlack)
			if err != nil {
				return err
			}
			held = tag.RowsAffected() > 0
		}
		return nil
	})
	return held, err
}

// Release ends a lease at once. Not holding it is no error.
func (s *Leases) Release(ctx context.Context, name, holder string) error {
	return retry(ctx, func() error {
		for { // again if the row was changed since look
			l, err := s.look(ctx, name, holder, 0)
			if err != nil || !l.own {
				return err
			}
			tag, err := s.pool.Exec(ctx, releaseLease, name, holder, l.token)
			if err != nil || tag.RowsAffected() > 0 {
				return err
			}
		}
	})
}
