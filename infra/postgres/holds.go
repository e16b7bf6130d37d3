package postgres

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

const (
	dueHolds = `SELECT h.account, h.client, h.since, h.grants,
  EXISTS (SELECT FROM work.owners o WHERE o.account = h.account AND o.held_since IS NOT NULL) FROM unnest($2::text[], $3::integer[]) u (client, most) CROSS JOIN LATERAL (
  SELECT account, client, since, grants FROM work.holds
  WHERE chain = $1 AND client = u.client
    AND (until <= (SELECT clock_timestamp()) OR until > (SELECT clock_timestamp()) + $4::interval)
  ORDER BY until LIMIT u.most FOR UPDATE SKIP LOCKED) h`

	releaseWork = `UPDATE work.queue q SET held_since = NULL, holder = $2, leased_until = clock_timestamp() + $3
WHERE q.chain = $1 AND q.hash = ANY (ARRAY(
  SELECT hash FROM work.queue WHERE account = $4 AND held_since IS NOT NULL AND NOT parked
    AND (holder IS NULL OR leased_until <= (SELECT clock_timestamp())) AND next_at <= (SELECT clock_timestamp())
  ORDER BY attempts, next_at, nonce LIMIT $5 FOR UPDATE SKIP LOCKED))
RETURNING ` + workColumns

	endHolds = `DELETE FROM work.holds h WHERE account = ANY ($1::uuid[])
AND NOT EXISTS (SELECT FROM work.queue q WHERE q.account = h.account AND q.held_since IS NOT NULL)
AND NOT EXISTS (SELECT FROM work.owners o WHERE o.account = h.account AND o.held_since IS NOT NULL)`

	// If more rows may be released, the next Lease does it.
	moveHolds = `UPDATE work.holds h SET until = clock_timestamp() + CASE WHEN u.rest > 0 THEN '0' ELSE $3::interval END, grants = u.rest
FROM unnest($1::uuid[], $2::integer[]) u (account, rest) WHERE h.account = u.account`
)

// hold is an account whose rows are set aside.
type hold struct {
	account pgtype.UUID
	client  string
	since   time.Time
	grants  int
	turns   bool // there are turns of further owners among them
}

// probe leases rows of accounts whose hold has expired: at least one per account, within their
// clients' shares. A hold without rows ends.
func (l *leasing) probe(ctx context.Context, shares []tx.Share, took func(client string, rows int)) error {
	var clients []string
	var most []int32
	for _, s := range shares {
		if l.probes[s.Client] && s.Rows > 0 {
			clients, most = append(clients, s.Client), append(most, int32(s.Rows))
			delete(l.probes, s.Client)
		}
	}
	if len(clients) == 0 {
		return nil
	}
	var released map[string][]tx.Work
	err := retryRefused(ctx, func() error {
		return inTx(ctx, l.pool, func(dbtx pgx.Tx) error {
			rows, err := dbtx.Query(ctx, dueHolds, int64(l.chain), clients, most, l.beyond())
			if err != nil {
				return err
			}
			holds, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h hold, err error) {
				return h, row.Scan(&h.account, &h.client, &h.since, &h.grants, &h.turns)
			})
			if err != nil {
				return err
			}
			limits := map[string]int{}
			for i, client := range clients {
				limits[client] = int(most[i])
			}
			released, err = l.release(ctx, dbtx, holds, limits)
			return err
		})
	})
	if err != nil {
		return err
	}
	for client, rows := range released {
		took(client, len(rows))
		l.work = append(l.work, rows...)
	}
	return nil
}

// release leases rows of accounts whose holds are locked, at most left[client] rows per client.
func (l *leasing) release(ctx context.Context, dbtx pgx.Tx, holds []hold, left map[string]int) (map[string][]tx.Work, error) {
	q := &pgx.Batch{}
	released, behind := map[string][]tx.Work{}, map[string]int{}
	for _, h := range holds {
		behind[h.client]++
	}
	var moved, idle []pgtype.UUID
	var rest []int32
	for _, h := range holds {
		behind[h.client]--
		n := min(max(h.grants, 1), left[h.client]-behind[h.client]) // at least one for each of the others
		left[h.client] -= n
		text := releaseWork
		if h.turns {
			text = releaseTurns + turnColumns
		}
		q.Queue(text, int64(l.chain), l.holder, l.ttl, h.account, n).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (tx.Work, error) { return scanWork(row) })
			for _, w := range found {
				w.HeldSince = h.since.UTC()
				released[h.client] = append(released[h.client], w)
			}
			more := 0
			switch {
			case len(found) == 0:
				idle = append(idle, h.account)
			case len(found) == n:
				more = max(h.grants-n, 0)
			}
			moved, rest = append(moved, h.account), append(rest, int32(more))
			return err
		})
	}
	if err := dbtx.SendBatch(ctx, q).Close(); err != nil {
		return nil, err
	}
	q = &pgx.Batch{}
	q.Queue(endHolds, idle)
	q.Queue(moveHolds, moved, rest, l.ttl)
	return released, dbtx.SendBatch(ctx, q).Close()
}

const (
	putOnHold = `INSERT INTO work.holds (account, chain, since, until, grants, client)
SELECT account, chain, clock_timestamp(), until, 0,
  coalesce((SELECT o.client FROM work.owners o WHERE o.chain = u.chain AND o.hash = u.hash AND o.account = u.account LIMIT 1),
    (SELECT q.client FROM work.queue q WHERE q.chain = u.chain AND q.hash = u.hash), '')
FROM unnest($1::uuid[], $2::bigint[], $3::timestamptz[], $4::bytea[]) u (account, chain, until, hash)
ON CONFLICT (account) DO UPDATE SET until = excluded.until, grants = 0`

	easeHold = `UPDATE work.holds h SET until = least(h.until, u.until), grants = least(h.grants::bigint + u.grants, 1000000),
  since = CASE WHEN u.grants > 0 THEN clock_timestamp() ELSE h.since END
FROM unnest($1::uuid[], $2::timestamptz[], $3::integer[]) u (account, until, grants)
WHERE h.account = u.account AND h.account IN (SELECT account FROM work.holds WHERE account = ANY ($1) ORDER BY account FOR UPDATE)`
)

// queueStandings queues the reports about accounts. If one report says that an account is
// unable, reports that say otherwise are ignored.
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
		hashes := make([][]byte, len(account))
		for i, a := range account {
			hash := unable[a.Bytes].Hash
			hashes[i] = hash[:]
		}
		q.Queue(putOnHold, account, id, until, hashes)
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

// accounts converts reports to columns for unnest, in a fixed order, which prevents deadlocks.
func accounts(news map[tx.Account]tx.Done, stored func(time.Time) time.Time) (account []pgtype.UUID, id []int64, until []time.Time) {
	sorted := slices.SortedFunc(maps.Keys(news), func(a, b tx.Account) int { return bytes.Compare(a[:], b[:]) })
	for _, a := range sorted {
		account, id = append(account, accountID(a)), append(id, int64(news[a].Chain))
		until = append(until, stored(news[a].NextAt))
	}
	return account, id, until
}

func accountID(a tx.Account) pgtype.UUID { return pgtype.UUID{Bytes: a, Valid: true} }
