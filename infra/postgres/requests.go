package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/request"
)

// Requests remembers requests that clients may repeat, and what was answered.
type Requests struct{ pool *pgxpool.Pool }

// A claim that is there already is this very one, tried again after a lost answer.
const claimRequest = `
INSERT INTO work.requests AS r (name, print, claim, held_until, expires_at)
VALUES ($1, $2, $3, clock_timestamp() + $4, clock_timestamp() + $5)
ON CONFLICT (name) DO UPDATE SET
  print = excluded.print, claim = excluded.claim, held_until = excluded.held_until, expires_at = excluded.expires_at,
  status = NULL, media = NULL, body = NULL
WHERE r.expires_at <= clock_timestamp()
   OR r.claim = excluded.claim
   OR r.status IS NULL AND r.held_until <= clock_timestamp() AND r.print = excluded.print
RETURNING true`

const findRequest = `SELECT print, coalesce(status, 0), coalesce(media, ''), body FROM work.requests WHERE name = $1`

// claimTries bounds how often a request may vanish between the two statements.
const claimTries = 4

// Claim asks for a request. The answer is there when the stage is request.Answered.
func (s *Requests) Claim(ctx context.Context, c request.Claim) (stage request.Stage, a request.Answer, err error) {
	err = retry(ctx, func() error {
		for range claimTries {
			var claimed bool
			err := s.pool.QueryRow(ctx, claimRequest, c.Name[:], c.Print[:], c.ID.String(), c.Hold, c.Keep).Scan(&claimed)
			if !errors.Is(err, pgx.ErrNoRows) {
				stage = request.Claimed
				return err
			}
			var print []byte
			a = request.Answer{}
			err = s.pool.QueryRow(ctx, findRequest, c.Name[:]).Scan(&print, &a.Status, &a.Media, &a.Body)
			switch {
			case errors.Is(err, pgx.ErrNoRows):
				continue // it was forgotten in between
			case err != nil:
				return err
			case [32]byte(print) != c.Print:
				stage, a = request.Differs, request.Answer{}
			case a.Status == 0:
				stage = request.Running
			default:
				stage = request.Answered
			}
			return nil
		}
		return errors.New("a request comes and goes")
	})
	return stage, a, err
}

// Answer keeps what was answered, if the claim is still held; else it does nothing.
func (s *Requests) Answer(ctx context.Context, name request.Name, claim event.ID, a request.Answer) error {
	return retry(ctx, func() error {
		_, err := s.pool.Exec(ctx, `UPDATE work.requests SET status = $3, media = $4, body = $5 WHERE name = $1 AND claim = $2`,
			name[:], claim.String(), a.Status, a.Media, a.Body)
		return err
	})
}

// Release lets whoever asks next carry a request out, if the claim is still held.
func (s *Requests) Release(ctx context.Context, name request.Name, claim event.ID) error {
	return retry(ctx, func() error {
		_, err := s.pool.Exec(ctx, `DELETE FROM work.requests WHERE name = $1 AND claim = $2`, name[:], claim.String())
		return err
	})
}

// The order of both deletes is that of expiry.
const (
	forgetExpired = `
DELETE FROM work.requests WHERE name IN (
  SELECT name FROM work.requests WHERE expires_at <= clock_timestamp() ORDER BY expires_at LIMIT $1)`
	forgetOldest = `
DELETE FROM work.requests WHERE name IN (
  SELECT name FROM work.requests ORDER BY expires_at
  LIMIT least($1, greatest(0, (SELECT count(*) FROM work.requests) - $2)))`
)

// Forget removes at most limit requests that have expired, and as many of the
// oldest where more than most are kept. It says how many it has removed.
func (s *Requests) Forget(ctx context.Context, most, limit int) (int, error) {
	removed := 0
	err := retry(ctx, func() error {
		expired, err := s.pool.Exec(ctx, forgetExpired, limit)
		if err != nil {
			return err
		}
		removed += int(expired.RowsAffected())
		oldest, err := s.pool.Exec(ctx, forgetOldest, limit, most)
		removed += int(oldest.RowsAffected())
		return err
	})
	return removed, err
}
