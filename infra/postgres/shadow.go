package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/tempo-watchtower/watchtower/domain/bulk"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Shadow keeps a read model's tables during a rebuild. They are in a schema of their own, next
// to the serving tables, under the same names.
type Shadow struct {
	reader  string
	version int
	tables  []string
	schema  string
	migrate func(context.Context, *sql.DB) error
	live    *sql.DB
	own     *sql.DB
	conn    *pgx.Conn // holds the lock; loads rows
}

const (
	liveSchema    = "view"
	shadowSchema  = "view_shadow_" // followed by the reader's name
	shadowLock    = int32(0x77747368)
	uniqueBroken  = "23505"
	lockNotHad    = "55P03"
	deadlockFound = "40P01"
)

// shadowSettings: loading and comparing have no time limit, and a crash of the server sets rows
// and checkpoint back together.
var shadowSettings = map[string]string{
	"statement_timeout": "0", "idle_in_transaction_session_timeout": "0", "synchronous_commit": "off",
	"plan_cache_mode": "force_custom_plan",
}

// OpenShadow opens the shadow of a read model. reader names its checkpoint, version is the
// version of the code that makes its rows, and migrate makes all read models' tables in a
// database handle's schema. The serving tables must exist. It is an error if another process
// has the shadow open.
func OpenShadow(ctx context.Context, url, reader string, version int, tables []string, migrate func(context.Context, *sql.DB) error) (_ *Shadow, err error) {
	config, err := connConfig(url, Options{Application: "watchtower rebuild"}.withDefaults())
	if err != nil {
		return nil, err
	}
	s := &Shadow{reader: reader, version: version, tables: tables, schema: shadowSchema + reader, migrate: migrate}
	config = withParams(config, shadowSettings)
	if s.conn, err = pgx.ConnectConfig(ctx, withParams(config, map[string]string{"search_path": s.schema})); err != nil {
		return nil, err
	}
	s.live = stdlib.OpenDB(*withParams(config, map[string]string{"search_path": liveSchema}))
	s.own = stdlib.OpenDB(*withParams(config, map[string]string{"search_path": s.schema}))
	var got bool
	err = s.conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1, hashtext($2))`, shadowLock, reader).Scan(&got)
	if err == nil && !got {
		err = fmt.Errorf("the staging tables of %s: %w", reader, eventlog.ErrBusy)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close unlocks the shadow for other processes at once: a server may detect a closed connection
// later.
func (s *Shadow) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_, _ = s.conn.Exec(ctx, `SELECT pg_advisory_unlock($1, hashtext($2))`, shadowLock, s.reader) // if this fails, closing the connection unlocks
	closeConn(s.conn)
	return errors.Join(s.own.Close(), s.live.Close())
}

// DB is a handle to the shadow's tables.
func (s *Shadow) DB() *sql.DB { return s.own }

// Live is a handle to the serving tables.
func (s *Shadow) Live() *sql.DB { return s.live }

// Prefix is empty: the schema distinguishes the shadow's tables from the serving ones.
func (s *Shadow) Prefix() string { return "" }

// later stores the statements that make the indexes deferred during loading.
const later = `
CREATE TABLE IF NOT EXISTS later (text text PRIMARY KEY)`

const putOff = `
SELECT c.relname, pg_get_indexdef(c.oid) FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE n.nspname = $1 AND t.relname = ANY ($2) AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = c.oid)`

// Prepare makes the missing tables of the shadow. It discards an earlier run's tables if the
// serving tables have changed since, or another version has made the rows.
func (s *Shadow) Prepare(ctx context.Context, fresh bool) error {
	left, err := s.left(ctx)
	if err == nil && left && !fresh {
		fits, failed := s.fits(ctx)
		fresh, err = !fits, failed
	}
	if err == nil && fresh {
		err = s.Drop(ctx)
	}
	if err != nil {
		return err
	}
	if _, err := s.conn.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+s.schema); err != nil {
		return err
	}
	if err := s.migrate(ctx, s.own); err != nil {
		return err
	}
	if left && !fresh {
		return nil
	}
	return pgx.BeginFunc(ctx, s.conn, func(dbtx pgx.Tx) error {
		if _, err := dbtx.Exec(ctx, later); err != nil {
			return err
		}
		if _, err := dbtx.Exec(ctx, `COMMENT ON SCHEMA `+s.schema+` IS '`+s.made()+`'`); err != nil {
			return err
		}
		rows, err := dbtx.Query(ctx, putOff, s.schema, s.tables)
		if err != nil {
			return err
		}
		indexes := map[string]string{}
		var name, text string
		if _, err := pgx.ForEachRow(rows, []any{&name, &text}, func() error { indexes[name] = text; return nil }); err != nil {
			return err
		}
		for name, text := range indexes {
			if _, err := dbtx.Exec(ctx, `INSERT INTO later (text) VALUES ($1)`, text); err != nil {
				return err
			}
			if _, err := dbtx.Exec(ctx, `DROP INDEX `+pgx.Identifier{s.schema, name}.Sanitize()); err != nil {
				return err
			}
		}
		_, err = dbtx.Exec(ctx, `INSERT INTO readers (name, position) VALUES ($1, 0) ON CONFLICT (name) DO NOTHING`, s.reader)
		return err
	})
}

// left reports whether an earlier run's shadow exists.
func (s *Shadow) left(ctx context.Context) (there bool, err error) {
	err = s.conn.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, s.schema+".later").Scan(&there)
	return there, err
}

// made is the comment of the shadow's schema.
func (s *Shadow) made() string { return fmt.Sprintf("rows of version %d", s.version) }

// fits reports whether an earlier run's shadow can be continued.
func (s *Shadow) fits(ctx context.Context) (bool, error) {
	var made string
	err := s.conn.QueryRow(ctx, `SELECT coalesce(obj_description(to_regnamespace($1), 'pg_namespace'), '')`, s.schema).Scan(&made)
	if err != nil || made != s.made() {
		return false, err
	}
	var outdated bool
	err = s.conn.QueryRow(ctx, isOutdated).Scan(&outdated)
	return !outdated, err
}

// isOutdated asks whether the serving tables have migrations that the shadow lacks.
const isOutdated = `SELECT EXISTS (SELECT name FROM ` + liveSchema + `.view_migrations EXCEPT SELECT name FROM view_migrations)`

// Load writes rows and moves the checkpoint. New rows are copied straight into the table. If
// the table has one of them already, they go through merge.
func (s *Shadow) Load(ctx context.Context, from, to eventlog.Position, changes []bulk.Change) error {
	err := s.load(ctx, from, to, changes, true)
	if code(err) == uniqueBroken {
		err = s.load(ctx, from, to, changes, false)
	}
	return err
}

func (s *Shadow) load(ctx context.Context, from, to eventlog.Position, changes []bulk.Change, straight bool) error {
	return pgx.BeginFunc(ctx, s.conn, func(dbtx pgx.Tx) error {
		moved, err := dbtx.Exec(ctx, `UPDATE readers SET position = $1 WHERE name = $2 AND position = $3`, int64(to), s.reader, int64(from)) //nolint:gosec // positions are below 2^63
		if err != nil {
			return err
		}
		if moved.RowsAffected() != 1 {
			return eventlog.ErrMoved
		}
		for _, c := range changes {
			l := loadTable{dbtx, s.schema, c}
			if err := l.all(ctx, straight); err != nil {
				return fmt.Errorf("%s: %w", c.Table, err)
			}
		}
		return nil
	})
}

// loadTable writes the changes of one table.
type loadTable struct {
	pgx.Tx
	schema string
	bulk.Change
}

func (l loadTable) all(ctx context.Context, straight bool) error {
	key := strings.Join(l.Columns[:l.Key], ", ")
	if len(l.Gone) > 0 {
		if err := l.stage(ctx, "gone", l.Columns[:l.Key], l.Gone); err != nil {
			return err
		}
		text := `DELETE FROM ` + l.Table + ` WHERE (` + key + `) IN (SELECT ` + key + ` FROM ` + l.staged("gone") + `)`
		if _, err := l.Exec(ctx, text); err != nil {
			return err
		}
	}
	if len(l.New) > 0 {
		var err error
		if straight {
			_, err = l.CopyFrom(ctx, pgx.Identifier{l.schema, l.Table}, l.Columns, pgx.CopyFromRows(l.New))
		} else {
			err = l.merge(ctx, "new", l.New, `NOTHING`)
		}
		if err != nil {
			return err
		}
	}
	if len(l.Changed) == 0 {
		return nil
	}
	sets := make([]string, 0, len(l.Columns))
	for _, column := range l.Columns[l.Key:] {
		sets = append(sets, column+` = excluded.`+column)
	}
	return l.merge(ctx, "changed", l.Changed, `UPDATE SET `+strings.Join(sets, ", "))
}

// merge writes rows into a table that may have some of them.
func (l loadTable) merge(ctx context.Context, name string, rows [][]any, conflict string) error {
	if err := l.stage(ctx, name, l.Columns, rows); err != nil {
		return err
	}
	columns := strings.Join(l.Columns, ", ")
	_, err := l.Exec(ctx, `INSERT INTO `+l.Table+` (`+columns+`) SELECT `+columns+` FROM `+l.staged(name)+
		` ON CONFLICT (`+strings.Join(l.Columns[:l.Key], ", ")+`) DO `+conflict)
	return err
}

// stage copies values into a temporary table of the transaction.
func (l loadTable) stage(ctx context.Context, name string, columns []string, rows [][]any) error {
	_, err := l.Exec(ctx, `CREATE TEMPORARY TABLE `+l.staged(name)+` ON COMMIT DROP AS SELECT `+strings.Join(columns, ", ")+` FROM `+l.Table+` WITH NO DATA`)
	if err == nil {
		_, err = l.CopyFrom(ctx, pgx.Identifier{l.staged(name)}, columns, pgx.CopyFromRows(rows))
	}
	return err
}

func (l loadTable) staged(name string) string { return "load_" + name + "_" + l.Table }

// Index makes the deferred indexes and analyzes the tables, so that the first queries are
// planned well.
func (s *Shadow) Index(ctx context.Context) error {
	if _, err := s.conn.Exec(ctx, `SET maintenance_work_mem = '256MB'`); err != nil {
		return err
	}
	rows, err := s.conn.Query(ctx, `SELECT text FROM later ORDER BY text`)
	if err != nil {
		return err
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, text := range texts {
		if _, err := s.conn.Exec(ctx, strings.Replace(text, "INDEX ", "INDEX IF NOT EXISTS ", 1)); err != nil {
			return err
		}
	}
	for _, table := range s.tables {
		if _, err := s.conn.Exec(ctx, `ANALYZE `+pgx.Identifier{s.schema, table}.Sanitize()); err != nil {
			return err
		}
	}
	return nil
}

// Drop removes the shadow.
func (s *Shadow) Drop(ctx context.Context) error {
	_, err := s.conn.Exec(ctx, `DROP SCHEMA IF EXISTS `+s.schema+` CASCADE`)
	return err
}

// At is the position where the next rebuild continues, if there is a shadow: 0 if it begins
// anew.
func (s *Shadow) At(ctx context.Context) (at eventlog.Position, there bool, err error) {
	if there, err = s.left(ctx); err != nil || !there {
		return 0, false, err
	}
	if fits, err := s.fits(ctx); err != nil || !fits {
		return 0, true, err
	}
	var position int64
	err = s.conn.QueryRow(ctx, `SELECT coalesce(max(position), 0) FROM readers WHERE name = $1`, s.reader).Scan(&position)
	return eventlog.Position(position), true, err //nolint:gosec // positions are not negative
}

// OpenView opens a database's read models for reading them from end to end, without a time
// limit.
func OpenView(url string) (*sql.DB, error) {
	config, err := connConfig(url, Options{Application: "watchtower projections"}.withDefaults())
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*withParams(withParams(config, shadowSettings), map[string]string{"search_path": liveSchema})), nil
}

// Snapshot begins a read of serving tables as of one moment. It takes read locks on them before
// the snapshot: tables that a swap puts in their place later have no rows in it.
func Snapshot(ctx context.Context, view *sql.DB, tables []string) (*sql.Tx, error) {
	dbtx, err := view.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead})
	if err != nil {
		return nil, err
	}
	if _, err := dbtx.ExecContext(ctx, `LOCK TABLE `+strings.Join(tables, ", ")+` IN ACCESS SHARE MODE`); err != nil {
		return nil, errors.Join(err, dbtx.Rollback())
	}
	return dbtx, nil
}

// code is a server error's SQLSTATE; empty for other errors.
func code(err error) string {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Code
	}
	return ""
}
