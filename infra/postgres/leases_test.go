package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// TestLeaseTriesLate makes the server run the statement of a call's first try after the call
// has returned, by its second try. The late statement changes nothing.
func TestLeaseTriesLate(t *testing.T) {
	const term = time.Minute
	op := open(t, postgres.Options{})
	ctx, leases, conn := soon(t), op.db.Leases, admin(t, op.url)
	acquire := func(holder string, want bool) {
		t.Helper()
		if held, err := leases.Acquire(ctx, "lane", holder, term); err != nil || held != want {
			t.Fatalf("%s asks: held %v, %v", holder, held, err)
		}
	}
	late := func(sql string, args ...any) {
		t.Helper()
		tag, err := conn.Exec(ctx, sql, args...)
		if must(t, err); tag.RowsAffected() != 0 {
			t.Errorf("a late try changed %d rows", tag.RowsAffected())
		}
	}
	token := func() (n int64) {
		must(t, conn.QueryRow(ctx, `SELECT token FROM work.leases WHERE name = 'lane'`).Scan(&n))
		return n
	}

	acquire("a", true) // its first try saw no row
	late(postgres.AcquireLease, []string{"lane"}, []string{"a"}, []int64{0}, term, term)

	given := token()
	must(t, leases.Release(ctx, "lane", "a"))
	late(postgres.AcquireLease, []string{"lane"}, []string{"a"}, []int64{given}, term, term) // a renewal: it would create a lease that no caller knows of
	acquire("a", true)
	late(postgres.ReleaseLease, "lane", "a", given) // it would release a held lease
	late(postgres.AcquireLease, []string{"lane"}, []string{"a"}, []int64{given}, time.Nanosecond, term)
	acquire("b", false)

	must(t, leases.Release(ctx, "lane", "a"))
	free := token()
	acquire("b", true)
	must(t, leases.Release(ctx, "lane", "b"))
	late(postgres.AcquireLease, []string{"lane"}, []string{"a"}, []int64{free}, term, term) // it has returned that b holds the lease
	acquire("b", true)
}

// Hundreds of leases are renewed together: each call waits for the disk, but not alone. Another
// holder's lease among them stays with it.
func TestLeasesAreRenewedTogether(t *testing.T) {
	const many = 250
	op := open(t, postgres.Options{})
	ctx, conn := soon(t), admin(t, op.url)
	if held, err := op.db.Leases.Acquire(ctx, "lane 7", "b", time.Minute); err != nil || !held {
		t.Fatalf("held %v, %v", held, err)
	}
	ask := func() {
		t.Helper()
		var asking sync.WaitGroup
		for n := range many {
			asking.Go(func() {
				held, err := op.db.Leases.Acquire(ctx, fmt.Sprint("lane ", n), "a", time.Minute)
				if err != nil || held != (n != 7) {
					t.Errorf("lane %d: held %v, %v", n, held, err)
				}
			})
		}
		asking.Wait()
	}
	ask()
	ask()
	var rows, commits, tokens int
	must(t, conn.QueryRow(ctx, `SELECT count(*), count(DISTINCT xmin::text), sum(token) FROM work.leases`).Scan(&rows, &commits, &tokens))
	if rows != many || tokens != 2*many-1 {
		t.Errorf("%d leases, changed %d times, want %d and %d", rows, tokens, many, 2*many-1)
	}
	if commits > many/10 {
		t.Errorf("%d commits renewed %d leases", commits, many)
	}
}

// An acquisition whose caller has gone takes nothing after the lease was released.
func TestLeaseReleasedAfterAnUnansweredCall(t *testing.T) {
	op := open(t, postgres.Options{})
	ctx, conn := soon(t), admin(t, op.url)
	if held, err := op.db.Leases.Acquire(ctx, "lane", "a", time.Minute); err != nil || !held {
		t.Fatalf("held %v, %v", held, err)
	}
	execute(t, conn, `BEGIN`)
	execute(t, conn, `SELECT FROM work.leases WHERE name = 'lane' FOR UPDATE`)
	brief, cancel := context.WithCancel(ctx)
	gone := make(chan error)
	go func() {
		_, err := op.db.Leases.Acquire(brief, "lane", "a", time.Minute)
		gone <- err
	}()
	watch := admin(t, op.url)
	eventually(t, "the renewal waits for the row", func() (waits bool) {
		must(t, watch.QueryRow(ctx, `SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waits))
		return waits
	})
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller got %v", err)
	}
	released := make(chan error)
	go func() { released <- op.db.Leases.Release(ctx, "lane", "a") }()
	execute(t, conn, `COMMIT`)
	must(t, <-released)
	if held, err := op.db.Leases.Acquire(ctx, "lane", "b", time.Minute); err != nil || !held {
		t.Errorf("another holder: held %v, %v", held, err)
	}
}

// Leases and Ping have connections of their own: they go on while every connection for payloads and
// the log's readers waits.
func TestLeasesHaveTheirOwnConnections(t *testing.T) {
	o := open(t, postgres.Options{LogConns: 1})
	row := []payload.Sealed{{Ref: payload.Ref{Chain: 1}, Wrapped: []byte("key"), Bytes: []byte("bytes")}}
	must(t, o.db.Payloads.Put(soon(t), row))
	holder := admin(t, o.url)
	execute(t, holder, `BEGIN`)
	execute(t, holder, `SELECT FROM log.payloads FOR UPDATE`)
	put := make(chan error)
	go func() { put <- o.db.Payloads.Put(soon(t), row) }()
	watch := admin(t, o.url)
	eventually(t, "a payload that waits", func() (waits bool) {
		must(t, watch.QueryRow(soon(t), `SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waits))
		return waits
	})
	ctx, cancel := context.WithTimeout(soon(t), 5*time.Second)
	defer cancel()
	if held, err := o.db.Leases.Acquire(ctx, "watcher", "a", time.Minute); err != nil || !held {
		t.Errorf("held %v, %v", held, err)
	}
	if err := o.db.Ping(ctx); err != nil {
		t.Error(err)
	}
	execute(t, holder, `COMMIT`)
	must(t, <-put)
}
