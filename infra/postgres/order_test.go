package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// TestLockHeld lets another session sit on the head row: an append whose time runs
// out before it had its turn is not written, and says so.
func TestLockHeld(t *testing.T) {
	op := open(t, postgres.Options{})
	ctx := soon(t)
	_, err := op.db.Log.Append(ctx, "first", 0, happened("first", 0, 1)...)
	must(t, err)
	dbtx, err := admin(t, op.url).Begin(ctx)
	must(t, err)
	_, err = dbtx.Exec(ctx, `SELECT FROM log.head FOR UPDATE`)
	must(t, err)

	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			stream := event.Stream(fmt.Sprint("late-", i))
			_, err := op.db.Log.Append(short, stream, 0, happened(stream, 0, 1)...)
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, event.ErrUnknown) {
				t.Error("an append that never had its turn answered", err)
			}
		})
	}
	patient := make(chan error, 1)
	all.Go(func() {
		_, err := op.db.Log.Append(ctx, "patient", 0, happened("patient", 0, 1)...)
		patient <- err
	})
	eventually(t, "a waiting session", func() bool {
		var n int
		must(t, dbtx.QueryRow(ctx, `SELECT count(*) FROM pg_locks WHERE NOT granted`).Scan(&n))
		return n > 0
	})
	select {
	case err := <-patient:
		t.Fatal("an append passed the lock:", err)
	case <-time.After(200 * time.Millisecond):
	}
	must(t, dbtx.Rollback(ctx))
	must(t, <-patient)
	all.Wait()
	for i := range 5 {
		stream := event.Stream(fmt.Sprint("late-", i))
		if got := stands(t, op.db.Log, stream); len(got) != 0 {
			t.Errorf("%s stands all the same", stream)
		}
	}
}

// TestPoison lets the database dislike one append of many: only that one fails.
func TestPoison(t *testing.T) {
	op := open(t, postgres.Options{})
	ctx := soon(t)
	execute(t, admin(t, op.url), `ALTER TABLE log.events ADD CHECK (name <> 'poison.v1')`)
	var all sync.WaitGroup
	for i := range 200 {
		stream := event.Stream(fmt.Sprint("s-", i))
		events := happened(stream, 0, 2)
		all.Go(func() {
			if i%50 != 7 {
				if a, err := op.db.Log.Append(ctx, stream, 0, events...); err != nil || a.Version != 2 {
					t.Errorf("a neighbour: %+v, %v", a, err)
				}
				return
			}
			events[1].Name = "poison.v1"
			_, err := op.db.Log.Append(ctx, stream, 0, events...)
			if err == nil || errors.Is(err, event.ErrUnknown) || postgres.Transient(err) {
				t.Error("the poison answered", err)
			}
		})
	}
	all.Wait()
	head, err := op.db.Log.Head(ctx)
	must(t, err)
	if head != 2*196 {
		t.Errorf("%d events stand, not %d", head, 2*196)
	}
}

// TestTwoProcesses appends from two stores at once and reads from a third: positions
// have no gap and come in order, whoever commits.
func TestTwoProcesses(t *testing.T) {
	one := open(t, postgres.Options{})
	stores := []*opener{one, one.again()}
	reader := one.again()
	ctx := soon(t)
	const writers, appends = 20, 50
	var all sync.WaitGroup
	for w := range writers {
		l := stores[w%2].db.Log
		all.Go(func() {
			stream := event.Stream(fmt.Sprint("s-", w))
			for v := range event.Version(appends) {
				if a, err := l.Append(ctx, stream, v, happened(stream, v, 1)...); err != nil || a.Version != v+1 {
					t.Errorf("%s at %d: %+v, %v", stream, v, a, err)
					return
				}
			}
		})
	}
	for r := range 4 {
		all.Go(func() {
			at := event.Position(0)
			for b, err := range reader.db.Log.Subscribe(ctx, 0, event.Filter{}, 3+10*r) {
				if err != nil {
					t.Error(err)
					return
				}
				for _, e := range b.Events {
					if at++; e.Position != at {
						t.Errorf("position %d came as number %d", e.Position, at)
						return
					}
				}
				if at == writers*appends {
					return
				}
			}
		})
	}
	all.Wait()
}
