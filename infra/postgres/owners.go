package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// turnColumns are the columns that scanWork reads, of row q in turn t: in its own, or in that of a
// further owner.
var turnColumns = strings.NewReplacer(
	"q.client", "t.client", "q.account", "t.account", "q.next_at", "t.next_at", "q.held_since", "t.held_since",
).Replace(workColumns)

const (
	// freeTurn are the turns of further owners that may be leased when due. They are locked together
	// with their rows.
	freeTurn = `SELECT o.hash, o.account, o.client, o.next_at FROM work.owners o JOIN work.queue q ON q.chain = o.chain AND q.hash = o.hash
    WHERE o.chain = $1 AND o.client = s.client AND o.free AND o.held_since IS NULL`

	// leaseTurns is leaseWork for shares of which some client has due turns as a further owner. A row
	// that is due in the turns of two clients at once is leased in one of them.
	leaseTurns = leaseCandidates + `, first_turn AS (
  SELECT q.* FROM share s CROSS JOIN LATERAL (
    ` + freeTurn + ` AND o.attempts = 0 AND o.due <= (SELECT clock_timestamp())
    ORDER BY o.due LIMIT s.most + $7::integer FOR UPDATE OF q, o SKIP LOCKED) q
), again_turn AS (
  SELECT q.* FROM share s CROSS JOIN LATERAL (
    ` + freeTurn + ` AND o.attempts > 0 AND o.due <= (SELECT clock_timestamp())
    ORDER BY o.due LIMIT s.again + $7::integer FOR UPDATE OF q, o SKIP LOCKED) q
), astray_turn AS (
  SELECT q.* FROM share s CROSS JOIN LATERAL (
    ` + freeTurn + ` AND o.attempts > 0 AND o.due > (SELECT clock_timestamp()) + $9::interval
    ORDER BY o.due DESC LIMIT s.again + $7::integer FOR UPDATE OF q, o SKIP LOCKED) q
), due AS MATERIALIZED (
  SELECT *, false AS joined FROM (` + leaseDue + `) own
  UNION ALL SELECT *, false, true FROM first_turn
  UNION ALL SELECT *, true, true FROM again_turn UNION ALL SELECT *, true, true FROM astray_turn
), held AS MATERIALIZED (
  SELECT account FROM work.holds WHERE account IN (SELECT account FROM due) FOR KEY SHARE SKIP LOCKED
), placed AS MATERIALIZED (
  SELECT hash, client, account, next_at, joined, account IN (SELECT account FROM held) AS aside, repeat,
    count(*) FILTER (WHERE account NOT IN (SELECT account FROM held)) OVER (PARTITION BY client, repeat ORDER BY next_at, hash) AS place
  FROM due
), allowed AS (
  SELECT p.hash, p.client, p.account, p.next_at, p.joined, s.most, row_number() OVER (PARTITION BY p.client ORDER BY p.next_at, p.hash) AS place
  FROM placed p JOIN share s ON s.client = p.client WHERE NOT p.aside AND (NOT p.repeat OR p.place <= s.again)
), chosen AS MATERIALIZED (
  SELECT DISTINCT ON (hash) * FROM allowed WHERE place <= most ORDER BY hash, place, client
), turns_aside AS (
  UPDATE work.owners o SET held_since = clock_timestamp() FROM placed p
  WHERE p.aside AND p.joined AND o.chain = $1 AND o.hash = p.hash AND o.client = p.client
)
UPDATE work.queue q SET
  held_since = CASE WHEN t.aside THEN clock_timestamp() WHEN t.joined THEN q.held_since END,
  holder = CASE WHEN NOT t.aside THEN $2 END,
  leased_until = CASE WHEN NOT t.aside THEN clock_timestamp() + $3 END
FROM (
  SELECT hash, client, account, next_at, joined, false AS aside, NULL::timestamptz AS held_since FROM chosen
  UNION ALL
  SELECT hash, client, account, next_at, false, true, clock_timestamp() FROM placed p
  WHERE aside AND NOT joined AND NOT EXISTS (SELECT FROM chosen c WHERE c.hash = p.hash)
) t
WHERE q.chain = $1 AND q.hash = t.hash
RETURNING `

	// releaseTurns is releaseWork for an account with turns of further owners that are set aside.
	releaseTurns = `WITH own AS (
  SELECT hash, client, account, next_at, attempts, nonce FROM work.queue
  WHERE account = $4 AND held_since IS NOT NULL AND NOT parked AND (holder IS NULL OR leased_until <= (SELECT clock_timestamp()))
    AND next_at <= (SELECT clock_timestamp())
  ORDER BY attempts, next_at, nonce LIMIT $5 FOR UPDATE SKIP LOCKED
), joined AS (
  SELECT o.hash, o.client, o.account, o.next_at, o.attempts, q.nonce
  FROM work.owners o JOIN work.queue q ON q.chain = o.chain AND q.hash = o.hash
  WHERE o.account = $4 AND o.held_since IS NOT NULL AND o.free AND o.due <= (SELECT clock_timestamp())
  ORDER BY o.attempts, o.due LIMIT $5 FOR UPDATE OF q, o SKIP LOCKED
), chosen AS MATERIALIZED (
  SELECT * FROM (
    SELECT DISTINCT ON (hash) * FROM (SELECT *, false AS joined FROM own UNION ALL SELECT *, true FROM joined) a ORDER BY hash, joined
  ) t ORDER BY attempts, next_at, nonce LIMIT $5
), let AS (
  UPDATE work.owners o SET held_since = NULL FROM chosen t
  WHERE t.joined AND o.chain = $1 AND o.hash = t.hash AND o.client = t.client
)
UPDATE work.queue q SET held_since = CASE WHEN t.joined THEN q.held_since END, holder = $2, leased_until = clock_timestamp() + $3
FROM (SELECT *, NULL::timestamptz AS held_since FROM chosen) t WHERE q.chain = $1 AND q.hash = t.hash
RETURNING `

	// readyTurns are the parts of readyWork for the turns of further owners.
	readyTurns = `, first_turn (client, at) AS (
  (SELECT client, due FROM work.owners WHERE chain = $1 AND free AND held_since IS NULL AND attempts = 0 ORDER BY client, due LIMIT 1)
  UNION ALL
  SELECT n.client, n.due FROM first_turn f CROSS JOIN LATERAL (
    SELECT client, due FROM work.owners WHERE chain = $1 AND free AND held_since IS NULL AND attempts = 0 AND client > f.client ORDER BY client, due LIMIT 1) n
), again_turn (client, at) AS (
  (SELECT client, due FROM work.owners WHERE chain = $1 AND free AND held_since IS NULL AND attempts > 0 ORDER BY client, due LIMIT 1)
  UNION ALL
  SELECT n.client, n.due FROM again_turn f CROSS JOIN LATERAL (
    SELECT client, due FROM work.owners WHERE chain = $1 AND free AND held_since IS NULL AND attempts > 0 AND client > f.client ORDER BY client, due LIMIT 1) n
)`
	dueTurns = `SELECT 'first turn', client, first_turn.at, first_turn.at <= now.at, now.at FROM first_turn, now
UNION ALL
SELECT 'again turn', client, again_turn.at, again_turn.at <= now.at OR now.at + $3::interval < (
  SELECT due FROM work.owners o WHERE chain = $1 AND free AND held_since IS NULL AND attempts > 0 AND o.client = again_turn.client ORDER BY due DESC LIMIT 1), now.at
FROM again_turn, now
UNION ALL
`

	// hurryTurns does for further owners what hurry does for rows.
	hurryTurns = `UPDATE work.owners o SET next_at = clock_timestamp() FROM (
    SELECT o.chain, o.hash, o.client FROM work.owners o JOIN work.queue q ON q.chain = o.chain AND q.hash = o.hash
    WHERE o.free AND o.attempts = 0 AND o.next_at > clock_timestamp() + $1::interval
      AND q.eligible_at <= (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint - 9223372036854775807 - 1)
    LIMIT $2 FOR UPDATE OF q, o SKIP LOCKED) late
  WHERE o.chain = late.chain AND o.hash = late.hash AND o.client = late.client`

	// An owner that is stored keeps its due time. The update copies the row's state, by a trigger.
	insertOwners = `INSERT INTO work.owners (chain, hash, client, account, next_at)
SELECT q.chain, q.hash, u.client, u.account, u.next_at
FROM unnest($1::bigint[], $2::bytea[], $3::text[], $4::uuid[], $5::timestamptz[]) u (chain, hash, client, account, next_at)
JOIN work.queue q ON q.chain = u.chain AND q.hash = u.hash
ON CONFLICT DO NOTHING`
	shareWork = `UPDATE work.queue q SET shared = true FROM unnest($1::bigint[], $2::bytea[]) u (chain, hash) WHERE q.chain = u.chain AND q.hash = u.hash`
	// countOwners counts the turns of further owners whose rows are open. Clients are counted in the
	// order of useMore.
	countOwners = `WITH turned AS (
  UPDATE work.owners o SET counted = t.counts FROM (
    SELECT o.chain, o.hash, o.client, o.counted AS was, CASE WHEN q.phase = 'open' THEN q.bytes::bigint END AS counts
    FROM unnest($1::bigint[], $2::bytea[]) u (chain, hash) JOIN work.queue q USING (chain, hash) JOIN work.owners o USING (chain, hash)
  ) t WHERE o.chain = t.chain AND o.hash = t.hash AND o.client = t.client AND t.was IS DISTINCT FROM t.counts
  RETURNING t.client, t.was, t.counts
)
INSERT INTO work.queue_clients AS c (client, waiting, bytes)
SELECT client, sum((counts IS NOT NULL)::integer - (was IS NOT NULL)::integer), sum(coalesce(counts, 0) - coalesce(was, 0))
FROM turned GROUP BY client ORDER BY client
ON CONFLICT (client) DO UPDATE SET waiting = c.waiting + excluded.waiting, bytes = c.bytes + excluded.bytes`

	fillWork = `UPDATE work.queue q SET shared = coalesce(q.shared, false) FROM unnest($1::bigint[], $2::bytea[]) u (chain, hash) WHERE q.chain = u.chain AND q.hash = u.hash`
)

// queueOwners queues the statements that store further owners, and whose owners are known now.
func queueOwners(q *pgx.Batch, f tx.Folded) {
	if len(f.Joined) > 0 {
		var refs []tx.Ref
		var clients []string
		var account []pgtype.UUID
		var next []pgtype.Timestamptz
		for _, j := range f.Joined {
			refs, clients = append(refs, j.Ref), append(clients, j.Client)
			account, next = append(account, accountID(j.Account)), append(next, optionalTime(j.NextAt))
		}
		id, hash := named(refs)
		q.Queue(insertOwners, id, hash, clients, account, next)
		q.Queue(shareWork, id, hash)
	}
	if len(f.Filled) > 0 {
		id, hash := named(f.Filled)
		q.Queue(fillWork, id, hash)
	}
	if refs := f.Turned(); len(refs) > 0 {
		id, hash := named(refs)
		q.Queue(countOwners, id, hash)
	}
}

// tellOwners sets the further owners of rows.
func (s *Work) tellOwners(ctx context.Context, found []tx.Work) error {
	shared := map[tx.Ref]*tx.Work{}
	var refs []tx.Ref
	for i := range found {
		if w := &found[i]; w.Shared {
			ref := tx.Ref{Chain: w.Chain, Hash: w.Hash}
			shared[ref], refs = w, append(refs, ref)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	id, hash := named(refs)
	return retry(ctx, func() error {
		for _, w := range shared {
			w.Owners = nil
		}
		rows, err := s.pool.Query(ctx, `SELECT o.chain, o.hash, o.client, o.account, o.next_at, o.held_since
			FROM unnest($1::bigint[], $2::bytea[]) u (chain, hash) JOIN work.owners o USING (chain, hash) ORDER BY o.client`, id, hash)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id int64
			var hash []byte
			var account pgtype.UUID
			var next time.Time
			var held pgtype.Timestamptz
			var o tx.Owner
			if err := rows.Scan(&id, &hash, &o.Client, &account, &next, &held); err != nil {
				return err
			}
			o.Account, o.NextAt, o.HeldSince = tx.Account(account.Bytes), next.UTC(), timeOf(held)
			w := shared[tx.Ref{Chain: chain.ID(id), Hash: chain.Hash(hash)}]
			w.Owners = append(w.Owners, o)
		}
		return rows.Err()
	})
}
