package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/domain/consumer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/feed"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// Feed is the configured store, opened by a consumer of its events in a process beside the
// service.
type Feed struct {
	Log    feed.Log
	Groups Groups
	close  []func() error
}

// Groups stores the state of consumer groups, shows it, and accepts commands that change it.
type Groups interface {
	feed.Groups

	Groups(ctx context.Context) ([]consumer.Group, error)
	Wish(ctx context.Context, group string, stream eventlog.Stream, at eventlog.Version, w consumer.Wish) error
}

// OpenFeed opens the log of the configured store, including the archive, and the consumers'
// state in the configured database.
func OpenFeed(ctx context.Context, c config.Config, log *slog.Logger) (f Feed, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if err := f.open(ctx, c.Store, c.Archive, log); err != nil {
		return f, fmt.Errorf("store %s: %w", c.Store, err)
	}
	if c.Database.String() == c.Store.String() && c.Database.URL.Equal(c.Store.URL) {
		return f, nil
	}
	events := f.Log
	if err := f.open(ctx, c.Database, c.Archive, log); err != nil {
		return f, fmt.Errorf("database %s: %w", c.Database, err)
	}
	f.Log = events
	return f, nil
}

func (f *Feed) open(ctx context.Context, s config.Store, a config.Archive, log *slog.Logger) error {
	switch s.Engine {
	case config.Postgres:
		db, err := postgres.Open(ctx, s.URL.Reveal(), postgres.Options{Application: "watchtower forward", Logger: log})
		if err != nil {
			return err
		}
		f.Log, f.Groups = withFiles(db.Log, a), db.Groups
		f.close = append(f.close, func() error { return db.Close(context.WithoutCancel(ctx)) })
		return nil
	case config.Embedded:
		opened, err := embedded.OpenFeed(s.Dir, embedded.FeedOptions{})
		if err != nil {
			return err
		}
		f.Log, f.Groups = withFiles(opened, a), opened.Groups()
		f.close = append(f.close, opened.Close)
		return nil
	case config.EventStoreDB: // the consumers' state is in the database
		events, end, err := openEvents(ctx, s, log)
		if err != nil {
			return err
		}
		f.Log = events
		f.close = append(f.close, end)
		return nil
	}
	return errors.New("other processes cannot consume its events")
}

// Close closes the opened stores.
func (f Feed) Close() error {
	var errs []error
	for _, c := range f.close {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}
