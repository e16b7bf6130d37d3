package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Requests stores idempotency keys: requests that clients may repeat, and their answers.
type Requests struct{ pool *pgxpool.Pool }

// claimable are rows that a claim may take: $2 is its print, $3 its id. A row with the same id is
// this claim, retried after a lost answer. A request that runs is not claimed again, even if it
// has expired.
const claimable = `(expires_at <= clock_timestamp() AND (status IS NOT NULL OR held_until <= clock_timestamp())
   OR claim = $3
   OR status IS NULL AND held_until <= clock_timestamp() AND print = $2)`

// A repeated request only reads: ON CONFLICT DO UPDATE locks the row even if its WHERE is false,
// and the repetitions of one client would wait for each other's commits on all connections. The
// UPDATE locks a row only if its snapshot shows the row as claimable.
const (
	findRequest = `SELECT print, coalesce(status, 0), coalesce(media, ''), body, ` + claimable + `
FROM work.requests WHERE name = $1`

	addRequest = `
INSERT INTO work.requests (name, print, claim, held_until, expires_at, client)
VALUES ($1, $2, $3, clock_timestamp() + $4, clock_timestamp() + $5, $6)
ON CONFLICT (name) DO NOTHING`

	takeRequest = `
UPDATE work.requests SET
  print = $2, claim = $3, held_until = clock_timestamp() + $4, expires_at = clock_timestamp() + $5, client = $6,
  status = NULL, media = NULL, body = NULL
WHERE name = $1 AND ` + claimable
)

// claimTries bounds how often a request may change between the statements of a claim.
const claimTries = 4

// Claim claims a request. The answer is set if the stage is request.Answered.
func (s *Requests) Claim(ctx context.Context, c request.Claim) (stage request.Stage, a request.Answer, err error) {
	err = retry(ctx, func() error {
		for range claimTries {
			var print []byte
			var free bool
			write := takeRequest
			a = request.Answer{}
			err := s.pool.QueryRow(ctx, findRequest, c.Name[:], c.Print[:], c.ID.String()).Scan(&print, &a.Status, &a.Media, &a.Body, &free)
			switch {
			case errors.Is(err, pgx.ErrNoRows):
				write = addRequest
			case err != nil:
				return err
			case !free:
				stage, a = stageOf(c, print, a)
				return nil
			}
			tag, err := s.pool.Exec(ctx, write, c.Name[:], c.Print[:], c.ID.String(), c.Hold, c.Keep, c.Client)
			if err != nil || tag.RowsAffected() > 0 {
				stage, a = request.Claimed, request.Answer{}
				return err
			} // it was added, claimed or removed in between
		}
		return errors.New("a request comes and goes")
	})
	return stage, a, err
}

// stageOf returns the stage of a request that a claim may not take, with its answer.
func stageOf(c request.Claim, print []byte, a request.Answer) (request.Stage, request.Answer) {
	switch {
	case [32]byte(print) != c.Print:
		return request.Differs, request.Answer{}
	case a.Status == 0:
		return request.Running, a
	default:
		return request.Answered, a
	}
}

// Answer stores the answer if the claim is still held; otherwise it does nothing.
func (s *Requests) Answer(ctx context.Context, name request.Name, claim eventlog.ID, a request.Answer) error {
	return retry(ctx, func() error {
		_, err := s.pool.Exec(ctx, `UPDATE work.requests SET status = $3, media = $4, body = $5 WHERE name = $1 AND claim = $2`,
			name[:], claim.String(), a.Status, a.Media, a.Body)
		return err
	})
}

// Release lets the next caller carry out a request, if the claim is still held.
func (s *Requests) Release(ctx context.Context, name request.Name, claim eventlog.ID) error {
	return retry(ctx, func() error {
		_, err := s.pool.Exec(ctx, `DELETE FROM work.requests WHERE name = $1 AND claim = $2`, name[:], claim.String())
		return err
	})
}

const countRequests = `SELECT client, count(*) FROM work.requests GROUP BY client`

// Each finds the oldest requests by an index, and keeps running ones. clock_timestamp() is
// volatile and would not bound the scan of the index. A request that is claimed again meanwhile
// has another expires_at, and is kept.
const (
	forgetOldest = `
DELETE FROM work.requests WHERE (name, expires_at) IN (
  SELECT name, expires_at FROM work.requests
  WHERE expires_at <= CASE WHEN $2 THEN statement_timestamp() ELSE 'infinity' END
    AND (status IS NOT NULL OR held_until <= statement_timestamp())
  ORDER BY expires_at LIMIT $1)`
	forgetOldestOfClient = `
DELETE FROM work.requests WHERE (name, expires_at) IN (
  SELECT name, expires_at FROM work.requests
  WHERE client = $3 AND expires_at <= CASE WHEN $2 THEN statement_timestamp() ELSE 'infinity' END
    AND (status IS NOT NULL OR held_until <= statement_timestamp())
  ORDER BY expires_at LIMIT $1)`
)

// Usage counts the stored requests, and lists the clients with more than share, unless share is
// 0. It locks nothing.
func (s *Requests) Usage(ctx context.Context, share int) (u request.Usage, err error) {
	err = retry(ctx, func() error {
		u = request.Usage{}
		rows, err := s.pool.Query(ctx, countRequests)
		if err != nil {
			return err
		}
		var client *string // NULL: stored by a version that did not record it
		n := 0
		_, err = pgx.ForEachRow(rows, []any{&client, &n}, func() error {
			u.All += n
			if client == nil {
				return nil
			}
			u.Largest = max(u.Largest, n)
			if share > 0 && n > share {
				u.Beyond = append(u.Beyond, request.Count{Client: *client, Records: n})
			}
			return nil
		})
		return err
	})
	return u, err
}

// forgetting returns the statement that removes the oldest requests, and its arguments.
func forgetting(o request.Oldest) (text string, args []any) {
	text, args = forgetOldest, []any{o.Limit, o.Expired}
	if o.Client != nil {
		text, args = forgetOldestOfClient, append(args, *o.Client)
	}
	return text, args
}

// Forget removes the oldest requests of a client or of all clients, and returns their number. It
// keeps running requests.
func (s *Requests) Forget(ctx context.Context, o request.Oldest) (removed int, err error) {
	text, args := forgetting(o)
	err = retryRefused(ctx, func() error {
		tag, err := s.pool.Exec(ctx, text, args...)
		removed = int(tag.RowsAffected())
		return err
	})
	return removed, err
}
