// Package examples holds three small programs that consume Watchtower's events, and what
// they have in common: how they begin and end. See docs/watermill.md.
package examples

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/tempo-watchtower/watchtower/infra/archive"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/feed"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// Main runs a program until it is told to end, and ends the process if it fails.
func Main(name string, run func(ctx context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error(name, "err", err)
		stop()
		os.Exit(1) //nolint:gocritic // what was deferred has been done
	}
}

// Store is where the events are. A service may be at work on it.
type Store struct {
	At      string // the URL of its Postgres, or the folder of an embedded one
	Archive string // the folder with what it has dropped, "file:" before it or not; empty: it has dropped nothing
}

// Flags has a command line say where they are; the service's WATCHTOWER_ARCHIVE counts too.
func (s *Store) Flags(flags *flag.FlagSet) {
	flags.StringVar(&s.At, "store", "./watchtower-data", "a Postgres URL, or the folder of an embedded store")
	flags.StringVar(&s.Archive, "archive", os.Getenv("WATCHTOWER_ARCHIVE"), "the folder with the events that the store has dropped")
}

// Run has a subscriber to a store's events consumed until ctx ends. That ctx ends while
// this begins is no error.
func Run(ctx context.Context, store Store, o feed.Options, consume func(*feed.Subscriber) error) (err error) {
	defer func() {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err = nil
		}
	}()
	end, err := open(ctx, store, &o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	o.Logger = slog.Default()
	subscriber, err := feed.New(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, subscriber.Close()) }()
	return consume(subscriber)
}

// open opens a store for a subscriber.
func open(ctx context.Context, store Store, o *feed.Options) (end func() error, err error) {
	if strings.HasPrefix(store.At, "postgres://") || strings.HasPrefix(store.At, "postgresql://") {
		db, err := postgres.Open(ctx, store.At, postgres.Options{Application: "example"})
		if err != nil {
			return nil, err
		}
		o.Log, o.Groups = store.whole(db.Log), db.Groups
		return func() error { return db.Close(context.WithoutCancel(ctx)) }, nil
	}
	f, err := embedded.OpenFeed(strings.TrimPrefix(store.At, "embedded:"), embedded.FeedOptions{})
	if err != nil {
		return nil, err
	}
	o.Log, o.Groups = store.whole(f), f.Groups()
	return f.Close, nil
}

// whole puts the archive before what is left in the store.
func (s Store) whole(rest archive.Readable) feed.Log {
	dir := strings.TrimPrefix(s.Archive, "file:")
	if dir == "" {
		return rest
	}
	return archive.NewLog(rest, archive.NewFiles(archive.Dir(dir), nil))
}
