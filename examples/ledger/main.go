// Command ledger counts the finally delivered transactions of each sender, in its own database.
// It counts each exactly once, after any crash and however often an event is delivered.
//
//	ledger -store ./watchtower-data -ledger ledger.db
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/tempo-watchtower/watchtower/examples"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

func main() {
	var store examples.Store
	store.Flags(flag.CommandLine)
	path := flag.String("ledger", "ledger.db", "the ledger's database")
	flag.Parse()
	examples.Main("ledger", func(ctx context.Context) error {
		return run(ctx, store, *path, feed.Options{Group: "ledger"})
	})
}

// run keeps the ledger until ctx ends.
func run(ctx context.Context, store examples.Store, path string, o feed.Options) error {
	return examples.Run(ctx, store, o, func(s *feed.Subscriber) (err error) {
		ledger, err := OpenLedger(ctx, path)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, ledger.Close()) }()
		router, err := message.NewRouter(message.RouterConfig{}, watermill.NewSlogLogger(slog.Default()))
		if err != nil {
			return err
		}
		router.AddMiddleware(feed.Causes, middleware.Recoverer)
		router.AddNoPublisherHandler("ledger", "stream:tx-", s, ledger.Handle)
		return router.Run(ctx) // closes the subscriber when it returns
	})
}
