package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// appendWait bounds an append that nothing should delay.
const appendWait = 10 * time.Second

// droppedEvents is the number of events that shortened drops.
const droppedEvents = 16

// shortened is a log that has dropped its first events.
type shortened struct {
	*opener
	owner  *pgx.Conn
	events []eventlog.Recorded // all events, the dropped ones first
}

func shorten(t *testing.T, o postgres.Options) *shortened {
	t.Helper()
	s := &shortened{opener: open(t, o)}
	s.owner = admin(t, s.url)
	execute(t, s.owner, fmt.Sprintf(`SELECT log.extend(1, %d)`, droppedEvents))
	for i := range eventlog.Version(droppedEvents + 4) {
		_, err := s.db.Log.Append(soon(t), "s", i, happened("s", i, 1)...)
		must(t, err)
	}
	s.events = stands(t, s.db.Log, "s")
	must(t, s.db.Log.KeepSegment(soon(t), archive.Segment{First: 1, Past: droppedEvents + 1, Name: "one"}))
	s.drop(t)
	return s
}

// drop drops the first events: they are of a settled stream.
func (s *shortened) drop(t *testing.T) {
	t.Helper()
	begins, err := s.db.Log.Drop(soon(t), droppedEvents+1, archive.Rule{{Prefix: "s"}})
	if must(t, err); begins != droppedEvents+1 {
		t.Fatalf("the log begins at %d", begins)
	}
}

// segments yields the dropped events in batches of four. between is called before each batch.
func (s *shortened) segments(between func(batch int) error) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		for i := 0; i < droppedEvents; i += 4 {
			if err := between(i / 4); err != nil {
				yield(eventlog.Batch{}, err)
				return
			}
			if !yield(eventlog.Batch{Events: s.events[i : i+4]}, nil) {
				return
			}
		}
	}
}

// begins checks the position at which the log begins, and that no table of a restore is left.
func (s *shortened) begins(t *testing.T, want eventlog.Position) {
	t.Helper()
	begins, err := s.db.Log.Begins(soon(t))
	if must(t, err); begins != want {
		t.Errorf("the log begins at %d, not %d", begins, want)
	}
	var left int
	must(t, s.owner.QueryRow(soon(t), `SELECT count(*) FROM pg_tables WHERE schemaname = 'log' AND tablename LIKE 'recalled%'`).Scan(&left))
	if left != 0 {
		t.Errorf("%d tables of restores are left", left)
	}
	if want > 1 {
		return
	}
	if diff := cmp.Diff(s.events, stands(t, s.db.Log, "s")); diff != "" {
		t.Error(diff)
	}
}

func untilEnd(int) error { return nil }

// While a restore reads segments, it holds no database transaction, and processes that connect
// anew make partitions and append.
func TestRestoreBesideAppends(t *testing.T) {
	s := shorten(t, postgres.Options{})
	partition := int64(30_000_000)
	must(t, s.db.Log.Restore(soon(t), 1, s.segments(func(batch int) error {
		var idle int
		must(t, s.owner.QueryRow(soon(t), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND state LIKE 'idle in transaction%'`).Scan(&idle))
		if idle != 0 {
			t.Errorf("batch %d: %d sessions are idle in a transaction", batch, idle)
		}
		o := s.o
		o.Partition = partition
		partition *= 2 // beyond the partitions that there are
		other := &opener{t: t, url: s.url, o: o}
		other.start()
		defer other.close() //nolint:errcheck // the append has been answered
		ctx, cancel := context.WithTimeout(t.Context(), appendWait)
		defer cancel()
		stream := eventlog.Stream(fmt.Sprint("beside-", batch))
		_, err := other.db.Log.Append(ctx, stream, 0, happened(stream, 0, 1)...)
		return err
	})))
	s.begins(t, 1)
	var parts, holes int
	must(t, s.owner.QueryRow(soon(t), `SELECT count(*), count(*) FILTER (WHERE first <> before)
		FROM (SELECT first, lag(past, 1, 1::bigint) OVER (ORDER BY first) AS before FROM log.partitions) p`).Scan(&parts, &holes))
	if parts < 5 || holes != 0 {
		t.Errorf("%d partitions, %d do not follow the one before", parts, holes)
	}
	s.drop(t)
	s.begins(t, droppedEvents+1)
}

// A restore that waits for the head holds no lock that the head's holder needs.
func TestRestoreWaitsForHead(t *testing.T) {
	s := shorten(t, postgres.Options{})
	committer, err := admin(t, s.url).Begin(soon(t))
	must(t, err)
	_, err = committer.Exec(soon(t), `SELECT FROM log.head FOR UPDATE`)
	must(t, err)
	restored := make(chan error, 1)
	go func() { restored <- s.db.Log.Restore(soon(t), 1, s.segments(untilEnd)) }()
	var locked string
	eventually(t, "a restore that waits", func() bool {
		var waiting int
		must(t, s.owner.QueryRow(soon(t), `WITH waiting AS (SELECT DISTINCT pid FROM pg_locks WHERE NOT granted)
			SELECT (SELECT count(*) FROM waiting), coalesce(string_agg(l.relation::regclass || ' ' || l.mode, ', '), '')
			FROM pg_locks l JOIN waiting USING (pid)
			WHERE l.granted AND l.relation IN ('log.partitions'::regclass, 'log.events'::regclass)
			AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&waiting, &locked))
		return waiting > 0
	})
	if locked != "" {
		t.Error("while it waits, it holds", locked)
	}
	_, err = committer.Exec(soon(t), `SELECT log.extend(60000000, 30000000)`)
	must(t, err)
	must(t, committer.Commit(soon(t)))
	must(t, <-restored)
	s.begins(t, 1)
}

// A reader must not meet the new beginning without the restored events. So a restore waits for
// readers at its end. Appends continue meanwhile, since it waits without a lock.
func TestRestoreWaitsForReaders(t *testing.T) {
	logged := make(lines, 100)
	s := shorten(t, postgres.Options{Logger: slog.New(slog.NewTextHandler(logged, nil))})
	reader, err := admin(t, s.url).Begin(soon(t))
	must(t, err)
	_, err = reader.Exec(soon(t), `SELECT FROM log.events LIMIT 1`)
	must(t, err)
	restored := make(chan error, 1)
	go func() { restored <- s.db.Log.Restore(soon(t), 1, s.segments(untilEnd)) }()
	for range 2 {
		select {
		case line := <-logged:
			if !strings.Contains(line, "attach restored events") || !strings.Contains(line, "a transaction has read the log") {
				t.Error("it waited for a lock:", line)
			}
		case <-soon(t).Done():
			t.Fatal("no try has ended")
		}
	}
	_, err = s.db.Log.Append(soon(t), "meanwhile", 0, happened("meanwhile", 0, 1)...)
	must(t, err)
	begins, err := s.db.Log.Begins(soon(t))
	if must(t, err); begins != droppedEvents+1 {
		t.Errorf("the log begins at %d already", begins)
	}
	must(t, reader.Rollback(soon(t)))
	must(t, <-restored)
	s.begins(t, 1)
}

// lines receives the lines of a log.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// A failed restore leaves nothing, whatever fails. The next one succeeds.
func TestRestoreFails(t *testing.T) {
	s := shorten(t, postgres.Options{})
	broken := errors.New("broken")
	for at := range droppedEvents / 4 {
		err := s.db.Log.Restore(soon(t), 1, s.segments(func(batch int) error {
			if batch == at {
				return broken
			}
			return nil
		}))
		if !errors.Is(err, broken) {
			t.Errorf("batch %d: %v", at, err)
		}
		s.begins(t, droppedEvents+1)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := s.db.Log.Restore(ctx, 1, s.segments(func(batch int) error {
		cancel()
		return nil
	})); !errors.Is(err, context.Canceled) {
		t.Error("canceled:", err)
	}
	s.begins(t, droppedEvents+1)
	if err := s.db.Log.Restore(soon(t), 1, func(yield func(eventlog.Batch, error) bool) {
		yield(eventlog.Batch{Events: s.events[:8]}, nil)
	}); err == nil || !strings.Contains(err.Error(), "end before position 9") {
		t.Error("half of the events:", err)
	}
	_, err := s.db.Log.Append(soon(t), "after", 0, happened("after", 0, 1)...)
	must(t, err)
	must(t, s.db.Log.Restore(soon(t), 1, s.segments(untilEnd)))
	s.begins(t, 1)
}

// A restore that another one has overtaken fails, and does not disturb the other. A drop removes
// the table of a restore that a crash has ended.
func TestRestoreOvertaken(t *testing.T) {
	s := shorten(t, postgres.Options{})
	err := s.db.Log.Restore(soon(t), 1, s.segments(func(batch int) error {
		if batch == 2 {
			return s.db.Log.Restore(soon(t), 1, s.segments(untilEnd))
		}
		return nil
	}))
	if err == nil {
		t.Error("both have restored")
	}
	s.begins(t, 1)
	s.drop(t)
	execute(t, s.owner, `SELECT log.recall(1, 17)`)
	s.drop(t)
	s.begins(t, droppedEvents+1)
}

// A role that only reads the log cannot restore events of its own.
func TestReadersCannotRestore(t *testing.T) {
	s := shorten(t, postgres.Options{})
	role := "reader_" + testenv.Random(4)
	execute(t, s.owner, `CREATE ROLE `+role)
	t.Cleanup(func() {
		execute(t, s.owner, `RESET ROLE; DROP OWNED BY `+role)
		execute(t, s.owner, `DROP ROLE `+role)
	})
	execute(t, s.owner, `GRANT USAGE ON SCHEMA log TO `+role)
	for _, call := range []string{`log.recall(1, 17)`, `log.rejoin('recalled_1', 1, 17)`, `log.discard(NULL)`} {
		execute(t, s.owner, `SET ROLE `+role)
		if _, err := s.owner.Exec(soon(t), `SELECT `+call); err == nil || !strings.Contains(err.Error(), "may not insert into log.events") {
			t.Errorf("%s: %v", call, err)
		}
		execute(t, s.owner, `RESET ROLE`)
	}
	execute(t, s.owner, `GRANT INSERT ON log.events TO `+role)
	execute(t, s.owner, `SET ROLE `+role)
	execute(t, s.owner, `SELECT log.recall(1, 17)`)
	execute(t, s.owner, `INSERT INTO log.`+recalledTable(t, s.owner)+` (pos, stream, version, id, name, data, actor, trace) VALUES (1, 1, 1, gen_random_uuid(), '', '', '', '')`)
}

// recalledTable returns the name of a restore's table.
func recalledTable(t *testing.T, conn *pgx.Conn) (name string) {
	t.Helper()
	must(t, conn.QueryRow(soon(t), `SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'recalled%'`).Scan(&name))
	return name
}
