// Command ledger keeps how many transactions of each sender were delivered for good, in a
// database of its own, and counts each exactly once: whatever dies, and however often an
// event is delivered.
//
//	ledger -store ./watchtower-data -ledger ledger.db
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/tempo-watchtower/watchtower/examples"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

func main() {
	store := flag.String("store", "./watchtower-data", "a Postgres URL, or the folder of an embedded store")
	path := flag.String("ledger", "ledger.db", "the ledger's database")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *store, *path, feed.Options{Group: "ledger"}); err != nil {
		slog.Error("ledger", "err", err)
		stop()
		os.Exit(1) //nolint:gocritic // what was deferred has been done
	}
}

// run keeps the ledger until ctx ends.
func run(ctx context.Context, store, path string, o feed.Options) (err error) {
	defer func() {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err = nil // it was to end while it began
		}
	}()
	source, err := examples.Open(ctx, store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	ledger, err := OpenLedger(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()

	o.Log, o.Groups, o.Logger = source.Log, source.Groups, slog.Default()
	subscriber, err := feed.New(o)
	if err != nil {
		return err
	}
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NewSlogLogger(slog.Default()))
	if err != nil {
		return err
	}
	router.AddMiddleware(feed.Causes, middleware.Recoverer)
	router.AddNoPublisherHandler("ledger", "stream:tx-", subscriber, ledger.Handle)
	return router.Run(ctx) // closes the subscriber at its end
}
