package app_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/commands/archiver"
	domain "github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/archive"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
)

// The service and Inspect look up a stream that is only in the archive in its own segments. The
// files of other segments may be missing.
func TestStreamOfOneSegment(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		dir := t.TempDir()
		db, err := embedded.Open(dir, embedded.Options{AllowDataLoss: true})
		must(t, err)
		ofOneSegment(t, db.Log(), config.Store{Engine: config.Embedded, Dir: dir})
		must(t, db.Close())
	})
	t.Run("postgres", func(t *testing.T) {
		url := testenv.Postgres(t)
		db, err := postgres.Open(t.Context(), url, postgres.Options{Partition: 500})
		must(t, err)
		must(t, db.Migrate(t.Context()))
		must(t, projections.Migrate(t.Context(), db.View(), migrations.View))
		ofOneSegment(t, db.Log, config.Store{Engine: config.Postgres, URL: config.NewSecret(url)})
		must(t, db.Close(context.Background()))
	})
}

// ofOneSegment archives ten streams one after the other, and deletes all segments but one.
func ofOneSegment(t *testing.T, live interface {
	archive.Live
	archiver.Store
}, store config.Store) {
	const part, streams = 100, 10
	shelf := t.TempDir()
	files := archive.NewFiles(archive.Dir(shelf), nil)
	whole := archive.NewStore(live, files)
	stream := func(n int) eventlog.Stream { return eventlog.Stream(fmt.Sprintf("group-%d", n)) }
	for n := range streams + 1 {
		events := make([]eventlog.Event, part)
		for i := range events {
			events[i] = eventlog.Event{ID: eventlog.DeriveID(stream(n), eventlog.ID{1}, i), Name: "group.happened.v1", Data: []byte("{}")}
		}
		_, err := whole.Append(t.Context(), stream(n), 0, events...)
		must(t, err)
	}
	a := archiver.Archiver{
		Log: whole, Store: live, Files: files, Settings: archiver.Settings{Segment: part},
		Now: time.Now, Random: rand.Reader, Logger: slog.New(slog.DiscardHandler), Actor: eventlog.Meta{Actor: "test"},
	}
	report, err := a.Pass(t.Context(), true)
	must(t, err)
	if report.Begins <= part*streams {
		t.Fatalf("the log begins at %d", report.Begins)
	}
	const kept = 4
	for n, segment := range report.Stored {
		if n != kept {
			must(t, os.Remove(filepath.Join(shelf, segment.Name)))
		}
	}

	found := 0
	for _, err := range whole.ReadStream(t.Context(), stream(kept), 0) {
		must(t, err)
		found++
	}
	if found != part {
		t.Errorf("a service reads %d events of the stream", found)
	}
	c := config.Config{Store: store, Archive: config.Archive{Dir: shelf}}
	log, err := app.InspectLog(t.Context(), c, slog.New(slog.DiscardHandler))
	must(t, err)
	events, err := log.Stream(t.Context(), stream(kept), 0, 2*part)
	if err != nil || len(events) != part {
		t.Errorf("an inspection reads %d events of the stream: %v", len(events), err)
	}
	must(t, log.Close())

	// Without the archive, reading an incomplete stream is an error, alone or among several.
	log, err = app.InspectLog(t.Context(), config.Config{Store: store}, slog.New(slog.DiscardHandler))
	must(t, err)
	var gone *domain.GoneError
	if _, err := log.Stream(t.Context(), stream(kept), 0, part); !errors.As(err, &gone) {
		t.Errorf("without the archive a stream is read: %v", err)
	}
	several := log.(interface {
		Streams(ctx context.Context, names []eventlog.Stream) (map[eventlog.Stream][]eventlog.Recorded, error)
	})
	if _, err := several.Streams(t.Context(), []eventlog.Stream{domain.Stream, stream(kept)}); !errors.As(err, &gone) {
		t.Errorf("without the archive streams are read: %v", err)
	}
	if whole, err := several.Streams(t.Context(), []eventlog.Stream{domain.Stream, "group-unheard"}); err != nil || len(whole[domain.Stream]) == 0 {
		t.Errorf("without the archive what is whole is not read: %v", err)
	}
	must(t, log.Close())
}
