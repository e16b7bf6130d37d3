package postgres_test

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// A query for the next free nonce reads few rows, however many the sequence has, of any phase and
// of any client.
func TestNextFreeReadsFewRows(t *testing.T) {
	op := open(t, postgres.Options{})
	conn := admin(t, op.url)
	execute(t, conn, `ALTER TABLE work.queue SET (autovacuum_enabled = off)`)
	const sequence = "00000000-0000-0000-0000-000000000001"
	for i, of := range []struct {
		phase, verdict string
		parked         bool
	}{{"open", "", false}, {"open", "", true}, {"announced", "executed", false}, {"announced", "expired", false}, {"watched", "", false}} {
		execute(t, conn, `INSERT INTO work.queue (chain, hash, sequence, sender, nonce_key, nonce, eligible_at, expires_at, phase, parked, verdict, block_number, block_hash, next_at, attempts, note, client)
			SELECT 1, sha256(($1::integer || '-' || i)::bytea), $2, '', '', i, 0, 0, $3, $4, $5, 0, '', now(), 0, '', 'bob' FROM generate_series(1, 5000) i`,
			i, sequence, of.phase, of.parked, of.verdict)
	}
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			execute(t, conn, `ANALYZE work.queue`)
		}
		for _, clients := range [][]string{nil, {"ann"}, {"ann", "bob"}} {
			touchesFew(t, conn, "next free nonce", postgres.SequenceRows(), sequence, int64(2500), clients, 20)
		}
	}
}
