package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// file is one SQLite file: one writing connection, and a few reading ones.
type file struct {
	path    string
	writer  *writer
	readers *readers
}

// care is the durability of a file's commits.
type care string

const (
	durable    care = "FULL"   // a commit survives a power cut
	consistent care = "NORMAL" // a power cut may lose the last commits, each as a whole
	fleeting   care = "OFF"    // for data that does not outlive the process
)

const (
	busyPatience   = 10 * time.Second // waits for another program that holds the file, such as a backup
	writerCacheKiB = 64 << 10
	readerCacheKiB = 8 << 10
)

// openFile opens a file, migrates its tables, and starts its writer.
func openFile(path string, c care, tables fs.FS, readers int, hooks hooks) (_ *file, err error) {
	conn, err := connect(path, c, writerCacheKiB)
	if err != nil {
		return nil, err
	}
	if err := migrate(conn, tables); err != nil {
		conn.Close() //nolint:errcheck // the first error is told
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f := &file{path: path}
	if f.readers, err = openReaders(readers, func() (*sqlite.Conn, error) { return connectToRead(path, c) }); err != nil {
		conn.Close() //nolint:errcheck // the first error is told
		return nil, err
	}
	if f.writer, err = startWriter(conn, path, c, hooks); err != nil {
		f.readers.close() //nolint:errcheck // the first error is told
		conn.Close()      //nolint:errcheck // the first error is told
		return nil, err
	}
	return f, nil
}

// close lets queued writes and running reads end.
func (f *file) close() error {
	err := f.writer.close()
	if err2 := f.readers.close(); err == nil {
		err = err2
	}
	return err
}

func connect(path string, c care, cacheKiB int) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate, sqlite.OpenWAL)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	conn.SetBusyTimeout(busyPatience)
	for _, pragma := range []string{
		"synchronous = " + string(c),
		"fullfsync = ON",            // macOS: fsync alone does not reach the disk
		"checkpoint_fullfsync = ON", // likewise
		"secure_delete = ON",        // deleted content is overwritten with zeros
		"wal_autocheckpoint = 0",    // the writer does it, see writer.tend
		"temp_store = MEMORY",
		fmt.Sprintf("cache_size = -%d", cacheKiB),
	} {
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA "+pragma, nil); err != nil {
			conn.Close() //nolint:errcheck // the first error is told
			return nil, fmt.Errorf("open %s: %s: %w", path, pragma, err)
		}
	}
	return conn, nil
}

// connectToRead opens a reading connection to a file that this process writes.
func connectToRead(path string, c care) (*sqlite.Conn, error) {
	conn, err := connect(path, c, readerCacheKiB)
	if err != nil {
		return nil, err
	}
	if err := sqlitex.ExecuteTransient(conn, "PRAGMA query_only = ON", nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// migrate applies the files of a folder that have not been applied yet, in order of name.
// user_version counts the applied ones.
func migrate(conn *sqlite.Conn, tables fs.FS) error {
	names, done, err := steps(conn, tables)
	if err != nil {
		return err
	}
	for i, name := range names[done:] {
		script, err := fs.ReadFile(tables, name)
		if err != nil {
			return err
		}
		// ExecuteScript runs it in one transaction.
		text := fmt.Sprintf("%s\nPRAGMA user_version = %d;", script, done+i+1)
		if err := sqlitex.ExecuteScript(conn, text, nil); err != nil {
			return fmt.Errorf("migration %s: %w", name, err)
		}
	}
	return nil
}

// steps returns the files of a folder in order of name, and the number of applied ones.
func steps(conn *sqlite.Conn, tables fs.FS) (names []string, done int, err error) {
	if names, err = fs.Glob(tables, "*.sql"); err != nil {
		return nil, 0, err
	}
	slices.Sort(names)
	err = query(conn, "PRAGMA user_version", func(s *sqlite.Stmt) bool { done = s.ColumnInt(0); return false })
	if err == nil && done > len(names) {
		err = fmt.Errorf("made by a newer version of this program (%d migrations, we know %d)", done, len(names))
	}
	return names, done, err
}

// readers is a small fixed set of reading connections. Each is taken for one page or lookup and
// returned before any consumer's code runs on the result. So waits are short, and a slow
// consumer does not keep the write-ahead log from being reset.
type readers struct {
	conns   chan *sqlite.Conn
	closing chan struct{}
}

func openReaders(n int, open func() (*sqlite.Conn, error)) (*readers, error) {
	r := &readers{conns: make(chan *sqlite.Conn, n), closing: make(chan struct{})}
	for range n {
		conn, err := open()
		if err != nil {
			for len(r.conns) > 0 {
				(<-r.conns).Close() //nolint:errcheck // the first error is told
			}
			return nil, err
		}
		r.conns <- conn
	}
	return r, nil
}

// read runs f with a connection. f reads one snapshot.
func (r *readers) read(ctx context.Context, f func(*sqlite.Conn) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	var conn *sqlite.Conn
	select {
	case <-r.closing:
		return eventlog.ErrClosed
	default:
	}
	select {
	case conn = <-r.conns:
	case <-r.closing:
		return eventlog.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { r.conns <- conn }()
	if err := exec(conn, "BEGIN"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, exec(conn, "COMMIT")) }()
	return f(conn)
}

func (r *readers) close() (err error) {
	close(r.closing)
	for range cap(r.conns) {
		if err2 := (<-r.conns).Close(); err == nil {
			err = err2
		}
	}
	return err
}

// query runs a statement and calls row for each of its rows until it returns false. Arguments
// are int64, string, []byte, or nil for NULL.
func query(conn *sqlite.Conn, text string, row func(s *sqlite.Stmt) (more bool), args ...any) error {
	s, err := conn.Prepare(text)
	if err != nil {
		return err
	}
	for i, a := range args {
		switch a := a.(type) {
		case nil:
			s.BindNull(i + 1)
		case int64:
			s.BindInt64(i+1, a)
		case string:
			s.BindText(i+1, a)
		case []byte:
			s.BindBytes(i+1, a)
		default:
			panic(fmt.Sprintf("embedded: cannot bind %T", a))
		}
	}
	for {
		has, err := s.Step()
		if err != nil || !has {
			return err
		}
		if !row(s) {
			return s.Reset()
		}
	}
}

// exec runs a statement without result rows.
func exec(conn *sqlite.Conn, text string, args ...any) error {
	return query(conn, text, func(*sqlite.Stmt) bool { panic("embedded: rows from " + text) }, args...)
}

// columnBytes copies a blob.
func columnBytes(s *sqlite.Stmt, col int) []byte {
	b := make([]byte, s.ColumnLen(col))
	s.ColumnBytes(col, b)
	return b
}
