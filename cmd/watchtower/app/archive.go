package app

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/watchtower/config"
	"github.com/tempo-watchtower/watchtower/cmd/watchtower/verify"
	"github.com/tempo-watchtower/watchtower/commands/archiver"
	domain "github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/infra/archive"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
)

// archived puts the configured archive before the log.
func (s Storage) archived(c config.Archive, crash func(string)) (Storage, error) {
	if c.Dir == "" {
		return s, nil
	}
	live, ok := s.Log.(interface {
		archive.Live
		archiver.Store
	})
	if !ok {
		return s, errors.New("its events cannot be archived: leave the setting archive out")
	}
	s.Archive = archive.NewFiles(archive.Dir(c.Dir), crash)
	s.Archived, s.Log = live, archive.NewStore(live, s.Archive)
	return s, nil
}

// withFiles puts the configured archive before a log that is read beside the service.
func withFiles(rest archive.Readable, c config.Archive) archive.Readable {
	if c.Dir == "" {
		return rest
	}
	return archive.NewLog(rest, archive.NewFiles(archive.Dir(c.Dir), nil))
}

// Archiver moves events of a storage that has an archive, for an operator.
func Archiver(s Storage, c config.Config, actor event.Meta, log *slog.Logger, crash func(string)) *archiver.Archiver {
	settings := SettingsOf(c)
	settings.Holder = holder()
	return &archiver.Archiver{
		Owner: settings.owner(s.Leases, log),
		Log:   s.Log, Store: s.Archived, Files: s.Archive, Settings: settings.Archive,
		Now: time.Now, Random: rand.Reader, Logger: log, Actor: actor, Crash: crash,
	}
}

// archiver moves them for the service.
func (a *App) archiver() *archiver.Archiver {
	p := a.ports
	return &archiver.Archiver{
		Owner: a.settings.owner(p.Storage.Leases, p.Log),
		Log:   a.store, Store: p.Storage.Archived, Files: p.Storage.Archive, Settings: a.settings.Archive,
		Now: p.Now, Random: p.Random, Logger: p.Log, Actor: event.Meta{Actor: "archiver"}, Crash: p.Crash,
		Told: func(s archiver.Standing) {
			p.Metrics.Archive(metrics.Archive{
				Last: uint64(s.Past - 1), Begins: uint64(s.Begins), Segments: s.Segments, Bytes: s.Bytes, Due: s.Due,
			})
		},
		Failed: func(error) { p.Metrics.ArchiveFailed() },
	}
}

// Segments are those of the configured store, and their files, while a service may be
// at work on it.
func Segments(ctx context.Context, c config.Config) (listed []domain.Segment, begins event.Position, files *archive.Files, err error) {
	i, err := inspect(ctx, c.Store)
	if err != nil {
		return nil, 0, nil, err
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	holder, ok := i.(segmented)
	if !ok {
		return nil, 0, nil, errors.New("this store's events cannot be archived")
	}
	if listed, err = holder.Segments(ctx); err == nil {
		begins, err = holder.Begins(ctx)
	}
	return listed, begins, archive.NewFiles(archive.Dir(c.Archive.Dir), nil), err
}

// segmented is a store at one moment that may have dropped the beginning of its log.
type segmented interface {
	Begins(ctx context.Context) (event.Position, error)
	Segments(ctx context.Context) ([]domain.Segment, error)
}

// inspectWhole opens a store to be read, with its archive before it.
func inspectWhole(ctx context.Context, s config.Store, a config.Archive) (verify.Store, error) {
	found, err := inspect(ctx, s)
	if err != nil || a.Dir == "" {
		return found, err
	}
	holder, ok := found.(segmented)
	if !ok {
		return found, nil
	}
	begins, err := holder.Begins(ctx)
	if err == nil && begins <= 1 {
		return found, nil
	}
	var segments []domain.Segment
	if err == nil {
		segments, err = holder.Segments(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, found.Close())
	}
	history := archive.NewHistory(archive.NewFiles(archive.Dir(a.Dir), nil), segments, begins)
	return &whole{found, history}, nil
}

// whole is a store at one moment together with what it has dropped.
type whole struct {
	verify.Store
	history *archive.History
}

func (w *whole) Page(ctx context.Context, after event.Position, most int) ([]event.Recorded, error) {
	page, err := w.history.Page(ctx, after, most)
	if err != nil || len(page) > 0 {
		return page, err
	}
	return w.Store.Page(ctx, after, most)
}

func (w *whole) Stream(ctx context.Context, stream event.Stream, after event.Version, most int) ([]event.Recorded, error) {
	page, err := w.Store.Stream(ctx, stream, after, most)
	if err != nil {
		return nil, err
	}
	page, err = w.history.Complete(ctx, stream, after, page)
	return page[:min(len(page), most)], err
}

func (w *whole) Streams(ctx context.Context, names []event.Stream) (map[event.Stream][]event.Recorded, error) {
	all, err := w.Store.Streams(ctx, names)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if all[name], err = w.history.Complete(ctx, name, 0, all[name]); err != nil {
			return nil, err
		}
		if len(all[name]) == 0 {
			delete(all, name)
		}
	}
	return all, nil
}
