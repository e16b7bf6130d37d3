package archiver_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/commands/archiver"
	domain "github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/archive"
)

// streamOf reads one stream of the whole log.
func streamOf(t testing.TB, a *archiver.Archiver, stream eventlog.Stream) (events []eventlog.Recorded) {
	t.Helper()
	for r, err := range a.Log.ReadStream(t.Context(), stream, 0) {
		check(t, err)
		events = append(events, r)
	}
	return events
}

// upTo is a log that is read event by event, and up to a position only.
type upTo struct {
	port.Store
	past eventlog.Position
}

func (l upTo) ReadAll(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		for b, err := range l.Store.ReadAll(ctx, after, f, most) {
			for _, r := range b.Events {
				if r.Position >= l.past {
					yield(eventlog.Batch{}, fmt.Errorf("position %d is read: only events below %d were dropped", r.Position, l.past))
					return
				}
				if !yield(eventlog.Batch{Events: []eventlog.Recorded{r}, Next: r.Position}, nil) {
					return
				}
			}
			if err != nil {
				yield(b, err)
				return
			}
		}
	}
}

// The log reads the same before, during and after the move of its events, and after their
// restore. Streams that are not settled are read without a file.
func TestMoveAndBack(t *testing.T) {
	engines(t, func(t *testing.T, e *engine) {
		dir := t.TempDir()
		store := e.open()
		defer e.close() //nolint:errcheck // the test is over
		a := archiving(store, archive.NewFiles(archive.Dir(dir), nil))
		fill(t, a, 40)
		before := all(t, a)
		same := func(when string) {
			t.Helper()
			after := all(t, a)
			if diff := cmp.Diff(before, after[:min(len(after), len(before))]); diff != "" {
				t.Fatalf("%s: %s", when, diff)
			}
			byStream := map[eventlog.Stream][]eventlog.Recorded{}
			for _, r := range after {
				byStream[r.Stream] = append(byStream[r.Stream], r)
			}
			for stream, want := range byStream {
				if diff := cmp.Diff(want, streamOf(t, a, stream)); diff != "" {
					t.Fatalf("%s: %s: %s", when, stream, diff)
				}
			}
		}
		report, err := a.Pass(t.Context(), false)
		check(t, err)
		if want := len(before) / part; len(report.Stored) < want-1 || report.Begins != report.Stored[len(report.Stored)-1].Past {
			t.Fatalf("%d segments, the log begins at %d", len(report.Stored), report.Begins)
		}
		same("archived")
		fill40 := eventlog.Version(len(streamOf(t, a, "group-1")))
		if _, err := a.Log.Append(t.Context(), "tx-1-0001", 4, eventlog.Event{ID: eventlog.ID{7}, Name: "tx.finality_violated.v1", Data: []byte("{}")}); err != nil {
			t.Fatal("a settled stream takes no more events:", err)
		}
		if _, err := a.Log.Append(t.Context(), "group-1", fill40, eventlog.Event{ID: eventlog.ID{8}, Name: "group.joined.v1", Data: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Log.Append(t.Context(), "tx-1-0002", 0, eventlog.Event{ID: eventlog.ID{9}, Name: "tx.accepted.v1", Data: []byte("{}")}); !errors.As(err, new(*eventlog.ConflictError)) {
			t.Fatal("a settled stream begins anew:", err)
		}
		same("grown")
		for r, err := range store.ReadStream(t.Context(), "tx-1-0000", 0) {
			if check(t, err); r.Version == 1 && r.Position >= report.Begins {
				t.Error("an open stream's first event is at", r.Position)
			}
		}
		if again, err := a.Pass(t.Context(), false); err != nil || len(again.Stored) > 1 {
			t.Fatal("a second pass stored", again.Stored, err)
		}
		same("passed again")

		from, past, err := a.Restore(t.Context(), 3*part+2)
		check(t, err)
		if begins, err := store.Begins(t.Context()); err != nil || from != 3*part+1 || begins != from || past < report.Begins {
			t.Fatalf("restored from %d to %d, the log begins at %d: %v", from, past-1, begins, err)
		}
		same("restored")
		held, err := a.Pass(t.Context(), false)
		if check(t, err); !held.Held || held.Begins != from {
			t.Errorf("what was restored did not stay: %+v", held)
		}
		dropped, err := a.Pass(t.Context(), true)
		if check(t, err); dropped.Held || dropped.Begins < report.Begins {
			t.Errorf("it does not go again: %+v", dropped)
		}
		same("dropped again")
		whole := a.Log
		a.Log = upTo{whole, dropped.Begins}
		if _, _, err := a.Restore(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		a.Log = whole
		same("restored whole")
		var names []string
		for _, r := range streamOf(t, a, domain.Stream) {
			names = append(names, r.Name+" by "+r.Meta.Actor)
		}
		if n := len(names); names[0] != "archive.stored.v1 by test" || names[n-1] != "archive.restored.v1 by test" {
			t.Error("recorded:", names)
		}
	})
}

// A read of a store without its archive fails; it never reports missing events as absent.
func TestNothingIsSkippedInSilence(t *testing.T) {
	engines(t, func(t *testing.T, e *engine) {
		dir := t.TempDir()
		store := e.open()
		defer e.close() //nolint:errcheck // the test is over
		a := archiving(store, archive.NewFiles(archive.Dir(dir), nil))
		fill(t, a, 20)
		report, err := a.Pass(t.Context(), false)
		check(t, err)
		for _, err := range store.ReadAll(t.Context(), 5, eventlog.Filter{Names: []string{"group."}}, 3) {
			if gone := new(domain.GoneError); !errors.As(err, &gone) || gone.Begins != report.Begins {
				t.Errorf("read all: %v", err)
			}
			break
		}
		for _, err := range store.ReadAll(t.Context(), ^eventlog.Position(0), eventlog.Filter{}, 3) {
			if gone := new(domain.GoneError); errors.As(err, &gone) {
				t.Errorf("read beyond the end: %v", err)
			}
			break
		}
		for _, err := range store.Subscribe(t.Context(), 0, eventlog.Filter{}, 3) {
			if gone := new(domain.GoneError); !errors.As(err, &gone) {
				t.Errorf("subscribe: %v", err)
			}
			break
		}
		told := false
		for _, err := range store.ReadStream(t.Context(), "tx-1-0001", 1) {
			gone := new(domain.GoneError)
			told = errors.As(err, &gone)
		}
		if !told {
			t.Error("a settled stream reads as if it had ended")
		}
		second := report.Stored[1]
		fails := func(what error) {
			t.Helper()
			a := archiving(store, archive.NewFiles(archive.Dir(dir), nil))
			var got error
			for _, err := range a.Log.ReadAll(t.Context(), 0, eventlog.Filter{}, 100) {
				got = err
			}
			if !errors.Is(got, what) || !contains(got, second.Name) {
				t.Errorf("read: %v, want %v of %s", got, what, second.Name)
			}
			if err := a.Files.Verify(t.Context(), second); !errors.Is(err, what) || !contains(err, second.Name) {
				t.Errorf("verify: %v, want %v of %s", err, what, second.Name)
			}
		}
		name := filepath.Join(dir, second.Name)
		sound, err := os.ReadFile(name)
		check(t, err)
		damaged := append([]byte(nil), sound...)
		damaged[len(damaged)/3] ^= 1
		check(t, os.WriteFile(name, damaged, 0o600))
		fails(domain.ErrDamaged)
		check(t, os.Remove(name))
		fails(domain.ErrMissing)
	})
}

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// Young events stay, and so do events that do not fill a segment.
func TestAge(t *testing.T) {
	store := onEmbedded(t.TempDir(), nil)
	a := archiving(store.open(), archive.NewFiles(archive.Dir(t.TempDir()), nil))
	defer store.close() //nolint:errcheck // the test is over
	fill(t, a, 20)
	now := time.Now()
	a.Settings.After = time.Hour
	for _, c := range []struct {
		later time.Duration
		want  int
	}{{0, 0}, {59 * time.Minute, 0}, {61 * time.Minute, (20*5 - 8) / part}} {
		a.Now = func() time.Time { return now.Add(c.later) }
		plan, err := a.Plan(t.Context())
		check(t, err)
		due, err := plan.Due(t.Context())
		check(t, err)
		if len(due) != c.want {
			t.Errorf("after %s %d segments are due, not %d", c.later, len(due), c.want)
		}
	}
}
