package postgres_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// TestIntentsAmongMany explains the statements that claim a few intents. Very many others wait
// that belong to other claimers or wait for their ordering group, and the planner's statistics
// say few. This is the state after the lanes of a pool have stalled.
func TestIntentsAmongMany(t *testing.T) {
	op := open(t, postgres.Options{})
	conn := admin(t, op.url)
	const insert = `INSERT INTO work.intents SELECT md5($1::text || i)::uuid, $2::bigint + i, 1, $3, $4, $5::text, 0, $5::text IS NULL OR i = 1, CASE WHEN $6::bytea IS NOT NULL AND ($5::text IS NULL OR i <= 20) THEN $6::bytea END
		FROM generate_series(1, 10000) i`
	execute(t, conn, `ALTER TABLE work.intents SET (autovacuum_enabled = off)`)
	execute(t, conn, `ANALYZE work.intents`)
	lane, other := make([]byte, 52), slices.Repeat([]byte{1}, 52)
	const by, pool = "signer:0x0000000000000000000000000000000000000001", "pool:hot"
	for i, many := range []struct {
		wants     string
		key       []byte
		row, lane any
	}{
		{pool, []byte{9}, nil, nil},          // for the pool, under another key
		{"pool:cold", []byte{}, nil, nil},    // for another pool
		{by, []byte{}, "c/elsewhere", other}, // an ordering group in another lane
		{by, []byte{}, "c/mine", lane},
		{by, []byte{}, nil, lane}, // in the lane, in no ordering group
		{by, []byte{}, nil, nil},
		{pool, []byte{}, "c/free", nil},
	} {
		execute(t, conn, insert, fmt.Sprint(i, "-"), i*10_000, many.wants, many.key, many.row, many.lane)
	}
	claim := func(limit int) {
		t.Helper()
		touchesFew(t, conn, "claim", postgres.ClaimableIntents, int64(1), lane, []string{by, pool, "pool:none"}, [][]byte{{}, lane[20:]}, "holder", limit, int64(0), "")
	}
	heads := func() {
		t.Helper()
		chains, rows := []int64{1, 1, 1}, []string{"c/elsewhere", "c/mine", "c/free"}
		touchesFew(t, conn, "no heads any more", postgres.DropIntentHeads, chains, rows)
		touchesFew(t, conn, "heads", postgres.MarkIntentHeads, chains, rows)
	}
	claim(20)
	touchesFew(t, conn, "lapse", postgres.LapseClaims, time.Hour)
	execute(t, conn, `DELETE FROM work.intents WHERE in_row IS NOT NULL AND head`)
	heads()
	execute(t, conn, `ANALYZE work.intents`)
	claim(20)
	execute(t, conn, `DELETE FROM work.intents WHERE in_row IS NOT NULL AND head`)
	heads()
}

// TestClaimsClockSetBack simulates a server clock set back by an hour, by moving stored times
// forward. No claim of a dead process blocks for an hour, and current claims stay.
func TestClaimsClockSetBack(t *testing.T) {
	op := open(t, postgres.Options{})
	ctx := soon(t)
	q := op.db.Intents()
	var changes []intent.Change
	for n := byte(1); n <= 2; n++ {
		w := intent.Waiting{ID: chain.IntentID{n}, Position: eventlog.Position(n), Chain: 1, From: intent.From{Pool: "hot"}}
		changes = append(changes, intent.Change{ID: w.ID, Open: &w})
	}
	must(t, q.Apply(ctx, "relayer", 0, 2, changes))
	claim := func(holder string, limit, want int) {
		t.Helper()
		claimed, err := q.Claim(ctx, intent.Claim{
			Lane: chain.Sequence{Chain: 1, Sender: chain.Address{1}}, Pools: []string{"hot"}, Holder: holder, TTL: 30 * time.Second, Limit: limit,
		})
		if err != nil || len(claimed) != want {
			t.Fatalf("%s claimed %d, %v; not %d", holder, len(claimed), err, want)
		}
	}
	claim("before", 1, 1)
	execute(t, admin(t, op.url), `UPDATE work.intents SET claimed_until = claimed_until + '1 hour' WHERE holder IS NOT NULL`)
	claim("after", 1, 1)
	claim("another", 2, 1)
	claim("late", 2, 0)
}

// TestRowsBeforeCeilings claims a row that a replica of an older version has inserted.
func TestRowsBeforeCeilings(t *testing.T) {
	op := open(t, postgres.Options{})
	execute(t, admin(t, op.url), `INSERT INTO work.intents (intent, pos, chain, client, wants, nonce_key, in_row, deadline, lane, head)
		VALUES ('01000000-0000-0000-0000-000000000000', 1, 1, 'ann', 'pool:hot', '', NULL, 0, NULL, true)`)
	want := intent.Claimed{Waiting: intent.Waiting{ID: chain.IntentID{1}, Position: 1, Chain: 1, Client: "ann", From: intent.From{Pool: "hot"}}}
	got, err := op.db.Intents().Claim(soon(t), intent.Claim{
		Lane: chain.Sequence{Chain: 1, Sender: chain.Address{1}}, Pools: []string{"hot"}, Holder: "a", TTL: time.Hour, Limit: 1,
	})
	if diff := cmp.Diff([]intent.Claimed{want}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

// BenchmarkClaim claims intents in twenties out of a hundred thousand, for one of two pools or
// one of ten signers. Every fourth is in one of a thousand ordering groups. Claimed intents
// then get a nonce.
func BenchmarkClaim(b *testing.B) {
	ctx := context.Background()
	q := open(b, postgres.Options{}).db.Intents()
	const waiting, take, lanes = 100_000, 20, 10
	signer := func(n int) (a chain.Address) {
		binary.BigEndian.PutUint64(a[12:], uint64(n+1))
		return a
	}
	asking := func(n int) intent.Change {
		w := intent.Waiting{Position: eventlog.Position(n + 1), Chain: 1, From: intent.From{Pool: fmt.Sprint("pool-", n%2)}}
		binary.BigEndian.PutUint64(w.ID[:], uint64(n)*0x9e3779b97f4a7c15)
		if n%3 == 0 {
			by := signer(n % lanes)
			w.From = intent.From{Signer: &by}
		}
		if n%4 == 0 {
			w.Row = intent.Row{Chain: 1, Client: "client", Order: fmt.Sprint(n / 4 % 1000)}
		}
		return intent.Change{ID: w.ID, Open: &w}
	}
	at := eventlog.Position(0)
	apply := func(changes []intent.Change) {
		if err := q.Apply(ctx, "bench", at, at+1, changes); err != nil {
			b.Fatal(err)
		}
		at++
	}
	asked := 0
	fill := func(n int) {
		var changes []intent.Change
		for range n {
			changes, asked = append(changes, asking(asked)), asked+1
		}
		apply(changes)
	}
	for asked < waiting {
		fill(1000)
	}
	b.Run("claim", func(b *testing.B) {
		var took []time.Duration
		got := 0
		for i := range b.N {
			c := intent.Claim{
				Lane: chain.Sequence{Chain: 1, Sender: signer(i % lanes)}, Pools: []string{"pool-0", "pool-1"},
				Holder: fmt.Sprint("holder ", i%lanes), TTL: time.Hour, Limit: take,
			}
			start := time.Now()
			claimed, err := q.Claim(ctx, c)
			took = append(took, time.Since(start))
			if err != nil {
				b.Fatal(err)
			}
			got += len(claimed)
			var changes []intent.Change
			for _, w := range claimed {
				changes = append(changes, intent.Change{ID: w.ID, Place: &intent.Place{Signer: c.Lane.Sender}}, intent.Change{ID: w.ID, Close: true})
			}
			apply(changes)
			if len(claimed) > 0 {
				fill(len(claimed))
			}
		}
		report(b, took)
		b.ReportMetric(float64(got)/float64(b.N), "claimed/op")
	})
	b.Run("nothing for it", func(b *testing.B) {
		var took []time.Duration
		for range b.N {
			start := time.Now()
			claimed, err := q.Claim(ctx, intent.Claim{Lane: chain.Sequence{Chain: 1, Sender: signer(lanes)}, Holder: "idle", TTL: time.Hour, Limit: take})
			took = append(took, time.Since(start))
			if err != nil || len(claimed) != 0 {
				b.Fatal(len(claimed), err)
			}
		}
		report(b, took)
	})
	b.Run("a thousand asked for", func(b *testing.B) {
		for range b.N {
			fill(1000)
		}
		b.ReportMetric(float64(1000*b.N)/b.Elapsed().Seconds(), "applied/s")
	})
}
