package postgres_test

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// TestClockSetBack simulates a server clock that is set back, by moving all stored times
// forward. No caller waits for a dead process's leases, or for a repeat.
func TestClockSetBack(t *testing.T) {
	op := open(t, postgres.Options{Pause: time.Minute})
	ctx := soon(t)
	hashes := []chain.Hash{{1}, {2}, {3}} // a repeat, a leased row, and a row not due for a day
	now := time.Now()
	for i, hash := range hashes {
		row := tx.Work{Chain: 1, Hash: hash, Nonce: uint64(i), NonceKey: chain.NonceKey{byte(i)}, Phase: tx.Open, NextAt: now}
		if i == 2 {
			row.NextAt = now.Add(24 * time.Hour)
			row.EligibleAt = uint64(row.NextAt.Unix())
		}
		at := eventlog.Position(i)
		must(t, op.db.Work.Apply(ctx, "feeder", at, at+1, []tx.Change{{Chain: 1, Hash: hash, Open: &row}}))
	}
	leased := func(by string) map[chain.Hash]bool {
		t.Helper()
		rows, _, err := op.db.Work.Lease(ctx, 1, by, 30*time.Second, 10, 10)
		must(t, err)
		got := map[chain.Hash]bool{}
		for _, r := range rows {
			got[r.Hash] = true
		}
		return got
	}
	if got := leased("first"); len(got) != 2 {
		t.Fatalf("leased %v", got)
	}
	must(t, op.db.Work.Done(ctx, "first", []tx.Done{{Chain: 1, Hash: hashes[0], Attempts: 1, NextAt: now.Add(30 * time.Second)}}))
	held, err := op.db.Leases.Acquire(ctx, "owner", "first", 3*time.Second)
	must(t, err)
	if got := leased("second"); !held || len(got) != 0 {
		t.Fatalf("before: %v, %v", held, got)
	}
	conn := admin(t, op.url)
	execute(t, conn, `UPDATE work.queue SET next_at = next_at + '1 hour', leased_until = leased_until + '1 hour'`)
	execute(t, conn, `UPDATE work.leases SET until = until + '1 hour'`)
	if got := leased("second"); !got[hashes[0]] || !got[hashes[1]] || got[hashes[2]] {
		t.Errorf("leased %v", got)
	}
	for n, hash := range []chain.Hash{{4}, {5}} { // one is a stored row, one is still to be read
		row := tx.Work{Chain: 1, Hash: hash, NonceKey: chain.NonceKey{hash[0]}, Phase: tx.Open, NextAt: time.Now().Add(time.Hour)}
		at := eventlog.Position(len(hashes) + n)
		must(t, op.db.Work.Apply(ctx, "feeder", at, at+1, []tx.Change{{Chain: 1, Hash: hash, Open: &row}}))
		if n == 0 {
			execute(t, conn, `UPDATE work.queue SET next_at = next_at + '1 hour' WHERE hash = '\x04'`)
		}
	}
	op = op.again()
	if got := leased("third"); !got[chain.Hash{4}] || !got[chain.Hash{5}] || got[hashes[2]] {
		t.Errorf("leased %v", got)
	}
	if held, err := op.db.Leases.Acquire(ctx, "owner", "second", 3*time.Second); err != nil || !held {
		t.Errorf("a lease of before the clock was set back: %v, %v", held, err)
	}
	if held, err := op.db.Leases.Acquire(ctx, "owner", "first", 3*time.Second); err != nil || held {
		t.Errorf("a lease that runs was given to another: %v, %v", held, err)
	}
}
