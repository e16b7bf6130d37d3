package postgres_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// TestKeysLost restores payloads without their keys. They count as gone, and can be stored
// again.
func TestKeysLost(t *testing.T) {
	op := open(t, postgres.Options{})
	ctx := soon(t)
	sealed := func(n, try byte) payload.Sealed {
		return payload.Sealed{Ref: payload.Ref{Chain: 1, Hash: chain.Hash{n}}, KeyID: uint32(try), Wrapped: []byte{try, 1}, Bytes: []byte{try, 2, n}}
	}
	must(t, op.db.Payloads.Put(ctx, []payload.Sealed{sealed(1, 1), sealed(2, 1)}))
	execute(t, admin(t, op.url), `DELETE FROM log.payload_keys WHERE substr(hash, 1, 1) = '\x01'`)
	if _, err := op.db.Payloads.Get(ctx, 1, chain.Hash{1}); !errors.Is(err, payload.ErrGone) {
		t.Error("a payload without its key answers", err)
	}
	must(t, op.db.Payloads.Put(ctx, []payload.Sealed{sealed(3, 2), sealed(2, 2), sealed(1, 2)}))
	for n, want := range map[byte]payload.Sealed{1: sealed(1, 2), 2: sealed(2, 1), 3: sealed(3, 2)} {
		got, err := op.db.Payloads.Get(ctx, 1, chain.Hash{n})
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("payload %d: %s", n, diff)
		}
	}
	// A key without its row does not prevent Put, and Erase removes it.
	execute(t, admin(t, op.url), `DELETE FROM log.payloads WHERE substr(hash, 1, 1) IN ('\x01', '\x02')`)
	must(t, op.db.Payloads.Put(ctx, []payload.Sealed{sealed(1, 3)}))
	got, err := op.db.Payloads.Get(ctx, 1, chain.Hash{1})
	must(t, err)
	if diff := cmp.Diff(sealed(1, 3), got); diff != "" {
		t.Error(diff)
	}
	must(t, op.db.Payloads.Erase(ctx, 1, []chain.Hash{{1}, {2}, {3}}))
	var left int
	must(t, admin(t, op.url).QueryRow(ctx, `SELECT (SELECT count(*) FROM log.payload_keys) + (SELECT count(*) FROM log.payloads)`).Scan(&left))
	if left != 0 {
		t.Errorf("%d rows are left", left)
	}
}

// TestLeaseClock renews a lease that lapses while the statement waits for a lock. Its term
// begins when the lock is granted, not when it was requested.
func TestLeaseClock(t *testing.T) {
	op := open(t, postgres.Options{})
	ctx := soon(t)
	held, err := op.db.Leases.Acquire(ctx, "lane", "a", time.Second)
	if err != nil || !held {
		t.Fatal(held, err)
	}
	dbtx, err := admin(t, op.url).Begin(ctx)
	must(t, err)
	_, err = dbtx.Exec(ctx, `SELECT FROM work.leases FOR UPDATE`)
	must(t, err)
	if held, err := op.db.Leases.Acquire(ctx, "lane", "b", time.Minute); err != nil || held {
		t.Errorf("another's lease that runs, in a row that is locked: %v, %v", held, err)
	}
	type answer struct {
		held bool
		err  error
	}
	told := make(chan answer, 1)
	go func() {
		held, err := op.db.Leases.Acquire(ctx, "lane", "a", time.Minute)
		told <- answer{held, err}
	}()
	var lapsed bool
	var given time.Time
	eventually(t, "the lapse of the lease under waiting eyes", func() bool {
		must(t, dbtx.QueryRow(ctx, `SELECT until < clock_timestamp() AND EXISTS (SELECT FROM pg_locks WHERE NOT granted), clock_timestamp()
			FROM work.leases`).Scan(&lapsed, &given))
		return lapsed
	})
	must(t, dbtx.Rollback(ctx))
	if got := <-told; got.err != nil || !got.held {
		t.Errorf("the lease that had lapsed by then: %+v", got)
	}
	var until time.Time
	must(t, admin(t, op.url).QueryRow(ctx, `SELECT until FROM work.leases`).Scan(&until))
	if until.Before(given.Add(time.Minute)) {
		t.Errorf("the term of a minute that was given after %v ends at %v", given, until)
	}
}

// TestCrowd runs a feeder, workers and a watcher on few sequences at once. No call fails, and
// there is no deadlock.
func TestCrowd(t *testing.T) {
	op := open(t, postgres.Options{})
	w, ctx := op.db.Work, soon(t)
	const rows, senders, workers = 1200, 5, 6
	row := func(n int) tx.Work {
		r := tx.Work{Chain: 1, Sender: chain.Address{byte(n % senders)}, Nonce: uint64(n / senders), Phase: tx.Open, NextAt: time.Now()}
		binary.BigEndian.PutUint64(r.Hash[:], uint64(n)*0x9e3779b97f4a7c15)
		return r
	}
	fail := func(what string, err error) {
		if err != nil && ctx.Err() == nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	var over atomic.Bool
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for n := 0; !over.Load(); n++ {
				holder := fmt.Sprint("worker-", i)
				work, _, err := w.Lease(ctx, 1, holder, time.Minute, 9, 9)
				fail("lease", err)
				var done []tx.Done
				for j, leased := range work {
					done = append(done, tx.Done{Chain: 1, Hash: leased.Hash, Attempts: n, NextAt: time.Now(), WaitNonce: uint64((n + j) % 3)})
				}
				fail("done", w.Done(ctx, holder, done))
			}
		})
	}
	all.Go(func() {
		for n := uint64(0); !over.Load(); n++ {
			now := map[chain.Sequence]uint64{}
			for s := range senders {
				now[chain.Sequence{Chain: 1, Sender: chain.Address{byte(s)}}] = n
			}
			_, err := w.Wake(ctx, now)
			fail("wake", err)
			_, err = w.Waiting(ctx, 1, 3)
			fail("waiting", err)
			_, err = w.Advance(ctx, 1, 1<<40)
			fail("advance", err)
			_, err = w.DropSealed(ctx, 1, n)
			fail("drop sealed", err)
		}
	})
	at := eventlog.Position(0)
	apply := func(changes ...tx.Change) {
		fail("apply", w.Apply(ctx, "feeder", at, at+1, changes))
		at++
	}
	for n := 0; n < rows; n += 20 {
		var changes []tx.Change
		for i := n; i < n+20; i++ {
			r := row(i)
			changes = append(changes, tx.Change{Chain: 1, Hash: r.Hash, Open: &r})
			if i >= 100 {
				b := chain.Block{Number: uint64(i), Hash: chain.Hash{1}}
				changes = append(changes,
					tx.Change{Chain: 1, Hash: row(i - 60).Hash, Announce: &tx.Verdict{Status: tx.StatusExecuted, Block: b}},
					tx.Change{Chain: 1, Hash: row(i - 100).Hash, Seal: &tx.Verdict{Status: tx.StatusExecuted, Block: b}})
			}
		}
		apply(changes...)
	}
	over.Store(true)
	all.Wait()
	var deadlocks, misparked int
	conn := admin(t, op.url)
	must(t, conn.QueryRow(ctx, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&deadlocks))
	if deadlocks != 0 {
		t.Errorf("%d times the server had to cut a circle", deadlocks)
	}
	must(t, conn.QueryRow(ctx, `SELECT count(*) FROM work.queue q WHERE parked <> (phase = 'open' AND $1 <=
		(SELECT count(*) FROM work.queue o WHERE o.sequence = q.sequence AND o.phase = 'open' AND o.nonce < q.nonce))`, window).Scan(&misparked))
	if misparked != 0 {
		t.Errorf("%d rows are parked, or not, against the rule", misparked)
	}
}
