package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/migrations"
)

// migrateLock is the key of the advisory lock under which schemas change: "wtmigrat".
const migrateLock int64 = 0x77746d6967726174

// Migrate brings the log and work schemas up to date and makes an empty view schema, whose
// tables belong to the read models. Replicas may call it concurrently: one works, the others
// wait.
func (db *DB) Migrate(ctx context.Context) error {
	if err := migrate(ctx, db.config, migrations.Postgres); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

const prepareMigrations = `
CREATE SCHEMA IF NOT EXISTS view;
CREATE SCHEMA IF NOT EXISTS log;
CREATE TABLE IF NOT EXISTS log.migrations (
  version bigint      PRIMARY KEY,
  name    text        NOT NULL,
  digest  bytea       NOT NULL,
  at      timestamptz NOT NULL DEFAULT clock_timestamp()
)`

// migrate applies every NNNN_name.sql in files that log.migrations does not list, in order,
// each in its own database transaction. A version of a newer program is ignored. A version
// whose text has changed since it was applied is an error.
func migrate(ctx context.Context, config *pgx.ConnConfig, files fs.FS) error {
	steps, err := migrationSteps(files)
	if err != nil {
		return err
	}
	// The lock belongs to a connection of its own, and waiting has no time limit.
	conn, err := pgx.ConnectConfig(ctx, withParams(config, map[string]string{
		"statement_timeout": "0", "lock_timeout": "0", "idle_in_transaction_session_timeout": "0",
	}))
	if err != nil {
		return err
	}
	defer closeConn(conn)
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, migrateLock); err != nil {
		return fmt.Errorf("wait for the turn: %w", err)
	}
	if _, err := conn.Exec(ctx, prepareMigrations); err != nil {
		return err
	}
	for _, s := range steps {
		if err := s.apply(ctx, conn); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// migrationStep is one file.
type migrationStep struct {
	version int64
	name    string
	sql     []byte
}

func migrationSteps(files fs.FS) ([]migrationStep, error) {
	var steps []migrationStep
	err := fs.WalkDir(files, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(file) != ".sql" {
			return err
		}
		number, _, _ := strings.Cut(path.Base(file), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return fmt.Errorf("%s does not begin with a number: %w", file, err)
		}
		sql, err := fs.ReadFile(files, file)
		steps = append(steps, migrationStep{version, path.Base(file), sql})
		return err
	}) // leading zeros make lexical order numeric
	return steps, err
}

func (s migrationStep) apply(ctx context.Context, conn *pgx.Conn) error {
	digest := sha256.Sum256(s.sql)
	var applied []byte
	err := conn.QueryRow(ctx, `SELECT digest FROM log.migrations WHERE version = $1`, s.version).Scan(&applied)
	switch {
	case err == nil && !bytes.Equal(applied, digest[:]):
		return errors.New("was changed after it had been applied")
	case err == nil:
		return nil
	case !errors.Is(err, pgx.ErrNoRows):
		return err
	}
	return pgx.BeginFunc(ctx, conn, func(dbtx pgx.Tx) error {
		if _, err := dbtx.Exec(ctx, string(s.sql)); err != nil {
			return err
		}
		_, err := dbtx.Exec(ctx, `INSERT INTO log.migrations (version, name, digest) VALUES ($1, $2, $3)`,
			s.version, s.name, digest[:])
		return err
	})
}
