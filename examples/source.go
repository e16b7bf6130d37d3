// Package examples holds three small programs that consume Watchtower's events, and what
// they have in common: how they begin and end. See docs/watermill.md.
package examples

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

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

// Run has a subscriber to a store's events consumed until ctx ends. The store is the URL
// of its Postgres, or the folder of an embedded one; the service may be at work on it.
// That ctx ends while this begins is no error.
func Run(ctx context.Context, store string, o feed.Options, consume func(*feed.Subscriber) error) (err error) {
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
func open(ctx context.Context, store string, o *feed.Options) (end func() error, err error) {
	if strings.HasPrefix(store, "postgres://") || strings.HasPrefix(store, "postgresql://") {
		db, err := postgres.Open(ctx, store, postgres.Options{Application: "example"})
		if err != nil {
			return nil, err
		}
		o.Log, o.Groups = db.Log, db.Groups
		return func() error { return db.Close(context.WithoutCancel(ctx)) }, nil
	}
	f, err := embedded.OpenFeed(strings.TrimPrefix(store, "embedded:"), embedded.FeedOptions{})
	if err != nil {
		return nil, err
	}
	o.Log, o.Groups = f, f.Groups()
	return f.Close, nil
}
