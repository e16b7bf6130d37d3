package embedded

import (
	"testing"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Of open rows that an earlier version has written it is not known whether they have further owners.
// They are listed until that is filled in.
func TestRowsOfBeforeOwnersAreFilledIn(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	db, err := Open("", Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing is kept
	w := db.Work()
	var changes []tx.Change
	for n := range byte(3) {
		row := tx.Work{Chain: 1, Hash: chain.Hash{n}, Client: "mallory", Account: tx.Account{n, 1}, Bytes: 100, Phase: tx.Open, NextAt: now}
		changes = append(changes, tx.Change{Chain: 1, Hash: row.Hash, Open: &row})
	}
	apply := func(at int, changes ...tx.Change) {
		t.Helper()
		if err := w.Apply(t.Context(), "scheduler", eventlog.Position(at), eventlog.Position(at+1), changes); err != nil {
			t.Fatal(err)
		}
	}
	unfilled := func(want int) {
		t.Helper()
		if refs, err := w.Unfilled(t.Context(), tx.Ref{}, 10); err != nil || len(refs) != want {
			t.Errorf("%d rows are listed, want %d; %v", len(refs), want, err)
		}
	}
	apply(0, changes...)
	unfilled(0)
	if _, err := write(t.Context(), w.file, "before", func(conn *sqlite.Conn) (struct{}, error) {
		return struct{}{}, exec(conn, "UPDATE work SET shared = NULL")
	}); err != nil {
		t.Fatal(err)
	}
	unfilled(3)
	refill := func(n byte, owners ...tx.Owner) tx.Change {
		return tx.Change{Chain: 1, Hash: chain.Hash{n}, Refill: &tx.Refill{Client: "mallory", Bytes: 100, Owners: owners}}
	}
	apply(1, refill(0), refill(1, tx.Owner{Client: "alice", Account: tx.Account{9}, NextAt: now}))
	unfilled(1)
	work, _, err := w.Lease(t.Context(), 1, "w", time.Hour, 2, 2)
	if err != nil || len(work) != 2 || work[0].Client == work[1].Client {
		t.Errorf("leased %+v, %v; want a row of each client", work, err)
	}
}
