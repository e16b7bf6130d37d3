package app

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/archive"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/delivery/groups"
	"github.com/tempo-watchtower/watchtower/projections/delivery/owners"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// Models lists the read models, in the order in which they are rebuilt.
func Models() []projections.Model {
	return []projections.Model{transactions.Model(tx.Codec()), owners.Model(tx.Codec()), groups.Model(group.Codec(), tx.Codec())}
}

// ReadModels is the log and the read models of a configuration, opened by a process other than
// the service, which may be running on them.
type ReadModels struct {
	Log  projections.Source
	View *sql.DB

	database config.Store
	closes   []func() error
}

// Shadow is a [projections.Shadow] that reports its position before it is prepared.
type Shadow interface {
	projections.Shadow
	At(ctx context.Context) (at eventlog.Position, there bool, err error)
}

// OpenReadModels opens the log and the read models. It creates and changes nothing.
func OpenReadModels(ctx context.Context, c config.Config) (r *ReadModels, err error) {
	r = &ReadModels{database: c.Database}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if err := r.openLog(ctx, c.Store, c.Archive); err != nil {
		return nil, fmt.Errorf("store %s: %w", c.Store, err)
	}
	switch c.Database.Engine {
	case config.Postgres:
		r.View, err = postgres.OpenView(c.Database.URL.Reveal())
	case config.Embedded:
		r.View, err = embedded.ViewBeside(c.Database.Dir)
	case config.Memory:
		err = errors.New("read models in memory are available only to their own service")
	}
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", c.Database, err)
	}
	r.closes = append(r.closes, r.View.Close)
	return r, nil
}

func (r *ReadModels) openLog(ctx context.Context, s config.Store, a config.Archive) error {
	var log archive.Readable
	switch s.Engine {
	case config.Postgres:
		db, err := postgres.Open(ctx, s.URL.Reveal(), postgres.Options{Application: "watchtower projections"})
		if err != nil {
			return err
		}
		log = db.Log
		r.closes = append(r.closes, func() error { return db.Close(context.WithoutCancel(ctx)) })
	case config.Embedded:
		db, err := embedded.OpenBeside(s.Dir)
		if err != nil {
			return err
		}
		log = db
		r.closes = append(r.closes, db.Close)
	case config.EventStoreDB:
		events, end, err := openEvents(ctx, s, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		r.Log = events // an EventStoreDB log has no archive
		r.closes = append(r.closes, end)
		return nil
	default:
		return errors.New("a log in memory is available only to its own service")
	}
	r.Log = withFiles(log, a)
	return nil
}

// Migrate migrates the tables that serve reads, as a service does when it starts.
func (r *ReadModels) Migrate(ctx context.Context) error {
	return projections.Migrate(ctx, r.View, migrations.View)
}

// Dump writes a snapshot of a read model's rows, one per line.
func (r *ReadModels) Dump(ctx context.Context, m projections.Model, to io.Writer) error {
	var snapshot *sql.Tx
	var err error
	if r.database.Engine == config.Embedded {
		snapshot, err = r.View.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	} else {
		snapshot, err = postgres.Snapshot(ctx, r.View, m.TableNames())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	defer snapshot.Rollback() //nolint:errcheck // it only reads
	return projections.Dump(ctx, snapshot, m, to)
}

// Shadow opens a read model's staging tables. One process at a time may hold them; others get
// eventlog.ErrBusy.
func (r *ReadModels) Shadow(ctx context.Context, m projections.Model) (Shadow, error) {
	tables := m.TableNames()
	if r.database.Engine == config.Embedded {
		return orNoShadow(embedded.OpenShadow(ctx, r.database.Dir, m.Name, m.Version, tables))
	}
	return orNoShadow(postgres.OpenShadow(ctx, r.database.URL.Reveal(), m.Name, m.Version, tables, func(ctx context.Context, own *sql.DB) error {
		return projections.Migrate(ctx, own, migrations.View)
	}))
}

// orNoShadow returns a nil interface for an error, so that a nil pointer is not taken for a
// shadow.
func orNoShadow[S Shadow](s S, err error) (Shadow, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Close closes the log and the databases.
func (r *ReadModels) Close() error {
	var errs []error
	for _, end := range r.closes {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}
