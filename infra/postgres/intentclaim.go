package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

const (
	// A claim that runs longer than any term was made before the clock was set back, and counts
	// as lapsed.
	lapseClaims = `UPDATE work.intents SET lane = NULL, holder = NULL, claimed_until = NULL
WHERE holder IS NOT NULL AND (claimed_until <= (SELECT clock_timestamp()) OR claimed_until > (SELECT clock_timestamp()) + $1::interval)`

	// elsewhere is true for an ordering group with an intent in another lane or claimed by
	// another holder. It is evaluated for one group after the other (OFFSET 0 ensures that).
	elsewhere = `EXISTS (SELECT FROM work.intents o
        WHERE o.chain = $1 AND o.in_row = i.in_row AND o.lane IS NOT NULL AND (o.lane <> $2 OR o.holder <> $5) OFFSET 0)`

	ofKind = `chain = $1 AND wants = a.wants AND nonce_key = a.nonce_key AND head AND lane IS NULL`

	intentColumns = `i.intent, i.pos, i.chain, i.client, i.wants, i.nonce_key, coalesce(i.in_row, ''), i.deadline, i.lane, i.holder, i.claimed_until, i.max_fee, i.size, i.not_before, i.asleep`

	// Clients are found one by one, by the index. Candidates are each client's first waiting
	// and matching intents, taking turns. An intent outside these has no turn among all intents
	// either. Further candidates are waiting intents of their ordering groups, and of the
	// groups in this lane, as far as [intent.Claim.Followers] allows. A group whose first
	// waiting intent does not fit has no candidate. The planner knows nothing of a limit that
	// differs from group to group; the other limit keeps it from expecting thousands of rows.
	claimableIntents = `
WITH RECURSIVE asking AS (
  SELECT a.*, f.client FROM (SELECT w.wants, k.nonce_key FROM unnest($3::text[]) w (wants) CROSS JOIN unnest($4::bytea[]) k (nonce_key)) a
  CROSS JOIN LATERAL (SELECT client FROM work.intents WHERE ` + ofKind + ` ORDER BY client LIMIT 1) f
  UNION ALL
  SELECT a.wants, a.nonce_key, f.client FROM asking a
  CROSS JOIN LATERAL (SELECT client FROM work.intents WHERE ` + ofKind + ` AND client > a.client ORDER BY client LIMIT 1) f
), found AS MATERIALIZED (
  SELECT d.intent, d.in_row FROM (
    SELECT c.*, row_number() OVER (PARTITION BY c.client ORDER BY c.pos) AS place FROM asking a CROSS JOIN LATERAL (
      SELECT intent, pos, in_row, client FROM work.intents i
      WHERE ` + ofKind + ` AND client = a.client AND pos > $7 AND (in_row IS NULL OR NOT ` + elsewhere + `)
      ORDER BY pos LIMIT $6
    ) c
  ) d ORDER BY d.place, d.client <= $8, d.client LIMIT $6
), groups AS (
  SELECT in_row FROM found WHERE in_row IS NOT NULL
  UNION
  SELECT in_row FROM (
    SELECT DISTINCT in_row FROM work.intents WHERE chain = $1 AND lane = $2 AND in_row IS NOT NULL
  ) i WHERE NOT ` + elsewhere + `
), ranked AS MATERIALIZED (
  SELECT groups.in_row, row_number() OVER (PARTITION BY f.client ORDER BY f.pos) - 1 AS ahead
  FROM groups CROSS JOIN LATERAL (
    SELECT client, pos, wants, nonce_key, asleep FROM work.intents WHERE chain = $1 AND in_row = groups.in_row AND lane IS NULL ORDER BY pos LIMIT 1
  ) f WHERE NOT f.asleep AND f.wants = ANY ($3) AND f.nonce_key = ANY ($4) AND f.pos > $7
), candidates AS MATERIALIZED (
  SELECT intent FROM found WHERE in_row IS NULL
  UNION ALL
  SELECT r.intent FROM ranked CROSS JOIN LATERAL (
    SELECT intent FROM (
      SELECT intent, pos FROM work.intents WHERE chain = $1 AND in_row = ranked.in_row AND lane IS NULL ORDER BY pos LIMIT $6
    ) w ORDER BY pos LIMIT greatest($6 - ranked.ahead, 0)
  ) r WHERE ranked.ahead < $6
)
SELECT ` + intentColumns + `, CASE WHEN NOT i.head THEN (
    SELECT intent FROM work.intents b WHERE b.chain = $1 AND b.in_row = i.in_row AND b.pos < i.pos ORDER BY b.pos DESC LIMIT 1
  ) END
FROM candidates c JOIN work.intents i ON i.intent = c.intent`

	claimIntents = `UPDATE work.intents SET lane = $2, holder = $3, claimed_until = clock_timestamp() + $4::interval WHERE intent = ANY ($1::uuid[])`
)

// Claim gives intents to a holder, as chosen by [intent.Claim.Choose]. A claim of unknown
// outcome lapses.
func (s *Intents) Claim(ctx context.Context, c intent.Claim) (claimed []intent.Claimed, err error) {
	lane := laneOf(c.Lane)
	var keys [][]byte
	for _, key := range c.Keys() {
		keys = append(keys, keyColumn(key))
	}
	err = retryRefused(ctx, func() error {
		claimed = nil
		var found []intent.Entry
		return inBatches(ctx, s.pool, func(q *pgx.Batch) {
			q.Queue(lockIntents)
			q.Queue(lapseClaims, c.TTL+leaseSlack)
			q.Queue(awakenIntents, intent.AwakenMost)
			q.Queue(claimableIntents, int64(c.Lane.Chain), lane, c.Names(), keys, c.Holder, c.Limit, clamp(uint64(c.After)), c.Turn).Query(func(rows pgx.Rows) error {
				found, err = pgx.CollectRows(rows, scanIntent)
				return err
			})
		}, func(q *pgx.Batch) {
			claimed = c.Choose(found)
			if len(claimed) == 0 {
				return
			}
			ids := make([]pgtype.UUID, len(claimed))
			for i, given := range claimed {
				ids[i] = uuidOf(given.ID)
			}
			q.Queue(claimIntents, ids, lane, c.Holder, c.TTL)
		})
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// scanIntent reads intentColumns, and the intent before it in its ordering group.
func scanIntent(row pgx.CollectableRow) (e intent.Entry, err error) {
	var id, behind pgtype.UUID
	var position, of, deadline, size, begin int64
	var wants, name, most string
	var holder pgtype.Text
	var until pgtype.Timestamptz
	var key, lane []byte
	if err := row.Scan(&id, &position, &of, &e.Client, &wants, &key, &name, &deadline, &lane, &holder, &until, &most, &size, &begin, &e.Asleep, &behind); err != nil {
		return e, err
	}
	e.ID, e.Behind, e.Position, e.Chain, e.Deadline = id.Bytes, behind.Bytes, eventlog.Position(position), chain.ID(of), uint64(deadline)
	e.Key, e.Row = keyOf(key), intent.ParseRow(e.Chain, name)
	e.Lane, e.Holder, e.Until = laneAt(e.Chain, lane), holder.String, timeOf(until)
	e.Size, e.NotBefore = int(size), uint64(begin)
	if e.MaxFee, err = feeOf(most); err != nil {
		return e, err
	}
	e.From, err = intent.ParseFrom(wants)
	return e, err
}
