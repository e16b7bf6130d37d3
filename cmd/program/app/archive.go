package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/cmd/program/verify"
	"github.com/tempo-watchtower/watchtower/commands/archiver"
	domain "github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/archive"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
)

// archived returns a storage whose log reads the configured archive first.
func (s Storage) archived(c config.Archive, crash func(string)) (Storage, error) {
	if c.Dir == "" {
		return s, nil
	}
	live, ok := s.Log.(interface {
		archive.Live
		archiver.Store
	})
	if !ok {
		return s, errors.New("its events cannot be archived: remove the setting archive")
	}
	s.Archive = archive.NewFiles(archive.Dir(c.Dir), crash)
	s.Archived, s.Log = live, archive.NewStore(live, s.Archive)
	return s, nil
}

// withFiles puts the configured archive before a log that another process reads.
func withFiles(rest archive.Readable, c config.Archive) archive.Readable {
	if c.Dir == "" {
		return rest
	}
	return archive.NewLog(rest, archive.NewFiles(archive.Dir(c.Dir), nil))
}

// Archiver moves a storage's old events to its archive, for an operator.
func Archiver(s Storage, c config.Config, actor eventlog.Meta, log *slog.Logger, crash func(string)) *archiver.Archiver {
	settings := SettingsOf(c)
	settings.Holder = holder()
	return &archiver.Archiver{
		Owner: settings.owner(s.Leases, log),
		Log:   s.Log, Store: s.Archived, Files: s.Archive, Settings: settings.Archive,
		Now: time.Now, Random: rand.Reader, Logger: log, Actor: actor, Crash: crash,
	}
}

// archiver moves old events to the archive, for the service.
func (a *App) archiver() *archiver.Archiver {
	p := a.Ports
	return &archiver.Archiver{
		Owner: a.Settings.owner(p.Storage.Leases, p.Log),
		Log:   a.Store, Store: p.Storage.Archived, Files: p.Storage.Archive, Settings: a.Settings.Archive,
		Now: p.Now, Random: p.Random, Logger: p.Log, Actor: eventlog.Meta{Actor: "archiver"}, Crash: p.Crash,
		Told: func(s archiver.Standing) {
			p.Metrics.Archive(metrics.Archive{
				Last: uint64(s.Past - 1), Begins: uint64(s.Begins), Segments: s.Segments, Bytes: s.Bytes, Due: s.Due,
			})
		},
		Failed: func(error) { p.Metrics.ArchiveFailed() },
	}
}

// Segments lists the segments of the configured store and opens their files. A service may be
// running on the store.
func Segments(ctx context.Context, c config.Config) (listed []domain.Segment, begins eventlog.Position, files *archive.Files, err error) {
	store, held, err := inspectArchived(ctx, c)
	if err != nil {
		return nil, 0, nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if listed, err = held.Segments(ctx); err == nil {
		begins, err = held.Begins(ctx)
	}
	return listed, begins, archive.NewFiles(archive.Dir(c.Archive.Dir), nil), err
}

// ArchivePlan passes do the plan that an archiver would follow on the configured store. A
// service may be running on the store. The read snapshot lasts until do returns; nothing is
// written.
func ArchivePlan(ctx context.Context, c config.Config, do func(ctx context.Context, p archiver.Plan) error) (err error) {
	store, held, err := inspectArchived(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	p := archiver.Plan{Settings: SettingsOf(c).Archive, Now: time.Now()}
	if p.Begins, err = held.Begins(ctx); err != nil {
		return err
	}
	if p.Head, err = store.Head(ctx); err != nil {
		return err
	}
	log, err := withHistory(ctx, store, held, c.Archive)
	if err != nil {
		return err
	}
	recorded, err := log.Streams(ctx, []eventlog.Stream{domain.Stream})
	if err != nil {
		return err
	}
	codec := domain.Codec()
	for _, r := range recorded[domain.Stream] {
		fact, err := codec.Decode(r.Name, r.Data)
		if err != nil {
			return fmt.Errorf("%s version %d: %w", r.Stream, r.Version, err)
		}
		p.State = p.State.Evolve(fact)
	}
	p.Page = log.Page
	return do(ctx, p)
}

// segmented is a snapshot of a store that may have dropped the beginning of its log.
type segmented interface {
	Begins(ctx context.Context) (eventlog.Position, error)
	Segments(ctx context.Context) ([]domain.Segment, error)
	// Extents returns where the events of streams are that exist in the archive only.
	Extents(ctx context.Context, names []eventlog.Stream) (map[eventlog.Stream]domain.Extent, error)
	// Current returns an error unless the tables match this program's schema.
	Current(ctx context.Context) error
}

// inspectArchived opens the configured store read-only, without the archive.
func inspectArchived(ctx context.Context, c config.Config) (store verify.Store, held segmented, err error) {
	if store, err = inspect(ctx, c.Store); err != nil {
		return nil, nil, fmt.Errorf("store %s: %w", c.Store, err)
	}
	held, ok := store.(segmented)
	if !ok {
		err = errors.New("its events cannot be archived")
	} else {
		err = held.Current(ctx)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("store %s: %w", c.Store, err), store.Close())
	}
	return store, held, nil
}

// inspectWhole opens a store read-only, preceded by its archive.
func inspectWhole(ctx context.Context, s config.Store, a config.Archive) (verify.Store, error) {
	found, err := inspect(ctx, s)
	if err != nil {
		return found, err
	}
	held, ok := found.(segmented)
	if !ok {
		return found, nil
	}
	log, err := withHistory(ctx, found, held, a)
	if err != nil {
		return nil, errors.Join(err, found.Close())
	}
	return log, nil
}

// beheaded is a snapshot of an archived store without a configured archive. Reading a stream
// that is incomplete without the archive returns an error.
type beheaded struct {
	verify.Store
	begins eventlog.Position
}

func (b *beheaded) Stream(ctx context.Context, stream eventlog.Stream, after eventlog.Version, most int) ([]eventlog.Recorded, error) {
	page, err := b.Store.Stream(ctx, stream, after, most)
	if err == nil {
		err = b.whole(ctx, stream, after, page)
	}
	return page, err
}

func (b *beheaded) Streams(ctx context.Context, names []eventlog.Stream) (map[eventlog.Stream][]eventlog.Recorded, error) {
	all, err := b.Store.Streams(ctx, names)
	for _, name := range names {
		if err == nil {
			err = b.whole(ctx, name, 0, all[name])
		}
	}
	return all, err
}

// whole returns an error if the events found are not the ones directly after a version of a
// stream, because those are before the start of the log.
func (b *beheaded) whole(ctx context.Context, stream eventlog.Stream, after eventlog.Version, found []eventlog.Recorded) error {
	if len(found) > 0 && found[0].Version == after+1 || len(found) == 0 && after > 0 {
		return nil
	}
	known, err := b.Known(ctx, []eventlog.Stream{stream})
	if err != nil || !known[stream] {
		return err
	}
	return &domain.GoneError{Begins: b.begins, Stream: stream}
}

// withHistory puts the archive before a store that dropped part of its log.
func withHistory(ctx context.Context, store verify.Store, held segmented, a config.Archive) (verify.Store, error) {
	begins, err := held.Begins(ctx)
	if err != nil || begins <= 1 {
		return store, err
	}
	if a.Dir == "" {
		return &beheaded{store, begins}, nil
	}
	segments, err := held.Segments(ctx)
	if err != nil {
		return nil, err
	}
	return &whole{store, held, archive.NewHistory(archive.NewFiles(archive.Dir(a.Dir), nil), segments, begins)}, nil
}

// whole is a snapshot of a store together with the events that it has dropped.
type whole struct {
	verify.Store
	held    segmented
	history *archive.History
}

func (w *whole) Page(ctx context.Context, after eventlog.Position, most int) ([]eventlog.Recorded, error) {
	page, err := w.history.Page(ctx, after, most)
	if err != nil || len(page) > 0 {
		return page, err
	}
	return w.Store.Page(ctx, after, most)
}

func (w *whole) Stream(ctx context.Context, stream eventlog.Stream, after eventlog.Version, most int) ([]eventlog.Recorded, error) {
	page, err := w.Store.Stream(ctx, stream, after, most)
	if err != nil {
		return nil, err
	}
	if !w.history.Lacks(page, after) {
		return page, nil
	}
	extents, err := w.held.Extents(ctx, []eventlog.Stream{stream})
	if err != nil {
		return nil, err
	}
	page, err = w.history.Complete(ctx, stream, after, page, extents[stream])
	return page[:min(len(page), most)], err
}

func (w *whole) Streams(ctx context.Context, names []eventlog.Stream) (map[eventlog.Stream][]eventlog.Recorded, error) {
	all, err := w.Store.Streams(ctx, names)
	if err != nil {
		return nil, err
	}
	var lacking []eventlog.Stream
	for _, name := range names {
		if w.history.Lacks(all[name], 0) {
			lacking = append(lacking, name)
		}
	}
	extents, err := w.held.Extents(ctx, lacking)
	if err != nil {
		return nil, err
	}
	for _, name := range lacking {
		if all[name], err = w.history.Complete(ctx, name, 0, all[name], extents[name]); err != nil {
			return nil, err
		}
		if len(all[name]) == 0 {
			delete(all, name)
		}
	}
	return all, nil
}
