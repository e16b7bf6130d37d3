package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/commands/delivery/broadcaster"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
)

// OpenStorage opens the configured databases and migrates their schemas.
func OpenStorage(ctx context.Context, c config.Config, o StorageOptions) (Storage, error) {
	o.partition = c.Archive.Partition
	storage, err := openBoth(ctx, c, o)
	if err != nil {
		return Storage{}, err
	}
	if err := projections.Migrate(ctx, storage.View, migrations.View); err != nil {
		return Storage{}, errors.Join(err, storage.Close(ctx))
	}
	return storage, nil
}

func openBoth(ctx context.Context, c config.Config, o StorageOptions) (Storage, error) {
	if c.Store.Engine == config.EventStoreDB {
		return openBeside(ctx, c, o)
	}
	storage, err := open(ctx, c.Store, c.Scheduler, o)
	if err != nil {
		return Storage{}, fmt.Errorf("store %s: %w", c.Store, err)
	}
	if storage, err = storage.archived(c.Archive, o.Crash); err != nil {
		return Storage{}, errors.Join(fmt.Errorf("store %s: %w", c.Store, err), storage.Close(ctx))
	}
	if c.Database.String() != c.Store.String() || !c.Database.URL.Equal(c.Store.URL) {
		work, err := open(ctx, c.Database, c.Scheduler, o)
		if err != nil {
			return Storage{}, errors.Join(fmt.Errorf("database %s: %w", c.Database, err), storage.Close(ctx))
		}
		storage = split(storage, work)
	}
	return storage, nil
}

// split takes log and payloads from one database, and work and views from another.
func split(log, work Storage) Storage {
	joined := work
	joined.Log, joined.Payloads, joined.Probe = log.Log, log.Payloads, log.Probe
	joined.Archived, joined.Archive = log.Archived, log.Archive
	joined.Transient = func(err error) bool { return log.Transient(err) || work.Transient(err) }
	joined.Ping = func(ctx context.Context) error { return errors.Join(log.Ping(ctx), work.Ping(ctx)) }
	joined.Close = func(ctx context.Context) error { return errors.Join(work.Close(ctx), log.Close(ctx)) }
	return joined
}

func open(ctx context.Context, s config.Store, work config.Scheduler, o StorageOptions) (Storage, error) {
	if s.Engine == config.Postgres {
		return openPostgres(ctx, s, work, o)
	}
	return openEmbedded(s, work, o)
}

func openPostgres(ctx context.Context, s config.Store, work config.Scheduler, o StorageOptions) (Storage, error) {
	db, err := postgres.Open(ctx, s.URL.Reveal(), postgres.Options{Window: work.Window, Pause: longestPause(work), Partition: o.partition, Crash: o.Crash, Logger: o.Log})
	if err != nil {
		return Storage{}, err
	}
	if err := db.Migrate(ctx); err != nil {
		return Storage{}, errors.Join(err, db.Close(ctx))
	}
	return Storage{
		Log: db.Log, Payloads: db.Payloads, Checkpoints: db.Checkpoints, Leases: db.Leases,
		Queue: db.Work, NextFree: db.Work.NextFree, Usage: db.Work.Usage, Soon: db.Work.Soon, Board: db.Work, Requests: db.Requests, View: db.View(), Snapshots: db.Snapshots,
		Ping: db.Ping, Probe: db.Probe, Transient: postgres.Transient, Close: db.Close, Postgres: db,
	}, nil
}

func openEmbedded(s config.Store, work config.Scheduler, o StorageOptions) (Storage, error) {
	db, err := embedded.Open(s.Dir, embedded.Options{Window: work.Window, Pause: longestPause(work), Crash: o.Crash})
	if err != nil {
		return Storage{}, err
	}
	return Storage{
		Log: db.Log(), Payloads: db.Payloads(), Checkpoints: db.Work(), Leases: db.Work(),
		Queue: db.Work(), NextFree: db.Work().NextFree, Usage: db.Work().Usage, Soon: db.Work().Soon, Board: db.Work(), Requests: db.Requests(), View: db.View(), Snapshots: db.Snapshots(),
		Ping: db.Ping, Probe: db.Probe, Transient: embedded.Transient,
		Close:    func(context.Context) error { return db.Close() },
		Embedded: db,
	}, nil
}

// longestPause is the longest backoff of a transaction in the broadcaster.
func longestPause(work config.Scheduler) time.Duration {
	return max(work.Schedule.RetryMax, work.Schedule.RebroadcastMin, work.Schedule.RebroadcastMax, broadcaster.WaitMax)
}

// OpenMaster reads the vault's master key, 64 hex digits, from the first line of a file, and
// former or future keys from further lines. A store that holds nothing but API keys gets a new
// key; any other must have the key that it was sealed under. Without a file name the key lives
// as long as the process.
func OpenMaster(ctx context.Context, name string, log port.Store) (payload.Master, error) {
	secret := make([]byte, payload.KeyBytes)
	if name == "" {
		rand.Read(secret) //nolint:errcheck // never fails
		return payload.NewMaster(secret)
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		begun, readErr := hasBegun(ctx, log)
		switch {
		case readErr != nil:
			return payload.Master{}, readErr
		case begun:
			return payload.Master{}, fmt.Errorf("vault key %s is missing, but the store holds payloads that were sealed under it", name)
		}
		if err = makeKey(name); err == nil {
			text, err = os.ReadFile(name)
		}
	}
	if err != nil {
		return payload.Master{}, fmt.Errorf("vault key: %w", err)
	}
	lines := strings.Fields(string(text))
	if len(lines) == 0 || len(lines) > payload.MastersMax {
		return payload.Master{}, fmt.Errorf("vault key %s has %d lines, not 1 to %d", name, len(lines), payload.MastersMax)
	}
	all := make([]payload.Master, len(lines))
	for i, line := range lines {
		if secret, err = hex.DecodeString(line); err == nil {
			all[i], err = payload.NewMaster(secret)
		}
		if err != nil { // which may quote the key
			return payload.Master{}, fmt.Errorf("vault key %s: line %d is not %d hex digits", name, i+1, 2*payload.KeyBytes)
		}
	}
	return all[0].After(all[1:]...), nil
}

// keysRead is the batch size for reading up to the first event that is not about an API key.
const keysRead = 100

// hasBegun reports whether a log holds events other than API keys' events. Operators create the
// keys before a service open to strangers may start.
func hasBegun(ctx context.Context, log port.Store) (bool, error) {
	for batch, err := range log.ReadAll(ctx, 0, eventlog.Filter{}, keysRead) {
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(batch.Events, func(e eventlog.Recorded) bool { return e.Stream != access.Stream }) {
			return true, nil
		}
	}
	return false, nil
}

// makeKey writes a new key atomically: the file is complete or absent. If two processes do so at
// once, one wins.
func makeKey(name string) error {
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	secret := make([]byte, payload.KeyBytes)
	rand.Read(secret) //nolint:errcheck // never fails
	f, err := os.CreateTemp(dir, "vault-key-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it is only the draft
	_, err = fmt.Fprintf(f, "%x\n", secret)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
