package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Leases grants leases that lapse by the server's clock. Its commits wait for the disk, so no
// holder loses a lease by a crash of the server.
//
// A process renews each of its leases every second, and clients can make it hold hundreds of
// lanes. So acquisitions wait in a line, and are carried out together: one read and one commit
// for all that wait.
//
// A call whose answer is lost is retried, and the server may run the first try's statement
// after the call has returned. So each statement changes a row only in the state that its try
// has read, and each change gives the row a new token. Once one try has changed the row, or has
// found another holder, the earlier tries change nothing.
type Leases struct {
	pool *pgxpool.Pool
	line leaseLine
}

const (
	// A lease that runs longer than any term was given before the clock was set back, and
	// counts as lapsed.
	lookLease = `SELECT asked.n, l.token, l.holder = asked.holder, l.until <= clock_timestamp() OR l.until > clock_timestamp() + $3::interval
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS asked (name, holder, n) JOIN work.leases l ON l.name = asked.name`

	// The clock is read while a row is locked, not at the statement's start: after a wait for
	// the lock, now() is in the past. Rows are locked in the order of their names, so two
	// processes do not wait for each other. A row's token is one more than the one read.
	acquireLease = `INSERT INTO work.leases AS l (name, holder, token, until)
SELECT name, holder, token + 1, clock_timestamp() + $4 FROM unnest($1::text[], $2::text[], $3::bigint[]) AS asked (name, holder, token) ORDER BY name
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, token = excluded.token, until = clock_timestamp() + $4
WHERE l.token = excluded.token - 1 AND (l.holder = excluded.holder OR l.until <= clock_timestamp() OR l.until > clock_timestamp() + $5)
RETURNING name`

	releaseLease = `UPDATE work.leases SET until = '-infinity', token = token + 1 WHERE name = $1 AND holder = $2 AND token = $3`
)

// seen is a lease's row as a holder has read it.
type seen struct {
	token int64 // 0: never granted
	own   bool  // the holder was the last one
	free  bool  // it is not running
}

// look reads the rows of leases, each for its holder, who takes it for ttl.
func (s *Leases) look(ctx context.Context, names, holders []string, ttl time.Duration) ([]seen, error) {
	all := make([]seen, len(names))
	for i := range all {
		all[i].free = true
	}
	rows, _ := s.pool.Query(ctx, lookLease, names, holders, ttl+leaseSlack) // its error is also the rows'
	var n int
	var l seen
	_, err := pgx.ForEachRow(rows, []any{&n, &l.token, &l.own, &l.free}, func() error {
		all[n-1] = l
		return nil
	})
	return all, err
}

// Acquire takes or renews a lease for ttl; held is false while another holder's runs.
func (s *Leases) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (held bool, err error) {
	ask := &leaseAsk{name: name, holder: holder, ttl: ttl, done: make(chan struct{})}
	if err := s.line.join(ask, s.acquire); err != nil {
		return false, err
	}
	select {
	case <-ask.done:
		return ask.held, ask.err
	case <-ctx.Done():
		s.line.leave(ask)
		return false, ctx.Err()
	}
}

// acquire carries out acquisitions of different leases for the same term.
func (s *Leases) acquire(ctx context.Context, asked []*leaseAsk) error {
	ttl := asked[0].ttl
	for len(asked) > 0 { // again for rows that were changed since look
		if asked = s.line.present(asked); len(asked) == 0 {
			return nil
		}
		names, holders := make([]string, len(asked)), make([]string, len(asked))
		for i, a := range asked {
			names[i], holders[i] = a.name, a.holder
		}
		rows, err := s.look(ctx, names, holders, ttl)
		if err != nil {
			return err
		}
		names, holders = names[:0], holders[:0]
		var tokens []int64
		byName := map[string]*leaseAsk{}
		for i, l := range rows {
			if l.own || l.free {
				names, holders, tokens = append(names, asked[i].name), append(holders, asked[i].holder), append(tokens, l.token)
				byName[asked[i].name] = asked[i]
			}
		}
		if len(names) == 0 {
			return nil
		}
		granted, _ := s.pool.Query(ctx, acquireLease, names, holders, tokens, ttl, ttl+leaseSlack) // its error is also the rows'
		var name string
		if _, err := pgx.ForEachRow(granted, []any{&name}, func() error {
			byName[name].held = true
			delete(byName, name)
			return nil
		}); err != nil {
			return err
		}
		asked = asked[:0]
		for _, name := range names {
			if a := byName[name]; a != nil {
				asked = append(asked, a)
			}
		}
	}
	return nil
}

// Leased returns the last holder of a lease, and the end of its term by the server's clock; an empty
// holder if the lease was given up.
func (s *Leases) Leased(ctx context.Context, name string) (holder string, until time.Time, err error) {
	err = retry(ctx, func() error {
		holder, until, err = leaseOf(ctx, s.pool, name)
		return err
	})
	return holder, until, err
}

// leaseOf reads a lease.
func leaseOf(ctx context.Context, db interface {
	QueryRow(ctx context.Context, text string, args ...any) pgx.Row
}, name string) (holder string, until time.Time, err error) {
	err = db.QueryRow(ctx, `SELECT holder, until FROM work.leases WHERE name = $1 AND until > '-infinity'`, name).Scan(&holder, &until)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", time.Time{}, nil
	}
	return holder, until, err
}

// Release ends a lease at once. Not holding it is no error.
func (s *Leases) Release(ctx context.Context, name, holder string) error {
	if err := s.line.settled(ctx, name, holder); err != nil {
		return err
	}
	return retry(ctx, func() error {
		for { // again if the row was changed since look
			rows, err := s.look(ctx, []string{name}, []string{holder}, 0)
			if err != nil || !rows[0].own {
				return err
			}
			tag, err := s.pool.Exec(ctx, releaseLease, name, holder, rows[0].token)
			if err != nil || tag.RowsAffected() > 0 {
				return err
			}
		}
	})
}

// close ends what waits. The pool may be closed afterwards.
func (s *Leases) close() { s.line.close(eventlog.ErrClosed) }
