package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Beside reads a directory's log whether or not a service is at work on it, and writes
// nothing there: SQLite lets any number of processes read beside one that writes.
type Beside struct {
	log *Log
}

// OpenBeside opens the log of a directory for reading. Nothing is made.
func OpenBeside(dir string) (*Beside, error) {
	path := filepath.Join(dir, "events.db")
	r := &readers{conns: make(chan *sqlite.Conn, logReaders), closing: make(chan struct{})}
	for range cap(r.conns) {
		conn, err := openToRead(path)
		if err != nil {
			for len(r.conns) > 0 {
				(<-r.conns).Close() //nolint:errcheck // the first error is told
			}
			return nil, fmt.Errorf("open %s: %w", path, err)
		}
		r.conns <- conn
	}
	return &Beside{&Log{file: &file{path: path, readers: r}}}, nil
}

func openToRead(path string) (*sqlite.Conn, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(busyPatience)
	for _, text := range []string{"query_only = ON", "temp_store = MEMORY", fmt.Sprintf("cache_size = -%d", readerCacheKiB)} {
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA "+text, nil); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// ReadAll yields batches up to the head of the log. Whether the service has dropped what
// is asked for is looked at after each read.
func (b *Beside) ReadAll(ctx context.Context, after event.Position, f event.Filter, max int) iter.Seq2[event.Batch, error] {
	return func(yield func(event.Batch, error) bool) {
		for {
			batch, err := b.log.page(ctx, after, f, max)
			if err == nil {
				err = b.notGone(ctx, after)
			}
			if err != nil {
				yield(event.Batch{}, err)
				return
			}
			if !yield(batch, nil) || batch.Live {
				return
			}
			after = batch.Next
		}
	}
}

func (b *Beside) notGone(ctx context.Context, after event.Position) error {
	return b.log.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		begins, err := beginsOf(conn)
		if err == nil {
			err = gone(after, begins)
		}
		return err
	})
}

// Segments lists the files that hold what was dropped, in order.
func (b *Beside) Segments(ctx context.Context) ([]archive.Segment, error) { return b.log.Segments(ctx) }

// Head is the position of the last event.
func (b *Beside) Head(ctx context.Context) (head event.Position, err error) {
	err = b.log.file.readers.read(ctx, func(conn *sqlite.Conn) (err error) {
		head, err = lastPosition(conn)
		return err
	})
	return head, err
}

// Close ends the reads.
func (b *Beside) Close() error { return b.log.file.readers.close() }

// ViewBeside opens a directory's read models, which any number of processes may have
// open. They must be there.
func ViewBeside(dir string) (*sql.DB, error) {
	path := filepath.Join(dir, "view.db")
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return openView(path, consistent)
}
