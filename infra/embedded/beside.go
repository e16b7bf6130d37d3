package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Beside reads a directory's log, even while a service uses it, and writes nothing there:
// SQLite allows any number of reading processes next to one that writes.
type Beside struct {
	log  *Log // only its readers are set
	once sync.Once
	err  error // of Close
}

// OpenBeside opens the log of a directory for reading. It creates nothing.
func OpenBeside(dir string) (*Beside, error) {
	path := filepath.Join(dir, "events.db")
	r, err := openReaders(logReaders, func() (*sqlite.Conn, error) { return openToRead(path, readerCacheKiB) })
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &Beside{log: &Log{file: &file{path: path, readers: r}, closing: make(chan struct{})}}, nil
}

// openToRead opens an existing file for a connection that cannot write.
func openToRead(path string, cacheKiB int) (*sqlite.Conn, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(busyPatience)
	for _, text := range []string{"query_only = ON", "temp_store = MEMORY", fmt.Sprintf("cache_size = -%d", cacheKiB)} {
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA "+text, nil); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// ReadStream yields the stream's events with version > after.
func (b *Beside) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return b.log.ReadStream(ctx, stream, after)
}

// ReadAll yields batches up to the head of the log.
func (b *Beside) ReadAll(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error] {
	return b.log.ReadAll(ctx, after, f, max)
}

// Segments lists the files that hold the dropped events, in order.
func (b *Beside) Segments(ctx context.Context) ([]archive.Segment, error) { return b.log.Segments(ctx) }

// Head is the position of the last event; 0 if there is none.
func (b *Beside) Head(ctx context.Context) (head eventlog.Position, err error) {
	err = b.log.file.readers.read(ctx, func(conn *sqlite.Conn) (err error) {
		head, err = lastPosition(conn)
		return err
	})
	return head, err
}

// Other processes' appends are found by polling.
const (
	besidePollBusy = 5 * time.Millisecond
	besidePollIdle = 100 * time.Millisecond // the maximum, while idle
)

// Subscribe is ReadAll without an end: it polls for new events every few milliseconds, and less
// often while idle.
func (b *Beside) Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		wait, first := besidePollBusy, true
		for {
			came := first
			for batch, err := range b.log.ReadAll(ctx, after, f, max) {
				if err == nil && batch.Next == after && !first {
					continue // nothing new
				}
				if !yield(batch, err) || err != nil {
					return
				}
				after, came, first = batch.Next, true, false
			}
			if wait = min(2*wait, besidePollIdle); came {
				wait = besidePollBusy
			}
			if err := b.pause(ctx, wait); err != nil {
				yield(eventlog.Batch{}, err)
				return
			}
		}
	}
}

// pause waits until the next poll, or until b is closed or ctx ends.
func (b *Beside) pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-b.log.closing:
		return eventlog.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends subscriptions with eventlog.ErrClosed, and the reads. A second Close does nothing.
func (b *Beside) Close() error {
	b.once.Do(func() {
		b.log.stop()
		b.err = b.log.file.readers.close()
	})
	return b.err
}

// ViewBeside opens a directory's read models, which must exist. Any number of processes may
// open them.
func ViewBeside(dir string) (*sql.DB, error) {
	path := filepath.Join(dir, "view.db")
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return openView(path, consistent)
}
