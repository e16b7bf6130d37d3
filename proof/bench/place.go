package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
)

// The engines, as named by the flag.
const (
	embeddedEngine = "embedded"
	postgresEngine = "postgres"
)

// place is the data directory or database of one run: empty at first, and removed afterwards.
type place struct {
	engine string
	dir    string
	url    string // of the Postgres database
}

// fresh creates a place. The caller removes it.
func (b *bench) fresh(ctx context.Context, engine string) (*place, error) {
	dir, err := os.MkdirTemp(b.dir, engine+"-")
	if err != nil {
		return nil, err
	}
	p := &place{engine: engine, dir: dir}
	if engine == embeddedEngine {
		return p, nil
	}
	admin, err := url.Parse(os.Getenv(testenv.PostgresVar))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", testenv.PostgresVar, err)
	}
	unique := make([]byte, 8)
	rand.Read(unique) //nolint:errcheck // never fails
	admin.Path = "/bench_" + hex.EncodeToString(unique)
	p.url = admin.String()
	return p, execute(ctx, "CREATE DATABASE "+admin.Path[1:])
}

// remove deletes everything, even after ctx has ended.
func (p *place) remove(ctx context.Context) error {
	err := os.RemoveAll(p.dir)
	if p.engine == postgresEngine {
		u, parseErr := url.Parse(p.url)
		if parseErr != nil {
			return errors.Join(err, parseErr)
		}
		err = errors.Join(err, execute(context.WithoutCancel(ctx), "DROP DATABASE "+u.Path[1:]+" WITH (FORCE)"))
	}
	return err
}

// execute runs a statement on the server's own database.
func execute(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, os.Getenv(testenv.PostgresVar))
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // the statement is over
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// flags are the service's flags for this place.
func (p *place) flags() []string {
	if p.engine == embeddedEngine {
		return []string{"--store", "embedded:" + filepath.Join(p.dir, "data")}
	}
	return []string{"--store", p.url, "--vault-key-file", filepath.Join(p.dir, "vault.key")}
}

// opened is a store without a service.
type opened struct {
	log   port.Store
	view  *sql.DB
	close func() error
}

// open opens the store of a place, with the tables of the read models.
func (p *place) open(ctx context.Context) (o opened, err error) {
	switch p.engine {
	case embeddedEngine:
		db, err := embedded.Open(filepath.Join(p.dir, "data"), embedded.Options{})
		if err != nil {
			return o, err
		}
		o = opened{db.Log(), db.View(), db.Close}
	case postgresEngine:
		db, err := postgres.Open(ctx, p.url, postgres.Options{})
		if err != nil {
			return o, err
		}
		o = opened{db.Log, db.View(), func() error { return db.Close(context.WithoutCancel(ctx)) }}
		if err := db.Migrate(ctx); err != nil {
			return o, errors.Join(err, o.close())
		}
	}
	if err := projections.Migrate(ctx, o.view, migrations.View); err != nil {
		return o, errors.Join(err, o.close())
	}
	return o, nil
}

// shadow opens the staging tables of a read model in the place.
func (p *place) shadow(ctx context.Context, m projections.Model) (projections.Shadow, error) {
	tables := m.TableNames()
	if p.engine == embeddedEngine {
		return embedded.OpenShadow(ctx, filepath.Join(p.dir, "data"), m.Name, m.Version, tables)
	}
	return postgres.OpenShadow(ctx, p.url, m.Name, m.Version, tables, func(ctx context.Context, own *sql.DB) error {
		return projections.Migrate(ctx, own, migrations.View)
	})
}
