package postgres

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

const (
	// The clock is read by a subquery, once: compared with a function that changes
	// its mind from row to row, an index could not be asked where to stop. Rows
	// whose lease has lapsed are few, and found by an index of their own.
	//
	// What a clock that was set back has left behind counts as due: a repeat that is
	// further away than any pause is long, a lease that runs for longer than any
	// runs. First attempts may be any time away; Advance has them follow the chain.
	//
	// Due rows whose account is on hold are set aside. The hold is locked for that,
	// so that it does not end meanwhile, for want of rows: one that somebody is
	// about to end counts for nothing.
	leaseWork = `
WITH first AS (
  SELECT hash, account, next_at FROM work.queue
  WHERE chain = $1 AND phase = 'open' AND NOT parked AND held_since IS NULL AND holder IS NULL
    AND attempts = 0 AND next_at <= (SELECT clock_timestamp())
  ORDER BY next_at LIMIT $6 FOR UPDATE SKIP LOCKED
), again AS (
  SELECT hash, account, next_at FROM work.queue
  WHERE chain = $1 AND phase = 'open' AND NOT parked AND held_since IS NULL AND holder IS NULL
    AND attempts > 0 AND next_at <= (SELECT clock_timestamp())
  ORDER BY next_at LIMIT $7 FOR UPDATE SKIP LOCKED
), astray AS (
  SELECT hash, account, next_at FROM work.queue
  WHERE chain = $1 AND phase = 'open' AND NOT parked AND held_since IS NULL AND holder IS NULL
    AND attempts > 0 AND next_at > (SELECT clock_timestamp()) + $8::interval
  ORDER BY next_at DESC LIMIT $7 FOR UPDATE SKIP LOCKED
), lapsed AS (
  SELECT hash, account, next_at, attempts FROM work.queue
  WHERE chain = $1 AND holder IS NOT NULL AND leased_until <= (SELECT clock_timestamp())
    AND phase = 'open' AND NOT parked AND next_at <= (SELECT clock_timestamp())
  ORDER BY next_at LIMIT $4 FOR UPDATE SKIP LOCKED
), orphaned AS (
  SELECT hash, account, next_at, attempts FROM work.queue
  WHERE chain = $1 AND holder IS NOT NULL AND leased_until > (SELECT clock_timestamp()) + $9::interval
    AND phase = 'open' AND NOT parked
  ORDER BY leased_until LIMIT $4 FOR UPDATE SKIP LOCKED
), due AS MATERIALIZED (
  SELECT *, false AS repeat FROM first UNION ALL SELECT *, true FROM again UNION ALL SELECT *, true FROM astray
  UNION ALL SELECT hash, account, next_at, attempts > 0 FROM lapsed UNION ALL SELECT hash, account, next_at, attempts > 0 FROM orphaned
), held AS MATERIALIZED (
  SELECT account FROM work.holds WHERE account IN (SELECT account FROM due) FOR KEY SHARE SKIP LOCKED
), placed AS (
  SELECT hash, next_at, account IN (SELECT account FROM held) AS aside, repeat,
    count(*) FILTER (WHERE account NOT IN (SELECT account FROM held)) OVER (PARTITION BY repeat ORDER BY next_at, hash) AS place
  FROM due
)
UPDATE work.queue q SET
  held_since = CASE WHEN q.account = ANY (ARRAY(SELECT account FROM held)) THEN clock_timestamp() END,
  holder = CASE WHEN q.account <> ALL (ARRAY(SELECT account FROM held)) THEN $2 END,
  leased_until = CASE WHEN q.account <> ALL (ARRAY(SELECT account FROM held)) THEN clock_timestamp() + $3 END
WHERE q.chain = $1 AND q.hash = ANY (ARRAY(
  SELECT hash FROM placed WHERE aside UNION ALL
  (SELECT hash FROM placed WHERE NOT aside AND (NOT repeat OR place <= $5) ORDER BY next_at LIMIT $4)
))
RETURNING ` + workColumns

	untilDue = `
SELECT greatest(least($2::interval, min(next_at) - clock_timestamp()), '0'), clock_timestamp() FROM (
  (SELECT next_at FROM work.queue WHERE chain = $1 AND phase = 'open' AND NOT parked AND held_since IS NULL
     AND holder IS NULL AND attempts = 0 ORDER BY next_at LIMIT 1)
  UNION ALL
  (SELECT next_at FROM work.queue WHERE $3 AND chain = $1 AND phase = 'open' AND NOT parked AND held_since IS NULL
     AND holder IS NULL AND attempts > 0 ORDER BY next_at LIMIT 1)
  UNION ALL
  (SELECT until FROM work.holds WHERE chain = $1 ORDER BY until LIMIT 1)
) next`
)

// horizon bounds what Lease answers for until.
const horizon = tx.Horizon

// asideMax bounds how many more rows a Lease looks through than it is asked for,
// when there are rows to set aside.
const asideMax = 500

// lease is what Lease remembers.
type lease struct {
	aside atomic.Bool // the last one set rows aside, so there may be more of them
}

// Lease takes at most limit due rows of a chain, of which at most repeats have been
// attempted before, oldest due first. until is how long it is until the next row is
// due that nobody has leased: 0 when there may be more due now, horizon when nothing
// is due before.
func (s *Work) Lease(ctx context.Context, id chain.ID, holder string, ttl time.Duration, limit, repeats int) (work []tx.Work, until time.Duration, err error) {
	if limit <= 0 {
		return nil, 0, nil
	}
	if work, err = s.probe(ctx, id, holder, ttl, limit); err != nil {
		return nil, 0, err
	}
	again, more := 0, false
	if left := limit - len(work); left > 0 {
		look := 0
		if s.lease.aside.Load() {
			look = asideMax
		}
		rows, failed := s.rows(ctx, leaseWork, int64(id), holder, ttl, left, min(left, repeats), left+look, min(left, repeats)+look,
			s.beyond(), ttl+s.beyond())
		if failed != nil && len(work) == 0 { // else those are leased, whatever else
			return nil, 0, failed
		}
		slices.SortStableFunc(rows, func(a, b tx.Work) int { return a.NextAt.Compare(b.NextAt) })
		for _, row := range rows {
			switch {
			case !row.HeldSince.IsZero():
				more = true
				continue
			case row.Attempts > 0:
				again++
			}
			work = append(work, row)
		}
		s.lease.aside.Store(more)
	}
	if more || len(work) >= limit {
		return work, 0, nil
	}
	until = horizon
	var server time.Time
	err = retry(ctx, func() error {
		before := time.Now()
		err := s.pool.QueryRow(ctx, untilDue, int64(id), horizon, again < repeats).Scan(&until, &server)
		if err == nil {
			s.skew.note(server, before, time.Now())
		}
		return err
	})
	if err == nil && s.shown.setBack(server) {
		var hurried int
		if hurried, err = s.hurry(ctx); hurried > 0 {
			until = 0
		}
	}
	if len(work) > 0 {
		err = nil
	}
	return work, until, err
}

const (
	dueHolds = `SELECT account, since, grants FROM work.holds
WHERE chain = $1 AND (until <= (SELECT clock_timestamp()) OR until > (SELECT clock_timestamp()) + $3::interval)
ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED`

	releaseWork = `UPDATE work.queue q SET held_since = NULL, holder = $2, leased_until = clock_timestamp() + $3
WHERE q.chain = $1 AND q.hash = ANY (ARRAY(
  SELECT hash FROM work.queue WHERE account = $4 AND held_since IS NOT NULL AND NOT parked
    AND next_at <= (SELECT clock_timestamp())
  ORDER BY attempts, next_at, nonce LIMIT $5 FOR UPDATE SKIP LOCKED))
RETURNING ` + workColumns

	endHolds = `DELETE FROM work.holds h WHERE account = ANY ($1::uuid[])
AND NOT EXISTS (SELECT FROM work.queue q WHERE q.account = h.account AND q.held_since IS NOT NULL)`

	// Where more may go, they do so by the next Lease.
	moveHolds = `UPDATE work.holds h SET until = clock_timestamp() + CASE WHEN u.rest > 0 THEN '0' ELSE $3::interval END, grants = u.rest
FROM unnest($1::uuid[], $2::integer[]) u (account, rest) WHERE h.account = u.account`
)

// hold is an account whose rows are set aside.
type hold struct {
	account pgtype.UUID
	since   time.Time
	grants  int
}

// probe leases rows of accounts on hold whose time has come: at least one of each.
// A hold without rows ends.
func (s *Work) probe(ctx context.Context, id chain.ID, holder string, ttl time.Duration, limit int) (work []tx.Work, err error) {
	var due bool
	err = retry(ctx, func() error {
		const ask = `SELECT EXISTS (SELECT FROM work.holds WHERE chain = $1
			AND (until <= (SELECT clock_timestamp()) OR until > (SELECT clock_timestamp()) + $2::interval))`
		return s.pool.QueryRow(ctx, ask, int64(id), s.beyond()).Scan(&due)
	})
	if err != nil || !due {
		return nil, err
	}
	err = retryRefused(ctx, func() error {
		work = nil
		return inTx(ctx, s.pool, func(dbtx pgx.Tx) error {
			rows, err := dbtx.Query(ctx, dueHolds, int64(id), limit, s.beyond())
			if err != nil {
				return err
			}
			holds, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h hold, err error) {
				return h, row.Scan(&h.account, &h.since, &h.grants)
			})
			if err != nil {
				return err
			}
			work, err = release(ctx, dbtx, holds, int64(id), holder, ttl, limit)
			return err
		})
	})
	return work, err
}

// release leases rows of these accounts, whose holds are locked.
func release(ctx context.Context, dbtx pgx.Tx, holds []hold, id int64, holder string, ttl time.Duration, limit int) (work []tx.Work, err error) {
	q := &pgx.Batch{}
	var moved, idle []pgtype.UUID
	var rest []int32
	for i, h := range holds {
		n := min(max(h.grants, 1), limit-(len(holds)-1-i)) // one at least for each of the others
		limit -= n
		q.Queue(releaseWork, id, holder, ttl, h.account, n).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (tx.Work, error) { return scanWork(row) })
			for _, w := range found {
				w.HeldSince = h.since.UTC()
				work = append(work, w)
			}
			left := 0
			switch {
			case len(found) == 0:
				idle = append(idle, h.account)
			case len(found) == n:
				left = max(h.grants-n, 0)
			}
			moved, rest = append(moved, h.account), append(rest, int32(left))
			return err
		})
	}
	if err := dbtx.SendBatch(ctx, q).Close(); err != nil {
		return nil, err
	}
	q = &pgx.Batch{}
	q.Queue(endHolds, idle)
	q.Queue(moveHolds, moved, rest, ttl)
	return work, dbtx.SendBatch(ctx, q).Close()
}

const (
	putOnHold = `INSERT INTO work.holds (account, chain, since, until, grants)
SELECT account, chain, clock_timestamp(), until, 0 FROM unnest($1::uuid[], $2::bigint[], $3::timestamptz[]) u (account, chain, until)
ON CONFLICT (account) DO UPDATE SET until = excluded.until, grants = 0`

	easeHold = `UPDATE work.holds h SET until = least(h.until, u.until), grants = least(h.grants::bigint + u.grants, 1000000),
  since = CASE WHEN u.grants > 0 THEN clock_timestamp() ELSE h.since END
FROM unnest($1::uuid[], $2::timestamptz[], $3::integer[]) u (account, until, grants)
WHERE h.account = u.account AND h.account IN (SELECT account FROM work.holds WHERE account = ANY ($1) ORDER BY account FOR UPDATE)`
)

// queueStandings queues what reports say of their accounts. Of an account that is
// unable by one of them, nothing better is believed.
func queueStandings(q *pgx.Batch, done []tx.Done, stored func(time.Time) time.Time) {
	unable, other := map[tx.Account]tx.Done{}, map[tx.Account]tx.Done{}
	atOnce := time.Unix(0, 0)
	grants := map[tx.Account]int32{}
	for _, d := range done {
		switch known, met := other[d.Account]; {
		case d.Account == tx.Account{} || d.Standing == "":
			continue
		case d.Standing == tx.Unable:
			unable[d.Account] = d
			continue
		case d.Standing == tx.Able:
			grants[d.Account] += 2
			d.NextAt = atOnce
			other[d.Account] = d
		case d.Standing == tx.Unasked:
			d.NextAt = atOnce
			other[d.Account] = d
		case !met || d.NextAt.Before(known.NextAt):
			other[d.Account] = d
		}
	}
	maps.DeleteFunc(other, func(a tx.Account, _ tx.Done) bool { _, worse := unable[a]; return worse })
	if len(unable) > 0 {
		account, id, until := accounts(unable, stored)
		q.Queue(putOnHold, account, id, until)
	}
	if len(other) > 0 {
		account, _, until := accounts(other, stored)
		let := make([]int32, len(account))
		for i, a := range account {
			let[i] = grants[a.Bytes]
		}
		q.Queue(easeHold, account, until, let)
	}
}

// accounts turns reports on their side for unnest, in one order for all, so that
// nobody waits in a circle.
func accounts(news map[tx.Account]tx.Done, stored func(time.Time) time.Time) (account []pgtype.UUID, id []int64, until []time.Time) {
	sorted := slices.SortedFunc(maps.Keys(news), func(a, b tx.Account) int { return bytes.Compare(a[:], b[:]) })
	for _, a := range sorted {
		account, id = append(account, accountID(a)), append(id, int64(news[a].Chain))
		until = append(until, stored(news[a].NextAt))
	}
	return account, id, until
}

func accountID(a tx.Account) pgtype.UUID { return pgtype.UUID{Bytes: a, Valid: true} }
