package archiver_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/commands/archiver"
	domain "github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/archive"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

var errBroken = errors.New("broken")

// breaking is a store whose Restore reads some batches, and then an error.
type breaking struct {
	live
	batches int
}

func (s breaking) Restore(ctx context.Context, from eventlog.Position, events iter.Seq2[eventlog.Batch, error]) error {
	return s.live.Restore(ctx, from, func(yield func(eventlog.Batch, error) bool) {
		n := 0
		for b, err := range events {
			if n++; n > s.batches {
				yield(eventlog.Batch{}, errBroken)
				return
			}
			if !yield(b, err) {
				return
			}
		}
	})
}

// silent is a log that cannot record.
type silent struct{ port.Store }

func (silent) Append(context.Context, eventlog.Stream, eventlog.Version, ...eventlog.Event) (eventlog.Appended, error) {
	return eventlog.Appended{}, errBroken
}

// stored archives what is old, and returns a log with more to archive.
func stored(t *testing.T, e *engine, dir string) (*archiver.Archiver, live, eventlog.Position) {
	t.Helper()
	store := e.open()
	a := archiving(store, archive.NewFiles(archive.Dir(dir), nil))
	fill(t, a, 40)
	report, err := a.Pass(t.Context(), false)
	if check(t, err); report.Begins < 4*part {
		t.Fatal("the log begins at", report.Begins)
	}
	return a, store, report.Begins
}

// more appends events for two more segments.
func more(t *testing.T, a *archiver.Archiver) {
	t.Helper()
	from := len(streamOf(t, a, "group-1"))
	for i := range 2 * part {
		_, err := a.Log.Append(t.Context(), "group-1", eventlog.Version(from+i), eventlog.Event{
			ID: eventlog.DeriveID("group-1", eventlog.ID{3}, from+i), Name: "group.joined.v1", Data: []byte(`{}`),
		})
		check(t, err)
	}
}

// state checks what the archive records and where the store's log begins.
func state(t *testing.T, a *archiver.Archiver, begins eventlog.Position, held bool) {
	t.Helper()
	s, err := a.State(t.Context())
	check(t, err)
	stored, err := a.Store.Begins(t.Context())
	check(t, err)
	if s.Begins != begins || stored != begins || s.Held != held {
		t.Errorf("recorded: %d, held %v; the log begins at %d; want %d, held %v", s.Begins, s.Held, stored, begins, held)
	}
}

// A restore that fails changes nothing: the service archives as before, and another restore
// succeeds.
func TestRestoreFails(t *testing.T) {
	engines(t, func(t *testing.T, e *engine) {
		dir := t.TempDir()
		a, store, begins := stored(t, e, dir)
		defer e.close() //nolint:errcheck // the test is over
		before := all(t, a)
		fails := func(when string, why error) {
			t.Helper()
			if _, _, err := a.Restore(t.Context(), 1); !errors.Is(err, why) {
				t.Errorf("%s: %v", when, err)
			}
			state(t, a, begins, false)
			if diff := cmp.Diff(before, all(t, a)[:len(before)]); diff != "" {
				t.Errorf("%s: %s", when, diff)
			}
			more(t, a)
			report, err := a.Pass(t.Context(), false)
			if check(t, err); report.Held || report.Begins <= begins {
				t.Errorf("%s: the next pass: %+v", when, report)
			}
			begins = report.Begins
			state(t, a, begins, false)
		}
		for batches := range 4 {
			a.Store = breaking{store, batches}
			fails(fmt.Sprint("after batches: ", batches), errBroken)
		}
		a.Store = store
		listed, err := store.Segments(t.Context())
		check(t, err)
		name := filepath.Join(dir, listed[3].Name)
		sound, err := os.ReadFile(name)
		check(t, err)
		damaged := slices.Clone(sound)
		damaged[len(damaged)/3] ^= 1
		check(t, os.WriteFile(name, damaged, 0o600))
		if _, _, err := a.Restore(t.Context(), 1); !errors.Is(err, domain.ErrDamaged) || !contains(err, listed[3].Name) {
			t.Errorf("from a damaged segment: %v", err)
		}
		state(t, a, begins, false)
		check(t, os.WriteFile(name, sound, 0o600))

		before = all(t, a)
		_, _, err = a.Restore(t.Context(), 1)
		check(t, err)
		state(t, a, 1, true)
		if diff := cmp.Diff(before, all(t, a)[:len(before)]); diff != "" {
			t.Error(diff)
		}
		more(t, a)
		report, err := a.Pass(t.Context(), true)
		check(t, err)
		state(t, a, report.Begins, false)
	})
}

// A restore that could not be recorded is recorded by the next pass, or by the next restore,
// and holds the events.
func TestRestoreNotRecorded(t *testing.T) {
	for name, next := range map[string]func(t *testing.T, a *archiver.Archiver){
		"pass": func(t *testing.T, a *archiver.Archiver) {
			report, err := a.Pass(t.Context(), false)
			if check(t, err); !report.Held || len(report.Stored) < 2 {
				t.Errorf("the next pass: %+v", report)
			}
		},
		"restore": func(t *testing.T, a *archiver.Archiver) {
			if _, _, err := a.Restore(t.Context(), part+1); !errors.Is(err, archiver.ErrNothing) {
				t.Errorf("the next restore: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			engines(t, func(t *testing.T, e *engine) {
				a, _, _ := stored(t, e, t.TempDir())
				defer e.close() //nolint:errcheck // the test is over
				whole := a.Log
				a.Log = silent{whole}
				if _, _, err := a.Restore(t.Context(), part+1); !errors.Is(err, errBroken) {
					t.Error(err)
				}
				a.Log = whole
				more(t, a)
				next(t, a)
				state(t, a, part+1, true)
			})
		})
	}
}

// An earlier version recorded a restore before the store had done it. If the store then failed,
// nothing is held once a pass has looked.
func TestRecordedButNotRestored(t *testing.T) {
	engines(t, func(t *testing.T, e *engine) {
		a, _, begins := stored(t, e, t.TempDir())
		defer e.close() //nolint:errcheck // the test is over
		name, data, err := domain.Codec().Encode(domain.Restored{From: 1})
		check(t, err)
		_, err = a.Log.Append(t.Context(), domain.Stream, eventlog.Version(len(streamOf(t, a, domain.Stream))),
			eventlog.Event{ID: eventlog.ID{5}, Name: name, Data: data})
		check(t, err)
		if s, err := a.State(t.Context()); err != nil || !s.Held {
			t.Fatalf("%+v, %v", s, err)
		}
		more(t, a)
		report, err := a.Pass(t.Context(), false)
		if check(t, err); report.Held || report.Begins <= begins {
			t.Errorf("the pass: %+v", report)
		}
		state(t, a, report.Begins, false)
	})
}

// childRestores archives, restores and dies meanwhile.
func childRestores(a *archiver.Archiver) int {
	ctx := context.Background()
	_, err := a.Pass(ctx, false)
	if err == nil {
		_, _, err = a.Restore(ctx, part+1)
	}
	fmt.Fprintln(os.Stderr, "not killed:", err)
	return 1
}

// After a kill at any point of a restore, the log reads as before. The events are in the store
// and held, or the restore has not happened.
func TestKilledWhileRestoring(t *testing.T) {
	for name, points := range map[string][]string{
		"embedded": append(embedded.RestoreCrashPoints(), archiver.RestoreCrashPoints()...),
		"postgres": append(postgres.RestoreCrashPoints(), archiver.RestoreCrashPoints()...),
	} {
		for _, point := range points {
			t.Run(name+"/"+point, func(t *testing.T) {
				a, before := killing(t, name, point)
				same := func(when string) {
					t.Helper()
					if diff := cmp.Diff(before, all(t, a)[:len(before)]); diff != "" {
						t.Fatalf("%s: %s", when, diff)
					}
				}
				same("after the kill")
				report, err := a.Pass(t.Context(), false)
				check(t, err)
				restored := !strings.HasSuffix(point, ".recalled")
				if report.Held != restored || (report.Begins == part+1) != restored {
					t.Errorf("the pass after the kill: %+v", report)
				}
				state(t, a, report.Begins, restored)
				same("after the pass")
				from, _, err := a.Restore(t.Context(), 1)
				if check(t, err); from != 1 {
					t.Error("restored from", from)
				}
				state(t, a, 1, true)
				same("restored")
				report, err = a.Pass(t.Context(), true)
				check(t, err)
				state(t, a, report.Begins, false)
				same("dropped again")
			})
		}
	}
}
