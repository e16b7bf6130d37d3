package postgres

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

const (
	free = `chain = $1 AND phase = 'open' AND NOT parked AND held_since IS NULL AND holder IS NULL`

	// The clock is read by a subquery, once: an index scan cannot stop at a volatile function,
	// which may differ from row to row. Rows whose lease has lapsed are few, and have an index
	// of their own.
	//
	// Times from before the clock was set back count as due: a repeat further away than the
	// longest pause, a lease that runs longer than any term. First attempts may be any time
	// away; Advance makes them due by the chain's clock.
	//
	// Due rows whose account is on hold are set aside. The hold is locked meanwhile, so that it
	// does not end for lack of rows. A hold that another transaction is about to end is
	// ignored.
	//
	// Each client has its share: $4 are the clients, $5 and $6 each client's rows and repeats,
	// $7 how many more rows per client are read to find rows to set aside.
	leaseCandidates = `
WITH share AS MATERIALIZED (
  SELECT * FROM unnest($4::text[], $5::integer[], $6::integer[]) u (client, most, again)
), first AS (
  SELECT q.* FROM share s CROSS JOIN LATERAL (
    SELECT hash, account, client, next_at FROM work.queue
    WHERE ` + free + ` AND client = s.client AND attempts = 0 AND next_at <= (SELECT clock_timestamp())
    ORDER BY next_at LIMIT s.most + $7::integer FOR UPDATE SKIP LOCKED) q
), again AS (
  SELECT q.* FROM share s CROSS JOIN LATERAL (
    SELECT hash, account, client, next_at FROM work.queue
    WHERE ` + free + ` AND client = s.client AND attempts > 0 AND next_at <= (SELECT clock_timestamp())
    ORDER BY next_at LIMIT s.again + $7::integer FOR UPDATE SKIP LOCKED) q
), astray AS (
  SELECT q.* FROM share s CROSS JOIN LATERAL (
    SELECT hash, account, client, next_at FROM work.queue
    WHERE ` + free + ` AND client = s.client AND attempts > 0 AND next_at > (SELECT clock_timestamp()) + $8::interval
    ORDER BY next_at DESC LIMIT s.again + $7::integer FOR UPDATE SKIP LOCKED) q
), lapsed AS (
  SELECT hash, account, client, next_at, attempts FROM work.queue
  WHERE chain = $1 AND holder IS NOT NULL AND leased_until <= (SELECT clock_timestamp())
    AND phase = 'open' AND NOT parked AND next_at <= (SELECT clock_timestamp()) AND client = ANY ($4::text[])
  ORDER BY next_at LIMIT $10 FOR UPDATE SKIP LOCKED
), orphaned AS (
  SELECT hash, account, client, next_at, attempts FROM work.queue
  WHERE chain = $1 AND holder IS NOT NULL AND leased_until > (SELECT clock_timestamp()) + $9::interval
    AND phase = 'open' AND NOT parked AND client = ANY ($4::text[])
  ORDER BY leased_until LIMIT $10 FOR UPDATE SKIP LOCKED
)`
	leaseDue = `SELECT *, false AS repeat FROM first UNION ALL SELECT *, true FROM again UNION ALL SELECT *, true FROM astray
  UNION ALL SELECT hash, account, client, next_at, attempts > 0 FROM lapsed
  UNION ALL SELECT hash, account, client, next_at, attempts > 0 FROM orphaned`
	leaseWork = leaseCandidates + `, due AS MATERIALIZED (
  ` + leaseDue + `
), held AS MATERIALIZED (
  SELECT account FROM work.holds WHERE account IN (SELECT account FROM due) FOR KEY SHARE SKIP LOCKED
), placed AS (
  SELECT hash, client, next_at, account IN (SELECT account FROM held) AS aside, repeat,
    count(*) FILTER (WHERE account NOT IN (SELECT account FROM held)) OVER (PARTITION BY client, repeat ORDER BY next_at, hash) AS place
  FROM due
), allowed AS (
  SELECT p.hash, s.most, row_number() OVER (PARTITION BY p.client ORDER BY p.next_at, p.hash) AS place
  FROM placed p JOIN share s ON s.client = p.client WHERE NOT p.aside AND (NOT p.repeat OR p.place <= s.again)
)
UPDATE work.queue q SET
  held_since = CASE WHEN q.account = ANY (ARRAY(SELECT account FROM held)) THEN clock_timestamp() END,
  holder = CASE WHEN q.account <> ALL (ARRAY(SELECT account FROM held)) THEN $2 END,
  leased_until = CASE WHEN q.account <> ALL (ARRAY(SELECT account FROM held)) THEN clock_timestamp() + $3 END
WHERE q.chain = $1 AND q.hash = ANY (ARRAY(
  SELECT hash FROM placed WHERE aside UNION ALL SELECT hash FROM allowed WHERE place <= most
))
RETURNING ` + workColumns

	// For each client with rows that may be leased: when its first row is due, its last repeat
	// and its last hold. Each kind finds one client after the other, each by one index lookup,
	// however many rows it has. Rows with a lapsed lease add their clients at the end.
	readyWork = `
WITH RECURSIVE first (client, at) AS (
  (SELECT client, next_at FROM work.queue WHERE ` + free + ` AND attempts = 0 ORDER BY client, next_at LIMIT 1)
  UNION ALL
  SELECT n.client, n.next_at FROM first f CROSS JOIN LATERAL (
    SELECT client, next_at FROM work.queue WHERE ` + free + ` AND attempts = 0 AND client > f.client ORDER BY client, next_at LIMIT 1) n
), again (client, at) AS (
  (SELECT client, next_at FROM work.queue WHERE ` + free + ` AND attempts > 0 ORDER BY client, next_at LIMIT 1)
  UNION ALL
  SELECT n.client, n.next_at FROM again f CROSS JOIN LATERAL (
    SELECT client, next_at FROM work.queue WHERE ` + free + ` AND attempts > 0 AND client > f.client ORDER BY client, next_at LIMIT 1) n
), probe (client, at) AS (
  (SELECT client, until FROM work.holds WHERE chain = $1 ORDER BY client, until LIMIT 1)
  UNION ALL
  SELECT n.client, n.until FROM probe f CROSS JOIN LATERAL (
    SELECT client, until FROM work.holds WHERE chain = $1 AND client > f.client ORDER BY client, until LIMIT 1) n
)` + readyTurns + `, now AS MATERIALIZED (SELECT clock_timestamp() AS at)
SELECT 'first', client, first.at, first.at <= now.at, now.at FROM first, now
UNION ALL
SELECT 'again', client, again.at, again.at <= now.at OR now.at + $2::interval < (
  SELECT next_at FROM work.queue q WHERE ` + free + ` AND attempts > 0 AND q.client = again.client ORDER BY next_at DESC LIMIT 1), now.at
FROM again, now
UNION ALL
SELECT 'probe', client, probe.at, probe.at <= now.at OR now.at + $2::interval < (
  SELECT until FROM work.holds h WHERE chain = $1 AND h.client = probe.client ORDER BY until DESC LIMIT 1), now.at
FROM probe, now
UNION ALL
` + dueTurns + `SELECT 'lapsed', client, now.at, true, now.at FROM now CROSS JOIN LATERAL (
  SELECT client FROM work.queue WHERE chain = $1 AND holder IS NOT NULL AND leased_until <= (SELECT at FROM now)
    AND phase = 'open' AND NOT parked AND next_at <= (SELECT at FROM now)
  UNION
  SELECT client FROM work.queue WHERE chain = $1 AND holder IS NOT NULL AND leased_until > (SELECT at FROM now) + $3::interval
    AND phase = 'open' AND NOT parked
) late
UNION ALL
SELECT 'none', '', now.at, false, now.at FROM now`
)

// horizon is the longest time that Lease returns in until.
const horizon = tx.Horizon

// asideMax is how many rows per client a Lease reads beyond the requested ones, if there may be
// rows to set aside.
const asideMax = 500

// lease is the state kept between calls of Lease.
type lease struct {
	aside atomic.Bool // the last call set rows aside, so there may be more

	mu    sync.Mutex
	turns map[chain.ID]tx.Turns
}

func (l *lease) turnsOf(id chain.ID) tx.Turns {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turns[id]
}

func (l *lease) keep(id chain.ID, t tx.Turns) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turns == nil {
		l.turns = map[chain.ID]tx.Turns{}
	}
	l.turns[id] = t
}

// leasing is the state of one call of Lease.
type leasing struct {
	*Work
	chain  chain.ID
	holder string
	ttl    time.Duration

	probes map[string]bool // the clients with accounts whose hold has expired
	turns  map[string]bool // the clients with due turns as further owners
	work   []tx.Work
	again  int
	aside  bool // rows were set aside
}

// Lease takes at most limit due rows of a chain, at most repeats of them with earlier attempts.
// Each client gets its share, oldest due first. until is the time until the next unleased row
// is due: 0 if more may be due now, horizon if nothing is due before that.
func (s *Work) Lease(ctx context.Context, id chain.ID, holder string, ttl time.Duration, limit, repeats int) (work []tx.Work, until time.Duration, err error) {
	if limit <= 0 {
		return nil, 0, nil
	}
	l := &leasing{Work: s, chain: id, holder: holder, ttl: ttl}
	r, err := l.ready(ctx)
	if err != nil {
		return nil, 0, err
	}
	l.probes, l.turns = r.probes, r.turns
	turns := s.lease.turnsOf(id)
	err = turns.Serve(limit, repeats, r.clients, func(shares []tx.Share) ([]tx.Share, error) { return l.take(ctx, shares) })
	s.lease.keep(id, turns)
	if len(r.clients) > 0 {
		s.lease.aside.Store(l.aside)
	}
	if err != nil && len(l.work) == 0 { // the rows leased so far are returned without the error
		return nil, 0, err
	}
	slices.SortStableFunc(l.work, func(a, b tx.Work) int { return a.NextAt.Compare(b.NextAt) })
	if l.aside || len(l.work) >= limit {
		return l.work, 0, nil
	}
	until, err = l.rest(ctx, r, repeats)
	if len(l.work) > 0 {
		err = nil
	}
	return l.work, until, err
}

// rest is the time until more rows may be due; r was read before leasing.
func (l *leasing) rest(ctx context.Context, r ready, repeats int) (until time.Duration, err error) {
	if len(r.clients) > 0 {
		if r, err = l.ready(ctx); err != nil {
			return horizon, err
		}
	}
	until = horizon
	for kind, in := range r.soonest {
		if kind != "again" && kind != "again turn" || l.again < repeats {
			until = min(until, max(in, 0))
		}
	}
	if l.shown.setBack(r.server) {
		hurried, err := l.hurry(ctx)
		if hurried > 0 {
			until = 0
		}
		return until, err
	}
	return until, nil
}

// ready lists the clients with due rows, and when the first row or hold of each kind is due.
type ready struct {
	clients []tx.Ready
	probes  map[string]bool // the clients with accounts whose hold has expired
	turns   map[string]bool // the clients with due turns as further owners
	soonest map[string]time.Duration
	server  time.Time
}

func (l *leasing) ready(ctx context.Context) (r ready, err error) {
	err = retry(ctx, func() error {
		r = ready{probes: map[string]bool{}, turns: map[string]bool{}, soonest: map[string]time.Duration{}}
		tried := map[string]bool{} // clients with repeats
		before := time.Now()
		rows, err := l.pool.Query(ctx, readyWork, int64(l.chain), l.beyond(), l.ttl+l.beyond())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var kind, client string
			var at time.Time
			var due bool
			if err := rows.Scan(&kind, &client, &at, &due, &r.server); err != nil {
				return err
			}
			if known, met := r.soonest[kind]; kind != "none" && kind != "lapsed" && (!met || at.Sub(r.server) < known) {
				r.soonest[kind] = at.Sub(r.server)
			}
			if due {
				tried[client] = tried[client] || kind == "again" || kind == "again turn" || kind == "lapsed"
				r.turns[client] = r.turns[client] || kind == "first turn" || kind == "again turn"
				r.probes[client] = r.probes[client] || kind == "probe"
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
		l.skew.note(r.server, before, time.Now())
		for client, again := range tried {
			r.clients = append(r.clients, tx.Ready{Client: client, Repeats: again})
		}
		return nil
	})
	return r, err
}

// take leases each client's share: probes first, once, then the rows due longest.
func (l *leasing) take(ctx context.Context, shares []tx.Share) ([]tx.Share, error) {
	taken, place := make([]tx.Share, len(shares)), map[string]int{}
	for i, s := range shares {
		taken[i].Client, place[s.Client] = s.Client, i
	}
	if err := l.probe(ctx, shares, func(client string, rows int) { taken[place[client]].Rows += rows }); err != nil {
		return nil, err
	}
	var clients []string
	var most, again []int32
	total := 0
	for i, s := range shares {
		if n := s.Rows - taken[i].Rows; n > 0 {
			clients, most = append(clients, s.Client), append(most, int32(n))
			again, total = append(again, int32(min(n, s.Repeats))), total+n
		}
	}
	if total == 0 {
		return taken, nil
	}
	look := 0
	if l.lease.aside.Load() {
		look = asideMax
	}
	text := leaseWork
	turns := slices.ContainsFunc(clients, func(client string) bool { return l.turns[client] })
	if turns {
		text = leaseTurns + turnColumns
	}
	rows, err := l.rows(ctx, text, int64(l.chain), l.holder, l.ttl, clients, most, again, look,
		l.beyond(), l.ttl+l.beyond(), total+look)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if !row.HeldSince.IsZero() {
			l.aside = true
			continue
		}
		of := &taken[place[row.Client]]
		of.Rows++
		if row.Attempts > 0 {
			of.Repeats++
			l.again++
		}
		l.work = append(l.work, row)
		if turns && row.Shared {
			// It may have been in the share of another owner too, who has more rows then.
			for i := range taken {
				taken[i].More = true
			}
		}
	}
	return taken, nil
}
