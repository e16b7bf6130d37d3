// Package examples holds small programs that consume Watchtower's events, and the start and stop
// code that they share. See docs/howto/watermill.md.
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

// Main runs a program until it is interrupted, and exits with 1 if it fails.
func Main(name string, run func(ctx context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error(name, "err", err)
		stop()
		os.Exit(1) //nolint:gocritic // the deferred calls have run
	}
}

// Store is the store with the events. A service may be using it.
type Store struct {
	At      string // a Postgres URL, or the folder of an embedded store
	Archive string // the archive's folder, with the events that the store has dropped, with or without "file:"; empty: none dropped
}

// Flags defines the command line flags of a store. The default archive is the service's
// WATCHTOWER_ARCHIVE.
func (s *Store) Flags(flags *flag.FlagSet) {
	flags.StringVar(&s.At, "store", "./watchtower-data", "a Postgres URL, or the folder of an embedded store")
	flags.StringVar(&s.Archive, "archive", os.Getenv("WATCHTOWER_ARCHIVE"), "the archive's folder, with the events that the store has dropped")
}

// Run runs consume with a subscriber to a store's events, until ctx ends. It returns no error
// if ctx ends during the start.
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

// whole reads the archive before the rest in the store.
func (s Store) whole(rest archive.Readable) feed.Log {
	dir := strings.TrimPrefix(s.Archive, "file:")
	if dir == "" {
		return rest
	}
	return archive.NewLog(rest, archive.NewFiles(archive.Dir(dir), nil))
}
