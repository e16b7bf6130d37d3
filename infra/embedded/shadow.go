package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/bulk"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Shadow keeps a read model's tables in view.db during a rebuild, next to the serving tables,
// under names that begin with [ShadowPrefix]. The service may be running: SQLite lets several
// processes write to view.db in turn.
type Shadow struct {
	reader  string
	version int
	tables  []string
	db      *sql.DB
	lock    *os.File
}

// ShadowPrefix is the prefix of the names of a shadow's tables and indexes.
const ShadowPrefix = "shadow_"

const (
	// shadowChunk is the number of rows per write. shadowPause is how long others may write
	// after each, in particular the projector of the serving tables.
	shadowChunk = 512
	shadowPause = 5 * time.Millisecond
	// shadowStatement is the number of rows per statement: SQLite compares each parameter's
	// name with all before it.
	shadowStatement = 32
)

// OpenShadow opens the shadow of a read model. reader names its checkpoint, version is the
// version of the code that makes its rows. The serving tables must exist. It is an error if
// another process has the shadow open.
func OpenShadow(_ context.Context, dir, reader string, version int, tables []string) (*Shadow, error) {
	held, err := lockShadow(filepath.Join(dir, "rebuild-"+reader+".lock"))
	if err != nil {
		return nil, err
	}
	s := &Shadow{reader: reader, version: version, tables: tables, lock: held}
	if s.db, err = openView(filepath.Join(dir, "view.db"), consistent); err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return s, nil
}

// Close unlocks the shadow for other processes.
func (s *Shadow) Close() error { return errors.Join(s.db.Close(), s.lock.Close()) }

// DB is a handle to the shadow's tables and the serving tables.
func (s *Shadow) DB() *sql.DB { return s.db }

// Live is a handle to the serving tables.
func (s *Shadow) Live() *sql.DB { return s.db }

// Prefix is the prefix of the shadow's table names.
func (s *Shadow) Prefix() string { return ShadowPrefix }

// Prepare makes the shadow's tables like the serving tables, indexes included: making indexes
// later would block other writers meanwhile. It keeps an earlier run's shadow, unless the
// serving tables have changed since, or another version has made its rows.
func (s *Shadow) Prepare(ctx context.Context, fresh bool) error {
	return s.inTx(ctx, func(dbtx *sql.Tx) error {
		_, there, fits, err := s.left(ctx, dbtx)
		if err != nil || there && fits && !fresh {
			return err
		}
		if err := s.drop(ctx, dbtx); err != nil {
			return err
		}
		if err := makeReaders(ctx, dbtx); err != nil {
			return err
		}
		for _, table := range s.tables {
			serving, err := schemaOf(ctx, dbtx, table)
			if err == nil && len(serving) == 0 {
				err = fmt.Errorf("view.db has no table %s", table)
			}
			if err != nil {
				return err
			}
			for _, part := range serving {
				if _, err := dbtx.ExecContext(ctx, part.shadowed(table)); err != nil {
					return err
				}
			}
		}
		_, err = dbtx.ExecContext(ctx, `INSERT INTO `+ShadowPrefix+`readers (name, position, version) VALUES ($1, 0, $2)`, s.reader, s.version)
		return err
	})
}

// left finds an earlier run's shadow: its checkpoint, and whether this run can continue it.
func (s *Shadow) left(ctx context.Context, dbtx *sql.Tx) (at eventlog.Position, there, fits bool, err error) {
	readers, err := schemaOf(ctx, dbtx, ShadowPrefix+"readers")
	if err != nil || len(readers) == 0 {
		return 0, false, false, err
	}
	made := `version`
	if !readers[0].versioned() {
		made = `0`
	}
	var position int64
	var version int
	err = dbtx.QueryRowContext(ctx, `SELECT position, `+made+` FROM `+ShadowPrefix+`readers WHERE name = $1`, s.reader).Scan(&position, &version)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, false, nil
	}
	fits = version == s.version
	for _, table := range s.tables {
		if err != nil {
			break
		}
		var same bool
		_, same, err = alike(ctx, dbtx, table)
		fits = fits && same
	}
	return eventlog.Position(position), err == nil, fits, err //nolint:gosec // positions are not negative
}

// Load writes rows in chunks, and then moves the checkpoint. An interrupted load leaves rows
// ahead of the checkpoint, which the next load writes again.
func (s *Shadow) Load(ctx context.Context, from, to eventlog.Position, changes []bulk.Change) error {
	for _, c := range changes {
		if err := s.load(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.Table, err)
		}
	}
	return s.inTx(ctx, func(dbtx *sql.Tx) error {
		moved, err := dbtx.ExecContext(ctx, `UPDATE `+ShadowPrefix+`readers SET position = $1 WHERE name = $2 AND position = $3`, int64(to), s.reader, int64(from)) //nolint:gosec // positions are below 2^63
		if err != nil {
			return err
		}
		if n, err := moved.RowsAffected(); err != nil || n != 1 {
			return errors.Join(err, eventlog.ErrMoved)
		}
		return nil
	})
}

func (s *Shadow) load(ctx context.Context, c bulk.Change) error {
	key := strings.Join(c.Columns[:c.Key], ", ")
	remove := `DELETE FROM ` + ShadowPrefix + c.Table + ` WHERE (` + key + `) = (` + marks(c.Key) + `)`
	for some := range slices.Chunk(c.Gone, shadowChunk) {
		err := s.chunk(ctx, func(dbtx *sql.Tx) error {
			for _, gone := range some {
				if _, err := dbtx.ExecContext(ctx, remove, gone...); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	sets := make([]string, 0, len(c.Columns))
	for _, column := range c.Columns[c.Key:] {
		sets = append(sets, column+" = excluded."+column)
	}
	into := `INSERT INTO ` + ShadowPrefix + c.Table + ` (` + strings.Join(c.Columns, ", ") + `) VALUES `
	conflict := ` ON CONFLICT (` + key + `) DO UPDATE SET ` + strings.Join(sets, ", ")
	for some := range slices.Chunk(slices.Concat(c.New, c.Changed), shadowChunk) {
		err := s.chunk(ctx, func(dbtx *sql.Tx) error {
			for few := range slices.Chunk(some, shadowStatement) {
				values := strings.TrimSuffix(strings.Repeat("("+marks(len(c.Columns))+"), ", len(few)), ", ")
				if _, err := dbtx.ExecContext(ctx, into+values+conflict, slices.Concat(few...)...); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// chunk writes in one database transaction, and then lets others write.
func (s *Shadow) chunk(ctx context.Context, do func(*sql.Tx) error) error {
	if err := s.inTx(ctx, do); err != nil {
		return err
	}
	pause := time.NewTimer(shadowPause)
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// Index does nothing: the indexes exist already.
func (s *Shadow) Index(context.Context) error { return nil }

// Swap replaces the serving tables by the shadow's. Readers are not blocked; writers wait.
// Afterwards the schema's text is the same as before: SQLite has no statement that renames an
// index, so Swap edits the names in the sqlite_schema table.
func (s *Shadow) Swap(ctx context.Context, last func(dbtx *sql.Tx, own, live eventlog.Position) (eventlog.Position, error)) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()                                                                   //nolint:errcheck // it goes back to the others
	defer conn.ExecContext(context.WithoutCancel(ctx), `PRAGMA writable_schema = RESET`) //nolint:errcheck // at worst the next one to use it reads the schema again
	dbtx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer dbtx.Rollback() //nolint:errcheck // after a commit it does nothing
	own, err := checkpointIn(ctx, dbtx, ShadowPrefix, s.reader)
	if err != nil {
		return err
	}
	live, err := checkpointIn(ctx, dbtx, "", s.reader)
	if err != nil {
		return err
	}
	at, err := last(dbtx, own, live)
	if err != nil {
		return err
	}
	for _, table := range s.tables {
		if err := swapTable(ctx, dbtx, table); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	if _, err := dbtx.ExecContext(ctx, `INSERT INTO readers (name, position) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET position = excluded.position`, s.reader, int64(at)); err != nil { //nolint:gosec // positions are below 2^63
		return err
	}
	if err := s.forget(ctx, dbtx); err != nil {
		return err
	}
	return dbtx.Commit()
}

func checkpointIn(ctx context.Context, dbtx *sql.Tx, prefix, reader string) (eventlog.Position, error) {
	var at int64
	err := dbtx.QueryRowContext(ctx, `SELECT coalesce(max(position), 0) FROM `+prefix+`readers WHERE name = $1`, reader).Scan(&at)
	return eventlog.Position(at), err
}

func swapTable(ctx context.Context, dbtx *sql.Tx, table string) error {
	serving, same, err := alike(ctx, dbtx, table)
	if err != nil {
		return err
	}
	if !same {
		return errors.New("another version of the program has changed the serving table meanwhile: rebuild again")
	}
	for _, text := range []string{
		`DROP TABLE ` + table, `ALTER TABLE ` + ShadowPrefix + table + ` RENAME TO ` + table, `PRAGMA writable_schema = ON`,
	} {
		if _, err := dbtx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	for _, p := range serving {
		was := ShadowPrefix + p.name
		if p.kind == "table" {
			was = p.name // it has been renamed
		}
		renamed, err := dbtx.ExecContext(ctx, `UPDATE sqlite_schema SET name = $1, sql = $2 WHERE type = $3 AND name = $4`, p.name, p.text, p.kind, was)
		if err != nil {
			return err
		}
		if n, err := renamed.RowsAffected(); err != nil || n != 1 {
			return errors.Join(err, fmt.Errorf("the staging tables have no %s %s", p.kind, was))
		}
	}
	return nil
}

// Drop removes the shadow.
func (s *Shadow) Drop(ctx context.Context) error {
	return s.inTx(ctx, func(dbtx *sql.Tx) error { return s.drop(ctx, dbtx) })
}

func (s *Shadow) drop(ctx context.Context, dbtx *sql.Tx) error {
	for _, table := range s.tables {
		if _, err := dbtx.ExecContext(ctx, `DROP TABLE IF EXISTS `+ShadowPrefix+table); err != nil {
			return err
		}
	}
	return s.forget(ctx, dbtx)
}

// forget removes the shadow's checkpoint, and the table of checkpoints with the last one.
func (s *Shadow) forget(ctx context.Context, dbtx *sql.Tx) error {
	parts, err := schemaOf(ctx, dbtx, ShadowPrefix+"readers")
	if err != nil || len(parts) == 0 {
		return err
	}
	if _, err := dbtx.ExecContext(ctx, `DELETE FROM `+ShadowPrefix+`readers WHERE name = $1`, s.reader); err != nil {
		return err
	}
	var others int
	if err := dbtx.QueryRowContext(ctx, `SELECT count(*) FROM `+ShadowPrefix+`readers`).Scan(&others); err != nil || others > 0 {
		return err
	}
	_, err = dbtx.ExecContext(ctx, `DROP TABLE `+ShadowPrefix+`readers`)
	return err
}

func (s *Shadow) inTx(ctx context.Context, do func(dbtx *sql.Tx) error) error {
	dbtx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer dbtx.Rollback() //nolint:errcheck // after a commit it does nothing
	if err := do(dbtx); err != nil {
		return err
	}
	return dbtx.Commit()
}

// At is the position where the next rebuild continues, if there is a shadow: 0 if it begins
// anew.
func (s *Shadow) At(ctx context.Context) (at eventlog.Position, there bool, err error) {
	err = s.inTx(ctx, func(dbtx *sql.Tx) error {
		var fits bool
		at, there, fits, err = s.left(ctx, dbtx)
		if !fits {
			at = 0
		}
		return err
	})
	return at, there, err
}
