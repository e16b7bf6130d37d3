package auditor_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/auditor"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/commands/archiver"
	domain "github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/archive"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// part is the number of positions in a segment, and in a partition.
const part = 20

// archived moves all full segments into files of a folder.
func (b backend) archived(t *testing.T, shelf string) {
	t.Helper()
	var live interface {
		archive.Live
		archiver.Store
	}
	if b.store.Engine == config.Embedded {
		db, err := embedded.Open(b.store.Dir, embedded.Options{AllowDataLoss: true})
		check(t, err)
		defer func() { check(t, db.Close()) }()
		live = db.Log()
	} else {
		db, err := postgres.Open(t.Context(), b.store.URL.Reveal(), postgres.Options{})
		check(t, err)
		defer func() { check(t, db.Close(context.Background())) }()
		live = db.Log
	}
	files := archive.NewFiles(archive.Dir(shelf), nil)
	a := archiver.Archiver{
		Log: archive.NewStore(live, files), Store: live, Files: files, Settings: archiver.Settings{Segment: part},
		Now: time.Now, Random: rand.Reader, Logger: slog.New(slog.DiscardHandler), Actor: eventlog.Meta{Actor: "test"},
	}
	report, err := a.Pass(t.Context(), true)
	check(t, err)
	if report.Begins != 3*part+1 {
		t.Fatalf("the log begins at %d", report.Begins)
	}
}

// inspected verifies a partly archived log.
func (b backend) inspected(t *testing.T, shelf string) (report auditor.Report, events []eventlog.Recorded) {
	t.Helper()
	log, err := app.InspectLog(t.Context(), config.Config{Store: b.store, Archive: config.Archive{Dir: shelf}}, slog.New(slog.DiscardHandler))
	check(t, err)
	defer func() { check(t, log.Close()) }()
	report, err = auditor.Verify(t.Context(), log, auditor.Options{Keys: keys(t)})
	check(t, err)
	if report.Clean {
		events, err = log.Page(t.Context(), 0, 3*part)
		for err == nil && len(events) < 3*part {
			var more []eventlog.Recorded
			more, err = log.Page(t.Context(), eventlog.Position(len(events)), 3*part-len(events))
			events = append(events, more...)
		}
		check(t, err)
	}
	return report, events
}

// A flipped or missing byte of an archived segment is found. The report names the segment, and
// the event by position, stream and version as far as these can be determined.
func TestDamagedArchive(t *testing.T) {
	each(t, func(t *testing.T, b backend) {
		b, db := b.copied(t)
		check(t, db.Close())
		shelf := t.TempDir()
		b.archived(t, shelf)
		report, sound := b.inspected(t, shelf)
		if !report.Clean {
			t.Fatalf("%+v", report)
		}
		const first = part + 1
		name := domain.Name(first, first+part)
		content, err := os.ReadFile(filepath.Join(shelf, name))
		check(t, err)
		damaged := func(content []byte) (named bool) {
			t.Helper()
			check(t, os.WriteFile(filepath.Join(shelf, name), content, 0o600))
			report, _ := b.inspected(t, shelf)
			if report.Clean || report.Found != 1 || !strings.Contains(report.Faults[0].What, name) {
				t.Fatalf("found: %+v", report)
			}
			fault := report.Faults[0]
			if fault.Position < first || fault.Position >= first+part {
				t.Errorf("named %s", fault)
			}
			if fault.Version == 0 {
				return false
			}
			if is := sound[fault.Position-1]; fault.Stream != is.Stream || fault.Version != is.Version {
				t.Errorf("named %s, which is %s version %d", fault, is.Stream, is.Version)
			}
			return true
		}
		const flips = 60
		named := 0
		for n := range flips {
			flipped := slices.Clone(content)
			flipped[n*len(content)/flips] ^= 1 << (n % 8)
			if damaged(flipped) {
				named++
			}
		}
		t.Logf("of %d flipped bytes the event is named of %d", flips, named)
		if named == 0 {
			t.Error("no event is named")
		}
		damaged(content[:len(content)-1])
		damaged(content[:len(content)/2])
		damaged(nil)
	})
}

// Without a configured archive, reading an archived stream returns an error that says where it
// is, not that the stream does not exist.
func TestArchiveIsNotNamed(t *testing.T) {
	each(t, func(t *testing.T, b backend) {
		b, db := b.copied(t)
		check(t, db.Close())
		shelf := t.TempDir()
		_, sound := b.inspected(t, shelf)
		b.archived(t, shelf)
		log, err := app.InspectLog(t.Context(), config.Config{Store: b.store}, slog.New(slog.DiscardHandler))
		check(t, err)
		defer func() { check(t, log.Close()) }()
		var gone *domain.GoneError
		if events, err := log.Stream(t.Context(), sound[0].Stream, 0, 10); !errors.As(err, &gone) || gone.Begins != 3*part+1 {
			t.Errorf("%d events, %v", len(events), err)
		}
		if events, err := log.Stream(t.Context(), "tx-unheard-of", 0, 10); err != nil || len(events) > 0 {
			t.Errorf("%d events, %v", len(events), err)
		}
	})
}

// Damage can turn a stream's name into an invalid name: every log reports such a stream as
// unknown.
func TestNamesOfNoStream(t *testing.T) {
	each(t, func(t *testing.T, b backend) {
		log, err := app.InspectLog(t.Context(), config.Config{Store: b.store}, slog.New(slog.DiscardHandler))
		check(t, err)
		defer func() { check(t, log.Close()) }()
		page, err := log.Page(t.Context(), 0, 1)
		check(t, err)
		there := page[0].Stream
		names := []eventlog.Stream{"tx-\xa4", "tx-\x00", there}
		known, err := log.Known(t.Context(), names)
		check(t, err)
		if len(known) != 1 || !known[there] {
			t.Errorf("of %q it knows %v", names, known)
		}
		for _, name := range names[:2] {
			if events, err := log.Stream(t.Context(), name, 0, 1); err != nil || len(events) > 0 {
				t.Errorf("%q: %v, %v", name, events, err)
			}
		}
	})
}

// An archive that was rewritten together with the hashes of its files is detected by links and
// seals.
func TestForgedArchive(t *testing.T) {
	const first = part + 1
	each(t, func(t *testing.T, b backend) {
		b, db := b.copied(t)
		defer db.Close() //nolint:errcheck // the statements have been run
		shelf := t.TempDir()
		b.archived(t, shelf)
		report, sound := b.inspected(t, shelf)
		if !report.Clean {
			t.Fatalf("%+v", report)
		}
		for name, forge := range map[string]struct {
			do func(events []eventlog.Recorded) // of the second segment
			at eventlog.Position
		}{
			"data":                        {func(events []eventlog.Recorded) { events[7].Data[20] ^= 1 }, first + 7},
			"neighbors swapped":           {func(events []eventlog.Recorded) { exchange(events, 5, 6) }, first + 5},
			"ends swapped":                {func(events []eventlog.Recorded) { exchange(events, 0, part-1) }, first},
			"another in the place of one": {func(events []eventlog.Recorded) { events[9] = moved(events[8], events[9].Position) }, first + 9},
		} {
			events := slices.Clone(sound[part : 2*part])
			for i := range events {
				events[i].Data = slices.Clone(events[i].Data)
			}
			forge.do(events)
			replaced(t, db, shelf, sound[0].ID, events)
			report, _ = b.inspected(t, shelf)
			if report.Clean || len(report.Faults) == 0 || report.Faults[0].Position != forge.at || report.Faults[0].Version == 0 {
				t.Errorf("%s: found: %+v", name, report)
			}
		}
	})
}

// exchange swaps two events.
func exchange(events []eventlog.Recorded, a, b int) {
	was := [2]eventlog.Position{events[a].Position, events[b].Position}
	events[a], events[b] = moved(events[b], was[0]), moved(events[a], was[1])
}

func moved(r eventlog.Recorded, to eventlog.Position) eventlog.Recorded {
	r.Position = to
	return r
}

// replaced replaces a segment, in the folder and in the store's list.
func replaced(t *testing.T, db *sql.DB, shelf string, store eventlog.ID, events []eventlog.Recorded) {
	t.Helper()
	first := events[0].Position
	var batches iter.Seq2[eventlog.Batch, error] = func(yield func(eventlog.Batch, error) bool) {
		yield(eventlog.Batch{Events: events, Next: events[len(events)-1].Position}, nil)
	}
	segment, err := archive.NewFiles(archive.Dir(shelf), nil).Write(t.Context(), store, first, first+part, batches)
	check(t, err)
	run(t, db, "UPDATE segments SET hash = $1, bytes = $2 WHERE first = $3", segment.Hash[:], int64(segment.Bytes), int64(first))
}
