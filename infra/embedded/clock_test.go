package embedded_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/storetest"
)

// TestClockSetBack sets a queue's clock back by an hour. No repeat is delayed by the hour, and
// no caller waits for a dead process's lease.
func TestClockSetBack(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	o := embedded.Options{Now: func() time.Time { return now }, Pause: time.Minute}
	db := open(t, dir, o)
	hashes := []chain.Hash{{1}, {2}, {3}} // a repeat, a leased row, and a row not due for a day
	for i, hash := range hashes {
		row := tx.Work{Chain: 1, Hash: hash, NonceKey: chain.NonceKey{byte(i)}, Phase: tx.Open, NextAt: now}
		if i == 2 {
			row.NextAt = now.Add(24 * time.Hour)
			row.EligibleAt = uint64(row.NextAt.Unix())
		}
		at := eventlog.Position(i)
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
	if held, err := db.Work().Acquire(t.Context(), "owner", "first", 3*time.Second); !held || err != nil {
		t.Fatal(held, err)
	}
	if got := leased(); len(got) != 0 {
		t.Fatalf("too early: %v", got)
	}
	told := now
	for n, hash := range []chain.Hash{{4}, {5}} { // one is a stored row, one is still to be read
		row := tx.Work{Chain: 1, Hash: hash, NonceKey: chain.NonceKey{hash[0]}, Phase: tx.Open, NextAt: told}
		at := eventlog.Position(len(hashes) + n)
		if err := db.Work().Apply(t.Context(), "feeder", at, at+1, []tx.Change{{Chain: 1, Hash: hash, Open: &row}}); err != nil {
			t.Fatal(err)
		}
		now = told.Add(-time.Hour)
	}
	if got := leased(); !got[hashes[0]] || !got[chain.Hash{4}] || !got[chain.Hash{5}] || len(got) != 3 {
		t.Errorf("with the clock set back: %v", got)
	}
	if got := leased(); len(got) != 0 {
		t.Errorf("leased again while the lease runs: %v", got)
	}
	if held, err := db.Work().Acquire(t.Context(), "owner", "second", 3*time.Second); !held || err != nil {
		t.Errorf("with the clock set back, the lease of one who is gone: %v, %v", held, err)
	}
	if held, err := db.Work().Acquire(t.Context(), "owner", "first", 3*time.Second); held || err != nil {
		t.Errorf("a lease that runs was given to another: %v, %v", held, err)
	}
	closed(t, db)
	db = open(t, dir, o)
	if got := leased(); !got[hashes[1]] || len(got) != 1 {
		t.Errorf("when the process is there again whose lease ran: %v", got)
	}
}

// TestNoticesClockSetBack sets the clock of the queue of notices back by an hour. Nothing that
// was due waits for the hour. A notice told to wait by the correct clock keeps its due time.
func TestNoticesClockSetBack(t *testing.T) {
	now := time.Now()
	db := open(t, t.TempDir(), embedded.Options{Now: func() time.Time { return now }})
	q := db.Notices(storetest.NoticePolicy())
	key := func(endpoint byte) notice.Key {
		return notice.Key{Endpoint: notice.EndpointID{endpoint}, Intent: chain.IntentID{1}, Seq: 1}
	}
	at := eventlog.Position(0)
	enqueue := func(endpoints ...byte) {
		t.Helper()
		var news []notice.News
		for _, e := range endpoints {
			news = append(news, notice.News{Key: key(e), URL: "u"})
		}
		if err := q.Enqueue(t.Context(), "notifier", at, at+1, news); err != nil {
			t.Fatal(err)
		}
		at++
	}
	lease := func() (got []byte) {
		t.Helper()
		due, _, err := q.Lease(t.Context(), notice.Claim{Holder: "worker", TTL: 30 * time.Second, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range due {
			got = append(got, n.Endpoint[0])
		}
		slices.Sort(got)
		return got
	}
	done := func(endpoint byte, o notice.Outcome) {
		t.Helper()
		if _, err := q.Done(t.Context(), "worker", []notice.Report{{Key: key(endpoint), Outcome: o}}); err != nil {
			t.Fatal(err)
		}
	}
	const fresh, leased, failed, paused, before = 1, 2, 3, 4, 5
	later := notice.Outcome{Class: notice.Later, Cause: notice.Status, Status: 429, RetryAfter: 24 * time.Hour}
	enqueue(before)
	lease()
	done(before, later)
	now = now.Add(3 * time.Hour)
	enqueue(leased, failed, paused)
	if got := lease(); len(got) != 3 {
		t.Fatalf("leased %v", got)
	}
	done(failed, notice.Outcome{Class: notice.Failed, Cause: notice.Status, Status: 500})
	done(paused, later)
	enqueue(fresh)
	now = now.Add(-time.Hour)
	if got := lease(); !slices.Equal(got, []byte{fresh, failed, paused}) {
		t.Errorf("with the clock set back: %v", got)
	}
	if got := lease(); len(got) != 0 {
		t.Errorf("leased again: %v", got)
	}
	if e, _, err := q.Endpoint(t.Context(), key(failed).Endpoint); err != nil || e.FailingSince.After(now) {
		t.Errorf("it will have failed since %s, %v", e.FailingSince, err)
	}
	for _, e := range []byte{fresh, failed, paused} {
		done(e, notice.Outcome{Class: notice.Delivered})
	}
	now = now.Add(30 * time.Second)
	if got := lease(); !slices.Equal(got, []byte{leased}) {
		t.Errorf("when the lease of one who is gone has lapsed: %v", got)
	}
}

// A claim from before the clock was set back lapses, and current claims stay.
func TestClaimsClockSetBack(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	db, err := embedded.Open("", embedded.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	q := db.Intents()
	var changes []intent.Change
	for n := byte(1); n <= 2; n++ {
		w := intent.Waiting{ID: chain.IntentID{n}, Position: eventlog.Position(n), Chain: 1, From: intent.From{Pool: "hot"}}
		changes = append(changes, intent.Change{ID: w.ID, Open: &w})
	}
	if err := q.Apply(t.Context(), "relayer", 0, 2, changes); err != nil {
		t.Fatal(err)
	}
	claim := func(holder string, limit, want int) {
		t.Helper()
		claimed, err := q.Claim(t.Context(), intent.Claim{
			Lane: chain.Sequence{Chain: 1, Sender: chain.Address{1}}, Pools: []string{"hot"}, Holder: holder, TTL: 30 * time.Second, Limit: limit,
		})
		if err != nil || len(claimed) != want {
			t.Fatalf("%s claimed %d, %v; not %d", holder, len(claimed), err, want)
		}
	}
	claim("before", 1, 1)
	now = now.Add(-time.Hour)
	claim("after", 1, 1)
	claim("another", 2, 1)
	claim("late", 2, 0)
	now = now.Add(30 * time.Second)
	claim("much later", 3, 2)
	closed(t, db)
}
