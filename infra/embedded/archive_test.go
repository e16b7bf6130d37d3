package embedded

import (
	"errors"
	"testing"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// The next drop removes events that an unfinished restore has put back. Until then they are not
// part of the log, and the stream keeps its version.
func TestUnfinishedRestore(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, Options{AllowDataLoss: true})
	check(t, err)
	defer func() { db.Close() }() //nolint:errcheck // the test is over
	l := db.Log()
	for i, name := range []string{"begun.v1", "grown.v1", "grown.v1", "ended.v1", "begun.v1"} {
		e := eventlog.Event{ID: eventlog.DeriveID("s", eventlog.ID{1}, i), Name: name, Data: []byte(`{}`)}
		stream, version := eventlog.Stream("s"), eventlog.Version(i)
		if i == 4 {
			stream, version = "other", 0
		}
		_, err := l.Append(t.Context(), stream, version, e)
		check(t, err)
	}
	var events []eventlog.Recorded
	for r, err := range l.ReadStream(t.Context(), "s", 0) {
		check(t, err)
		events = append(events, r)
	}
	check(t, l.KeepSegment(t.Context(), archive.Segment{First: 1, Past: 5, Name: "one"}))
	rule := archive.Rule{{Prefix: "s", Names: []string{"ended."}}}
	drop := func() {
		t.Helper()
		begins, err := l.Drop(t.Context(), 5, rule)
		if check(t, err); begins != 5 {
			t.Errorf("the log begins at %d", begins)
		}
	}
	rows := func(want int) {
		t.Helper()
		check(t, l.file.readers.read(t.Context(), func(conn *sqlite.Conn) error {
			return query(conn, "SELECT count(*) FROM events WHERE pos < 5", func(s *sqlite.Stmt) bool {
				if got := s.ColumnInt(0); got != want {
					t.Errorf("%d dropped events are in the file, not %d", got, want)
				}
				return false
			})
		}))
	}
	drop()
	rows(0)
	broken := errors.New("broken")
	err = l.Restore(t.Context(), 1, func(yield func(eventlog.Batch, error) bool) {
		if yield(eventlog.Batch{Events: events[:2]}, nil) {
			yield(eventlog.Batch{}, broken)
		}
	})
	if !errors.Is(err, broken) {
		t.Errorf("the restore: %v", err)
	}
	rows(2)
	for _, err := range l.ReadStream(t.Context(), "s", 0) {
		if gone := new(archive.GoneError); !errors.As(err, &gone) || gone.Begins != 5 {
			t.Errorf("read: %v", err)
		}
		break
	}
	check(t, db.Close()) // it remembers versions
	db, err = Open(dir, Options{AllowDataLoss: true})
	check(t, err)
	l = db.Log()
	if version, err := l.Version(t.Context(), "s"); err != nil || version != 4 {
		t.Errorf("the version is %d, %v", version, err)
	}
	late := eventlog.Event{ID: eventlog.ID{9}, Name: "late.v1", Data: []byte(`{}`)}
	var conflict *eventlog.ConflictError
	if _, err := l.Append(t.Context(), "s", 2, late); !errors.As(err, &conflict) || conflict.Actual != 4 {
		t.Errorf("an append after the events that were put back: %v", err)
	}
	_, err = l.Append(t.Context(), "s", 4, late)
	check(t, err)
	drop()
	rows(0)
	check(t, l.Restore(t.Context(), 1, func(yield func(eventlog.Batch, error) bool) { yield(eventlog.Batch{Events: events}, nil) }))
	rows(4)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
