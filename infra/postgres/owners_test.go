package postgres_test

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// Of open rows that a replica of an earlier version has written it is not known whether they have
// further owners. They are listed until that is filled in. Such a replica changes shared rows
// without knowing of their owners, which follow. An emptied queue has no owners.
func TestRowsOfBeforeOwnersAreFilledIn(t *testing.T) {
	op := open(t, postgres.Options{})
	ctx, w, now := soon(t), op.db.Work, time.Now()
	var changes []tx.Change
	for n := range byte(3) {
		row := tx.Work{Chain: 1, Hash: chain.Hash{n}, NonceKey: chain.NonceKey{n}, Client: "mallory", Account: tx.Account{n, 1}, Bytes: 100, Phase: tx.Open, NextAt: now.Add(-time.Minute)}
		changes = append(changes, tx.Change{Chain: 1, Hash: row.Hash, Open: &row})
	}
	must(t, w.Apply(ctx, "feeder", 0, 1, changes))
	unfilled := func(want int) {
		t.Helper()
		refs, err := w.Unfilled(ctx, tx.Ref{}, 10)
		if must(t, err); len(refs) != want {
			t.Errorf("%d rows are listed, want %d", len(refs), want)
		}
	}
	unfilled(0)
	conn := admin(t, op.url)
	execute(t, conn, `UPDATE work.queue SET shared = NULL`)
	unfilled(3)
	refill := func(n byte, owners ...tx.Owner) tx.Change {
		return tx.Change{Chain: 1, Hash: chain.Hash{n}, Refill: &tx.Refill{Client: "mallory", Bytes: 100, Owners: owners}}
	}
	must(t, w.Apply(ctx, "feeder", 1, 2, []tx.Change{refill(0), refill(1, tx.Owner{Client: "alice", Account: tx.Account{9}, NextAt: now.Add(-time.Minute)})}))
	unfilled(1)
	execute(t, conn, `UPDATE work.queue SET holder = 'old', leased_until = clock_timestamp() + '1 minute'`)
	if work, _, err := w.Lease(ctx, 1, "w", time.Minute, 5, 5); err != nil || len(work) != 0 {
		t.Errorf("leased %+v, %v", work, err)
	}
	execute(t, conn, `UPDATE work.queue SET holder = NULL, leased_until = NULL`)
	work, _, err := w.Lease(ctx, 1, "w", time.Minute, 2, 2)
	if must(t, err); len(work) != 2 || work[0].Client == work[1].Client {
		t.Errorf("leased %+v; want a row of each client", work)
	}
	execute(t, conn, `TRUNCATE work.queue, work.holds, work.waiting, work.blocks, work.checkpoints`)
	var owners int
	must(t, conn.QueryRow(ctx, `SELECT count(*) FROM work.owners`).Scan(&owners))
	if owners != 0 {
		t.Errorf("%d owners of no row", owners)
	}
}
