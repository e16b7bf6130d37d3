package embedded_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// A log can be read while another process appends to it. Opening a missing log creates nothing.
// Events that the other process has dropped are not skipped silently.
func TestBeside(t *testing.T) {
	dir := t.TempDir()
	if _, err := embedded.OpenBeside(dir); err == nil {
		t.Error("a log that is not there was opened")
	}
	if made, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(made) > 0 {
		t.Errorf("%v were made, %v", made, err)
	}
	db, err := embedded.Open(dir, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // the test is over
	beside, err := embedded.OpenBeside(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close() //nolint:errcheck // likewise
	read := func(after eventlog.Position) (n int, err error) {
		for batch, err := range beside.ReadAll(t.Context(), after, eventlog.Filter{}, 2) {
			if err != nil {
				return n, err
			}
			n += len(batch.Events)
		}
		return n, nil
	}
	for n := range 5 {
		e := eventlog.Event{ID: eventlog.DeriveID("s", eventlog.ID{1}, n), Name: "a.v1", Data: []byte(`{}`)}
		if _, err := db.Log().Append(t.Context(), "s", eventlog.Version(n), e); err != nil {
			t.Fatal(err)
		}
		if got, err := read(0); got != n+1 || err != nil {
			t.Errorf("%d of %d events are read, %v", got, n+1, err)
		}
		if head, err := beside.Head(t.Context()); err != nil || head != eventlog.Position(n+1) {
			t.Errorf("the head is %d, %v", head, err)
		}
	}
	if err := db.Log().KeepSegment(t.Context(), archive.Segment{First: 1, Past: 4, Name: "some"}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Log().Drop(t.Context(), 4, archive.Rule{}); err != nil {
		t.Fatal(err)
	}
	var gone *archive.GoneError
	if _, err := read(0); !errors.As(err, &gone) || gone.Begins != 4 {
		t.Errorf("what was dropped: %v", err)
	}
	if got, err := read(3); got != 2 || err != nil {
		t.Errorf("%d of 2 events are read, %v", got, err)
	}
	if all, err := beside.Segments(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}
