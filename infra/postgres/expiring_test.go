package postgres_test

import (
	"math"
	"testing"

	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// The search for expired transactions reads few rows of each client, however many have expired,
// and few of a client whose transactions have not.
func TestExpiringReadsFewRows(t *testing.T) {
	op := open(t, postgres.Options{})
	conn := admin(t, op.url)
	execute(t, conn, `ALTER TABLE work.queue SET (autovacuum_enabled = off)`)
	for i, of := range []struct {
		client, phase string
		at            int64
	}{{"ann", "open", 100}, {"bob", "open", 100}, {"bob", "watched", 100}, {"bob", "open", 900}, {"dan", "open", 900}, {"eve", "announced", 100}} {
		n := 5000
		if of.client == "ann" {
			n = 1
		}
		execute(t, conn, `INSERT INTO work.queue (chain, hash, sequence, sender, nonce_key, nonce, eligible_at, expires_at, phase, parked, verdict, block_number, block_hash, next_at, attempts, note, client)
			SELECT 1, sha256(($1::integer || '-' || i)::bytea), '00000000-0000-0000-0000-000000000001', '', '', i, 0, $2::bigint - 9223372036854775807 - 1, $3, false, '', 0, '', now(), 0, '', $4 FROM generate_series(1, $5::integer) i`,
			i, of.at, of.phase, of.client, n)
	}
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			execute(t, conn, `ANALYZE work.queue`)
		}
		touchesFew(t, conn, "expiring", postgres.ExpiringWork(), int64(1), int64(math.MinInt64+500), 50, 100)
	}
	rows, err := op.db.Work.Expiring(soon(t), 1, 500, 50, 100)
	must(t, err)
	byClient := map[string]int{}
	for _, row := range rows {
		byClient[row.Client]++
	}
	if len(byClient) != 2 || byClient["ann"] != 1 || byClient["bob"] != 50 {
		t.Errorf("found %v", byClient)
	}
}
