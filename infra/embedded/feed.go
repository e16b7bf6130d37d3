package embedded

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Feed is a directory as a consumer of its events opens it, from a process of its own:
// events.db is read and never written, while the service may be at work on it, and
// feed.db is the consumers'. Several processes may have a feed of one directory open,
// on the machine where it lies.
type Feed struct {
	log    *Log // only its readers
	groups *Groups
	once   sync.Once
	err    error // of closing
}

// FeedOptions are what may differ; the zero FeedOptions are what a consumer wants.
type FeedOptions struct {
	Now func() time.Time // the clock of claims; nil is time.Now
}

// How a feed notices what another process has appended: it looks.
const (
	feedPollBusy = 5 * time.Millisecond
	feedPollIdle = 100 * time.Millisecond // the most, when nothing comes
)

// OpenFeed opens a directory that a service has made. feed.db is made where it is missing.
func OpenFeed(dir string, o FeedOptions) (*Feed, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	f := &Feed{log: &Log{closing: make(chan struct{})}}
	readers, err := openLogReaders(filepath.Join(dir, "events.db"))
	if err != nil {
		return nil, fmt.Errorf("open feed of %s: %w", dir, err)
	}
	f.log.file = &file{path: filepath.Join(dir, "events.db"), readers: readers}
	groups, err := openFile(filepath.Join(dir, "feed.db"), durable, tables("feed"), 1, hooks{})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open feed of %s: %w", dir, err), readers.close())
	}
	f.groups = &Groups{file: groups, now: o.Now}
	return f, nil
}

// openLogReaders opens connections that cannot write.
func openLogReaders(path string) (*readers, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	r := &readers{conns: make(chan *sqlite.Conn, logReaders), closing: make(chan struct{})}
	for range logReaders {
		conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
		if err == nil {
			conn.SetBusyTimeout(busyPatience)
			r.conns <- conn
			err = exec(conn, fmt.Sprintf("PRAGMA cache_size = -%d", readerCacheKiB))
		}
		if err != nil {
			for len(r.conns) > 0 {
				(<-r.conns).Close() //nolint:errcheck // the first error is told
			}
			return nil, err
		}
	}
	return r, nil
}

// Groups are the consumers' checkpoints and parked streams.
func (f *Feed) Groups() *Groups { return f.groups }

// ReadStream yields the stream's events with version > after.
func (f *Feed) ReadStream(ctx context.Context, stream event.Stream, after event.Version) iter.Seq2[event.Recorded, error] {
	return f.log.ReadStream(ctx, stream, after)
}

// ReadAll yields batches up to the head of the log.
func (f *Feed) ReadAll(ctx context.Context, after event.Position, filter event.Filter, max int) iter.Seq2[event.Batch, error] {
	return f.log.ReadAll(ctx, after, filter, max)
}

// Head is the position of the last event; 0 when there is none.
func (f *Feed) Head(ctx context.Context) (head event.Position, err error) {
	err = f.log.file.readers.read(ctx, func(conn *sqlite.Conn) (err error) {
		head, err = lastPosition(conn)
		return err
	})
	return head, err
}

// Subscribe is ReadAll that never ends: it looks for what has been appended every few
// milliseconds, and less often while nothing comes.
func (f *Feed) Subscribe(ctx context.Context, after event.Position, filter event.Filter, max int) iter.Seq2[event.Batch, error] {
	return func(yield func(event.Batch, error) bool) {
		wait, first := feedPollBusy, true
		for {
			came := first
			for b, err := range f.log.ReadAll(ctx, after, filter, max) {
				if err == nil && b.Next == after && !first {
					continue // nothing new
				}
				if !yield(b, err) || err != nil {
					return
				}
				after, came, first = b.Next, true, false
			}
			if wait = min(2*wait, feedPollIdle); came {
				wait = feedPollBusy
			}
			if err := f.pause(ctx, wait); err != nil {
				yield(event.Batch{}, err)
				return
			}
		}
	}
}

// pause waits until it is time to look again, or the feed or the reader ends.
func (f *Feed) pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-f.log.closing:
		return event.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends subscriptions with event.ErrClosed and closes the files. Closing again
// does nothing more.
func (f *Feed) Close() error {
	f.once.Do(func() {
		f.log.stop()
		f.err = errors.Join(f.groups.file.close(), f.log.file.readers.close())
	})
	return f.err
}
