// Command export writes every event to files of JSON lines, once, in the order of the
// log: a million positions to a file.
//
//	export -store ./watchtower-data -to ./events
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/tempo-watchtower/watchtower/examples"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

func main() {
	store := flag.String("store", "./watchtower-data", "a Postgres URL, or the folder of an embedded store")
	to := flag.String("to", "events", "the folder of the files")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *store, *to, feed.Options{Group: "export"}); err != nil {
		slog.Error("export", "err", err)
		stop()
		os.Exit(1) //nolint:gocritic // what was deferred has been done
	}
}

// run exports until ctx ends. One lane keeps the order of the log, and nothing is ever
// parked, for a file with a hole is no export: what cannot be written is tried again.
func run(ctx context.Context, store, to string, o feed.Options) (err error) {
	source, err := examples.Open(ctx, store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	files, err := OpenFiles(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	o.Log, o.Groups, o.Logger, o.Lanes, o.MostParked = source.Log, source.Groups, slog.Default(), 1, -1
	subscriber, err := feed.New(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, subscriber.Close()) }()
	messages, err := subscriber.Subscribe(ctx, feed.All)
	if err != nil {
		return err
	}
	for m := range messages {
		if err := files.Write(m); err != nil {
			slog.Error("event not exported", "err", err)
			feed.Nack(m, err)
			continue
		}
		m.Ack()
	}
	return nil
}
