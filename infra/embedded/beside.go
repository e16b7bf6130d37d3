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
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Beside reads a directory's log whether or not a service is at work on it, and writes
// nothing there: SQLite lets any number of processes read beside one that writes.
type Beside struct {
	log  *Log // only its readers
	once sync.Once
	err  error // of closing
}

// OpenBeside opens the log of a directory for reading. Nothing is made.
func OpenBeside(dir string) (*Beside, error) {
	path := filepath.Join(dir, "events.db")
	r, err := openReaders(logReaders, func() (*sqlite.Conn, error) { return openToRead(path, readerCacheKiB) })
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &Beside{log: &Log{file: &file{path: path, readers: r}, closing: make(chan struct{})}}, nil
}

// openToRead opens a file that is there for a connection that cannot write.
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
func (b *Beside) ReadStream(ctx context.Context, stream event.Stream, after event.Version) iter.Seq2[event.Recorded, error] {
	return b.log.ReadStream(ctx, stream, after)
}

// ReadAll yields batches up to the head of the log.
func (b *Beside) ReadAll(ctx context.Context, after event.Position, f event.Filter, max int) iter.Seq2[event.Batch, error] {
	return b.log.ReadAll(ctx, after, f, max)
}

// Segments lists the files that hold what was dropped, in order.
func (b *Beside) Segments(ctx context.Context) ([]archive.Segment, error) { return b.log.Segments(ctx) }

// Head is the position of the last event; 0 when there is none.
func (b *Beside) Head(ctx context.Context) (head event.Position, err error) {
	err = b.log.file.readers.read(ctx, func(conn *sqlite.Conn) (err error) {
		head, err = lastPosition(conn)
		return err
	})
	return head, err
}

// How what another process has appended is noticed: by looking.
const (
	besidePollBusy = 5 * time.Millisecond
	besidePollIdle = 100 * time.Millisecond // the most, when nothing comes
)

// Subscribe is ReadAll that never ends: it looks for what has been appended every few
// milliseconds, and less often while nothing comes.
func (b *Beside) Subscribe(ctx context.Context, after event.Position, f event.Filter, max int) iter.Seq2[event.Batch, error] {
	return func(yield func(event.Batch, error) bool) {
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
				yield(event.Batch{}, err)
				return
			}
		}
	}
}

// pause waits until it is time to look again, or until this is closed or the reader ends.
func (b *Beside) pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-b.log.closing:
		return event.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends subscriptions with event.ErrClosed, and the reads. Closing again does
// nothing more.
func (b *Beside) Close() error {
	b.once.Do(func() {
		b.log.stop()
		b.err = b.log.file.readers.close()
	})
	return b.err
}

// ViewBeside opens a directory's read models, which any number of processes may have
// open. They must be there.
func ViewBeside(dir string) (*sql.DB, error) {
	path := filepath.Join(dir, "view.db")
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return openView(path, consistent)
}
