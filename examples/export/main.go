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

	"github.com/tempo-watchtower/watchtower/examples"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

func main() {
	var store examples.Store
	store.Flags(flag.CommandLine)
	to := flag.String("to", "events", "the folder of the files")
	flag.Parse()
	examples.Main("export", func(ctx context.Context) error {
		return run(ctx, store, *to, feed.Options{Group: "export"})
	})
}

// run exports until ctx ends. One lane keeps the order of the log, and nothing is ever
// parked, for a file with a hole is no export: what cannot be written is tried again.
func run(ctx context.Context, store examples.Store, to string, o feed.Options) error {
	o.Lanes, o.MostParked = 1, -1
	return examples.Run(ctx, store, o, func(s *feed.Subscriber) (err error) {
		files, err := OpenFiles(to)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, files.Close()) }()
		messages, err := s.Subscribe(ctx, feed.All)
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
	})
}
