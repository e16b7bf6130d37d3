package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// TestLockHeld makes another session hold the head row. An append whose context ends before its
// turn is not written, and its error says so.
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
			stream := eventlog.Stream(fmt.Sprint("late-", i))
			_, err := op.db.Log.Append(short, stream, 0, happened(stream, 0, 1)...)
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, eventlog.ErrUnknown) {
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
		stream := eventlog.Stream(fmt.Sprint("late-", i))
		if got := stands(t, op.db.Log, stream); len(got) != 0 {
			t.Errorf("%s stands all the same", stream)
		}
	}
}

// TestPoison makes the database refuse one append of many: only that one fails.
func TestPoison(t *testing.T) {
	op := open(t, postgres.Options{})
	ctx := soon(t)
	execute(t, admin(t, op.url), `ALTER TABLE log.events ADD CHECK (name <> 'poison.v1')`)
	var all sync.WaitGroup
	for i := range 200 {
		stream := eventlog.Stream(fmt.Sprint("s-", i))
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
			if err == nil || errors.Is(err, eventlog.ErrUnknown) || postgres.Transient(err) {
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

// TestTwoProcesses appends from two stores at once and reads from a third. Positions have no
// gap and come in order, whichever store commits.
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
			stream := eventlog.Stream(fmt.Sprint("s-", w))
			for v := range eventlog.Version(appends) {
				if a, err := l.Append(ctx, stream, v, happened(stream, v, 1)...); err != nil || a.Version != v+1 {
					t.Errorf("%s at %d: %+v, %v", stream, v, a, err)
					return
				}
			}
		})
	}
	for r := range 4 {
		all.Go(func() { inOrder(ctx, t, reader.db.Log, 0, writers*appends, 3+10*r) })
	}
	all.Wait()
}

// inOrder reads from one position to another, in batches of at most batch, and checks that
// positions are consecutive.
func inOrder(ctx context.Context, t *testing.T, l *postgres.Log, at, to eventlog.Position, batch int) {
	for b, err := range l.Subscribe(ctx, at, eventlog.Filter{}, batch) {
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
		if at >= to {
			return
		}
	}
}

// TestReadersComeAndGo runs a reader next to others that come and go, so that at times the
// log's end is read once for all, and at times by each reader. It sees every event, in order.
func TestReadersComeAndGo(t *testing.T) {
	one := open(t, postgres.Options{})
	l, ctx := one.db.Log, soon(t)
	const appends, others, stay = 600, 8, 5
	var all sync.WaitGroup
	all.Go(func() { inOrder(ctx, t, l, 0, appends, 7) })
	var written atomic.Int64
	for range others {
		all.Go(func() {
			for at := written.Load(); at < appends; at = written.Load() {
				inOrder(ctx, t, l, eventlog.Position(at), eventlog.Position(min(at+stay, appends)), 7)
			}
		})
	}
	for v := range eventlog.Version(appends) {
		_, err := l.Append(ctx, "s", v, happened("s", v, 1)...)
		must(t, err)
		written.Add(1)
	}
	all.Wait()
}

// TestOrderOfCommits makes the writer that began first commit last. A reader of a table with a
// serial column, which asks for rows after the last it has seen, never sees that writer's row.
// A reader of the log misses no event: the writer that began first has the lock.
func TestOrderOfCommits(t *testing.T) {
	op := open(t, postgres.Options{})
	ctx := soon(t)
	slow, quick, reader := admin(t, op.url), admin(t, op.url), admin(t, op.url)
	execute(t, slow, `CREATE TABLE naive (id bigserial PRIMARY KEY, who text)`)
	var last int64
	missed := 2
	follow := func() {
		rows, err := reader.Query(ctx, `SELECT id FROM naive WHERE id > $1 ORDER BY id`, last)
		must(t, err)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		must(t, err)
		for _, last = range ids {
			missed--
		}
	}
	execute(t, slow, `BEGIN`)
	execute(t, slow, `INSERT INTO naive (who) VALUES ('slow')`)
	execute(t, quick, `INSERT INTO naive (who) VALUES ('quick')`)
	follow()
	execute(t, slow, `COMMIT`)
	follow()
	if missed != 1 {
		t.Errorf("the naive reader missed %d of 2 rows: it is no control", missed)
	}

	// The same with the log: the slow writer has inserted its row and not committed.
	execute(t, slow, `BEGIN`)
	execute(t, slow, `UPDATE log.head SET pos = pos + 1`)
	execute(t, slow, `INSERT INTO log.streams (no, version, last_pos, name) VALUES (1, 1, 1, 'slow')`)
	execute(t, slow, `SELECT log.extend(1000000, 1000000)`)
	execute(t, slow, `INSERT INTO log.events (pos, stream, version, id, name, data, actor, trace) VALUES (1, 1, 1, gen_random_uuid(), 'test.happened.v1', '{}', '', '')`)
	appended := make(chan error, 1)
	go func() {
		_, err := op.db.Log.Append(ctx, "quick", 0, happened("quick", 0, 1)...)
		appended <- err
	}()
	var seen []eventlog.Position
	reading, stop := context.WithCancel(ctx)
	defer stop()
	waiting := func() (n int) {
		must(t, reader.QueryRow(ctx, `SELECT count(*) FROM pg_locks WHERE NOT granted`).Scan(&n))
		return n
	}
	eventually(t, "the quick one's wait", func() bool { return waiting() > 0 })
	execute(t, slow, `COMMIT`)
	must(t, <-appended)
	for b, err := range op.db.Log.Subscribe(reading, 0, eventlog.Filter{}, 10) {
		must(t, err)
		for _, r := range b.Events {
			seen = append(seen, r.Position)
		}
		if len(seen) == 2 {
			break
		}
	}
	if seen[0] != 1 || seen[1] != 2 {
		t.Errorf("seen are %v", seen)
	}
}

// No event lies in a partition that its own transaction has made. Readers may see the rows of such a
// transaction before its partition, and would never read the events.
func TestPartitionsAreMadeBeforeTheirEvents(t *testing.T) {
	op := open(t, postgres.Options{Partition: 4000})
	ctx, conn := soon(t), admin(t, op.url)
	for i := range 3 {
		stream := eventlog.Stream(fmt.Sprint("s-", i))
		_, err := op.db.Log.Append(ctx, stream, 0, happened(stream, 0, 1)...)
		must(t, err)
		execute(t, conn, `UPDATE log.head SET pos = pos + 30000`) // as other processes' appends
	}
	var events, early int
	must(t, conn.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE e.xmin::text = p.xmin::text)
		FROM log.events e JOIN log.partitions p ON e.pos >= p.first AND e.pos < p.past`).Scan(&events, &early))
	if events != 3 || early != 0 {
		t.Errorf("of %d events %d lie in a partition of their own transaction", events, early)
	}
}
