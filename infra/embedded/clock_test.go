package embedded_test

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/tx"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// TestClockSetBack sets the clock back an hour under a queue: no repeat waits for the
// hour, and nobody for the owner of a lease who is gone.
func TestClockSetBack(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	o := embedded.Options{Now: func() time.Time { return now }, Pause: time.Minute}
	db := open(t, dir, o)
	hashes := []chain.Hash{{1}, {2}, {3}} // to repeat, leased, and not due for a day
	for i, hash := range hashes {
		row := tx.Work{Chain: 1, Hash: hash, NonceKey: chain.NonceKey{byte(i)}, Phase: tx.Open, NextAt: now}
		if i == 2 {
			row.NextAt = now.Add(24 * time.Hour)
		}
		at := event.Position(i)
		if err := db.Work().Apply(t.Context(), "feeder", at, at+1, []tx.Change{{Chain: 1, Hash: hash, Open: &row}}); err != nil {
			t.Fatal(err)
		}
	}
	leased := func() map[chain.Hash]bool {
		t.Helper()
		rows, _, err := db.Work().Lease(t.Context(), 1, "worker", 30*time.Second, 10, 10)
		if err != nil {
			t.Fatal(err)
		}
		got := map[chain.Hash]bool{}
		for _, r := range rows {
			got[r.Hash] = true
		}
		return got
	}
	if got := leased(); len(got) != 2 {
		t.Fatalf("leased %v", got)
	}
	again := []tx.Done{{Chain: 1, Hash: hashes[0], Attempts: 1, NextAt: now.Add(30 * time.Second)}}
	if err := db.Work().Done(t.Context(), "worker", again); err != nil {
		t.Fatal(err)
	}
	if _, held, err := db.Work().Acquire(t.Context(), "owner", "first", 3*time.Second); !held || err != nil {
		t.Fatal(held, err)
	}
	if got := leased(); len(got) != 0 {
		t.Fatalf("too early: %v", got)
	}
	now = now.Add(-time.Hour)
	if got := leased(); !got[hashes[0]] || len(got) != 1 {
		t.Errorf("with the clock set back: %v", got)
	}
	if got := leased(); len(got) != 0 {
		t.Errorf("leased again while the lease runs: %v", got)
	}
	if token, held, err := db.Work().Acquire(t.Context(), "owner", "second", 3*time.Second); token != 2 || !held || err != nil {
		t.Errorf("with the clock set back, the lease of one who is gone: %d, %v, %v", token, held, err)
	}
	if _, held, err := db.Work().Acquire(t.Context(), "owner", "first", 3*time.Second); held || err != nil {
		t.Errorf("a lease that runs was given to another: %v, %v", held, err)
	}
	closed(t, db)
	db = open(t, dir, o)
	if got := leased(); !got[hashes[1]] || len(got) != 1 {
		t.Errorf("when the process is there again whose lease ran: %v", got)
	}
}
