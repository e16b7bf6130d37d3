// Command export writes every event once to files of JSON lines, in the order of the log, with
// a million positions per file.
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

// run exports until ctx ends. One lane keeps the order of the log. No event is ever parked, as
// an export must have no gaps: an event that cannot be written is retried.
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
