package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Limits of one page, which holds a connection while it is read.
const (
	pageEvents  = 1000    // events
	pageScanned = 10_000  // events scanned, if a filter passes few of them
	pageData    = 8 << 20 // bytes of events' data
)

const eventColumns = `s.name, e.name, e.pos, e.version, e.at, e.id, e.data, e.correlation, e.causation, e.actor, e.trace, e.link`

func scanEvent(s *sqlite.Stmt) eventlog.Recorded {
	r := eventlog.Recorded{
		Stream: eventlog.Stream(s.ColumnText(0)), Position: eventlog.Position(s.ColumnInt64(2)),
		Version: eventlog.Version(s.ColumnInt64(3)), At: time.UnixMicro(s.ColumnInt64(4)).UTC(),
	}
	r.Name = s.ColumnText(1)
	s.ColumnBytes(5, r.ID[:])
	r.Data = json.RawMessage(columnBytes(s, 6))
	s.ColumnBytes(7, r.Meta.Correlation[:]) // NULL leaves it zero
	s.ColumnBytes(8, r.Meta.Causation[:])
	r.Meta.Actor, r.Meta.Trace = s.ColumnText(9), s.ColumnText(10)
	s.ColumnBytes(11, r.Meta.Link[:])
	return r
}

// ReadStream yields a stream's events after a version.
func (l *Log) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for more := true; more; {
			var page []eventlog.Recorded
			more = false
			err := l.file.readers.read(ctx, func(conn *sqlite.Conn) error {
				bytes := 0
				err := query(conn, `SELECT `+eventColumns+` FROM streams s CROSS JOIN events e ON e.stream = s.no
					WHERE s.digest = ? AND s.name = ? AND e.version > ? ORDER BY e.version`,
					func(s *sqlite.Stmt) bool {
						page = append(page, scanEvent(s))
						bytes += len(page[len(page)-1].Data)
						more = bytes >= pageData || len(page) == pageEvents
						return !more
					}, digest(stream), string(stream), int64(after))
				if err == nil {
					err = streamGone(conn, stream, after)
				}
				return err
			})
			if err != nil {
				yield(eventlog.Recorded{}, fmt.Errorf("read %s: %w", stream, err))
				return
			}
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
				after = r.Version
			}
		}
	}
}

// ReadAll yields batches up to the head of the log.
func (l *Log) ReadAll(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error] {
	return eventlog.Pages(after, func(after eventlog.Position) (eventlog.Batch, error) { return l.page(ctx, after, f, max) })
}

// Subscribe yields batches for ever. Once live, it yields a batch for every further part of the
// log, even if no event passes the filter.
func (l *Log) Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		for {
			changed := l.news.wait() // before reading, so that no change is missed
			for b, err := range l.ReadAll(ctx, after, f, max) {
				if !yield(b, err) || err != nil {
					return
				}
				after = b.Next
			}
			if after < eventlog.Position(l.committed.Load()) {
				continue
			}
			select {
			case <-changed:
			case <-l.closing:
				yield(eventlog.Batch{}, eventlog.ErrClosed)
				return
			case <-ctx.Done():
				yield(eventlog.Batch{}, ctx.Err())
				return
			}
		}
	}
}

// page reads one batch.
func (l *Log) page(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) (eventlog.Batch, error) {
	if max < 1 {
		return eventlog.Batch{}, fmt.Errorf("read of at most %d events", max)
	}
	b := eventlog.Batch{Next: after, Live: true}
	err := l.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		bytes, scanned := 0, 0
		err := query(conn, `SELECT `+eventColumns+` FROM events e CROSS JOIN streams s ON s.no = e.stream
			WHERE e.pos > ? ORDER BY e.pos`,
			func(s *sqlite.Stmt) bool {
				if len(b.Events) >= min(max, pageEvents) || bytes >= pageData || scanned >= pageScanned {
					b.Live = false // the next page reads this row
					return false
				}
				scanned++
				b.Next = eventlog.Position(s.ColumnInt64(2))
				if f.Passes(eventlog.Stream(s.ColumnText(0)), s.ColumnText(1)) {
					b.Events = append(b.Events, scanEvent(s))
					bytes += len(b.Events[len(b.Events)-1].Data)
				}
				return true
			}, int64(after))
		if err == nil && scanned == 0 {
			err = notBeyond(conn, after)
		}
		if err == nil {
			err = gone(conn, after)
		}
		return err
	})
	if err != nil {
		return eventlog.Batch{}, fmt.Errorf("read after position %d: %w", after, err)
	}
	return b, nil
}

// notBeyond refuses a position beyond this log's head. The reader has it from another log, and
// would silently miss events appended up to that position.
func notBeyond(conn *sqlite.Conn, after eventlog.Position) error {
	head, err := lastPosition(conn)
	if err == nil && after > head {
		err = fmt.Errorf("the log ends at %d: if events.db was restored from a backup, remove work.db and view.db, which are rebuilt from it, and feed.db, whose consumers then begin again", head)
	}
	return err
}

// news wakes waiting readers. The zero news is ready.
type news struct {
	mu sync.Mutex
	ch chan struct{}
}

// wait returns a channel that is closed at the next tell.
func (n *news) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch == nil {
		n.ch = make(chan struct{})
	}
	return n.ch
}

func (n *news) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch != nil {
		close(n.ch)
		n.ch = nil
	}
}
