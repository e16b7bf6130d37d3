package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/cmd/program/verify"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
)

// withLog replaces the log of a Postgres storage by the log of an EventStoreDB. Signed bytes,
// work and views stay in Postgres; they and the log are never written in one transaction.
func withLog(log *eventstoredb.Log, work Storage) Storage {
	joined := work
	joined.Log, joined.Ago = log, log.Ago
	joined.Archived, joined.Archive = nil, nil // only a Postgres log has an archive
	joined.Transient = func(err error) bool { return eventstoredb.Transient(err) || work.Transient(err) }
	joined.Ping = func(ctx context.Context) error { return errors.Join(log.Ping(ctx), work.Ping(ctx)) }
	joined.Close = func(ctx context.Context) error { return errors.Join(work.Close(ctx), log.Close(ctx)) }
	return joined
}

func openBeside(ctx context.Context, c config.Config, o StorageOptions) (Storage, error) {
	log, err := eventstoredb.Open(ctx, c.Store.URL.Reveal(), eventstoredb.Options{Logger: o.Log, Crash: o.Crash})
	if err != nil {
		return Storage{}, fmt.Errorf("store %s: %w", c.Store, err)
	}
	work, err := open(ctx, c.Database, c.Scheduler, o)
	if err != nil {
		return Storage{}, errors.Join(fmt.Errorf("database %s: %w", c.Database, err), log.Close(context.WithoutCancel(ctx)))
	}
	return withLog(log, work), nil
}

// openEvents opens the log of an EventStoreDB for a program other than the service.
func openEvents(ctx context.Context, s config.Store, logger *slog.Logger) (*eventstoredb.Log, func() error, error) {
	log, err := eventstoredb.Open(ctx, s.URL.Reveal(), eventstoredb.Options{Logger: logger})
	if err != nil {
		return nil, nil, err
	}
	return log, func() error { return log.Close(context.WithoutCancel(ctx)) }, nil
}

// Beside is the log of an EventStoreDB with the other tables of the service's database.
type Beside struct {
	verify.Store
	Log *eventstoredb.Inspection
}

// inspectBeside opens the log before the signed bytes: a submission writes the bytes first.
func inspectBeside(ctx context.Context, c config.Config, logger *slog.Logger) (verify.Store, error) {
	log, err := eventstoredb.Inspect(ctx, c.Store.URL.Reveal(), logger)
	if err != nil {
		return nil, err
	}
	rows, err := inspect(ctx, c.Database)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return Beside{rows, log}, nil
}

func (b Beside) Head(ctx context.Context) (eventlog.Position, error) { return b.Log.Head(ctx) }

func (b Beside) Page(ctx context.Context, after eventlog.Position, most int) ([]eventlog.Recorded, error) {
	return b.Log.Page(ctx, after, most)
}

func (b Beside) Names(ctx context.Context, prefix string, after int64, most int) ([]eventlog.Stream, int64, error) {
	return b.Log.Names(ctx, prefix, after, most)
}

func (b Beside) Stream(ctx context.Context, stream eventlog.Stream, after eventlog.Version, most int) ([]eventlog.Recorded, error) {
	return b.Log.Stream(ctx, stream, after, most)
}

func (b Beside) Streams(ctx context.Context, names []eventlog.Stream) (map[eventlog.Stream][]eventlog.Recorded, error) {
	return b.Log.Streams(ctx, names)
}

func (b Beside) Known(ctx context.Context, names []eventlog.Stream) (map[eventlog.Stream]bool, error) {
	return b.Log.Known(ctx, names)
}

// Close closes both.
func (b Beside) Close() error { return errors.Join(b.Store.Close(), b.Log.Close()) }
