package simulation

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"modernc.org/sqlite"

	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
)

// views is the read models' database: SQLite in memory. A single connection is enough, since no
// replica stops in the middle of a transaction.
type views struct {
	conn       conn
	statements map[string]driver.Stmt
}

// conn is the interface of SQLite's connection.
type conn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
}

func openViews(ctx context.Context) (*views, error) {
	connector, err := sqlite.NewConnector("file::memory:?_txlock=immediate&_pragma=temp_store(MEMORY)&_pragma=journal_mode(MEMORY)&_pragma=synchronous(OFF)")
	if err != nil {
		return nil, err
	}
	opened, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	v := &views{conn: opened.(conn), statements: map[string]driver.Stmt{}}
	db := sql.OpenDB(&link{views: func() *views { return v }})
	defer db.Close() //nolint:errcheck // it closes nothing
	return v, projections.Migrate(ctx, db, migrations.View)
}

// DB is the database without faults, for judges.
func (v *views) DB() *sql.DB { return sql.OpenDB(&link{views: func() *views { return v }}) }

// close frees SQLite's memory.
func (v *views) close() error {
	var errs []error
	for _, s := range v.statements {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, v.conn.Close())...)
}

// view is a replica's access to the read models.
func (s storage) view() *sql.DB {
	db := sql.OpenDB(&link{views: func() *views { return s.world.views }, ask: func(ctx context.Context) (fate, error) {
		var f fate
		if err := s.call(ctx, viewing, "view", func() { f = s.world.viewFate }); err != nil {
			return fate{}, err // f may yet be written to
		}
		return f, nil
	}})
	db.SetMaxIdleConns(-1) // so that every transaction and query makes a call
	s.replica.view = db
	return db
}

// link is an access to the read models. Each connection serves one query or transaction: the
// world waits from its opening until that has ended.
type link struct {
	views func() *views
	ask   func(ctx context.Context) (fate, error)
}

func (l *link) Driver() driver.Driver { return nil }

func (l *link) Connect(ctx context.Context) (driver.Conn, error) {
	if l.ask == nil {
		return &line{views: l.views()}, nil
	}
	f, err := l.ask(ctx)
	if err != nil {
		return nil, err
	}
	return &line{views: l.views(), fate: f}, nil
}

// line is a connection in use.
type line struct {
	*views
	fate fate
}

func (l *line) Close() error              { return nil }
func (l *line) Begin() (driver.Tx, error) { return l.BeginTx(context.Background(), driver.TxOptions{}) }

func (l *line) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	begun, err := l.conn.BeginTx(ctx, o)
	return &dbtx{begun, l.fate}, err
}

func (l *line) Prepare(text string) (driver.Stmt, error) {
	return l.PrepareContext(context.Background(), text)
}

func (l *line) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	if s, ok := l.statements[text]; ok {
		return kept{s}, nil
	}
	s, err := l.conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	l.statements[text] = s
	return kept{s}, nil
}

// kept is a prepared statement that stays open when it is closed.
type kept struct{ driver.Stmt }

func (kept) Close() error { return nil }

func (k kept) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return k.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (k kept) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return k.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

// The faults of a commit.
const (
	commitLost = iota + 1 // it is not executed
	commitCut             // it is executed, and the caller does not learn it
)

// dbtx is a transaction whose commit may fail, before or after its execution.
type dbtx struct {
	driver.Tx
	fate fate
}

func (t *dbtx) Commit() error {
	switch t.fate.commit {
	case commitLost:
		return errors.Join(fmt.Errorf("commit: %w", errCut), t.Rollback())
	case commitCut:
		return errors.Join(fmt.Errorf("commit: %w", errCut), t.Tx.Commit())
	}
	return t.Tx.Commit()
}
