package embedded

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Log is the event store in events.db.
type Log struct {
	file *file
	now  func() time.Time

	// Owned by the writer.
	last  eventlog.Position // of the events written, committed or not
	heads map[eventlog.Stream]head

	committed atomic.Uint64 // readers see events up to this position
	crash     func(point string)
	news      news
	closing   chan struct{}
	once      sync.Once
}

// head is the end of a stream, as an append needs it.
type head struct {
	no      int64
	version eventlog.Version
}

// headsMost bounds the streams that the writer caches. A stream outside the cache costs a
// lookup.
const headsMost = 1 << 16

func openLog(path string, c care, o Options) (*Log, error) {
	l := &Log{now: o.Now, crash: o.Crash, heads: map[eventlog.Stream]head{}, closing: make(chan struct{})}
	var err error
	l.file, err = openFile(path, c, tables("log"), logReaders, hooks{
		before: func() { o.Crash(beforeCommit) },
		after:  func() { o.Crash(afterCommit) },
		committed: func() {
			if l.committed.Swap(uint64(l.last)) != uint64(l.last) {
				l.news.tell()
			}
		},
		rolledBack: func() {
			l.last = eventlog.Position(l.committed.Load())
			clear(l.heads)
		},
	})
	if err != nil {
		return nil, err
	}
	// The writer has no job yet, so fields that it owns may be set here.
	err = l.file.readers.read(context.Background(), func(conn *sqlite.Conn) (err error) {
		l.last, err = lastPosition(conn)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, l.file.close())
	}
	l.committed.Store(uint64(l.last))
	return l, nil
}

func lastPosition(conn *sqlite.Conn) (last eventlog.Position, err error) {
	err = query(conn, "SELECT coalesce(max(pos), 0) FROM events", func(s *sqlite.Stmt) bool {
		last = eventlog.Position(s.ColumnInt64(0))
		return false
	})
	return last, err
}

// stop ends subscriptions.
func (l *Log) stop() { l.once.Do(func() { close(l.closing) }) }

// Append adds events to a stream; see the port for its guarantees.
func (l *Log) Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	size, err := weigh(stream, events)
	if err != nil {
		return eventlog.Appended{}, err
	}
	answer := struct {
		appended eventlog.Appended
		conflict *eventlog.ConflictError
	}{}
	err = l.file.writer.do(ctx, &job{bytes: size, actor: events[0].Meta.Actor, do: func(conn *sqlite.Conn) (err error) {
		answer.appended, answer.conflict, err = l.append(conn, stream, expected, events)
		return err
	}})
	switch {
	case err != nil: // the writer may still write answer
		return eventlog.Appended{}, fmt.Errorf("append to %s: %w", stream, err)
	case answer.conflict != nil:
		return eventlog.Appended{}, answer.conflict
	}
	return answer.appended, nil
}

// rowBytes is about the size of an event's row and index entries without its data.
const rowBytes = 200

// weigh checks the limits and returns about how many bytes are written.
func weigh(stream eventlog.Stream, events []eventlog.Event) (size int, err error) {
	switch {
	case stream == "" || len(events) == 0:
		return 0, fmt.Errorf("append of %d events to stream %q", len(events), stream)
	case len(stream) > eventlog.MaxStreamBytes:
		return 0, fmt.Errorf("%w: a stream name of %d bytes", eventlog.ErrTooLarge, len(stream))
	case len(events) > eventlog.MaxAppend:
		return 0, fmt.Errorf("%w: %d events for %s", eventlog.ErrTooLarge, len(events), stream)
	}
	for _, e := range events {
		if len(e.Data) > eventlog.MaxEventBytes {
			return 0, fmt.Errorf("%w: %s of %d bytes for %s", eventlog.ErrTooLarge, e.Name, len(e.Data), stream)
		}
		size += len(e.Data) + rowBytes
	}
	return size, nil
}

// append runs in the writer: it checks the version and writes the events.
func (l *Log) append(conn *sqlite.Conn, stream eventlog.Stream, expected eventlog.Version, events []eventlog.Event) (eventlog.Appended, *eventlog.ConflictError, error) {
	at, err := l.head(conn, stream)
	if err != nil {
		return eventlog.Appended{}, nil, err
	}
	if at.version != expected {
		a, err := repeated(conn, at, expected, events)
		if err != nil || a.Repeated {
			return a, nil, err
		}
		return a, &eventlog.ConflictError{Stream: stream, Expected: expected, Actual: at.version}, nil
	}
	if at.no == 0 {
		if err := exec(conn, "INSERT INTO streams (digest, name) VALUES (?, ?)", digest(stream), string(stream)); err != nil {
			return eventlog.Appended{}, nil, err
		}
		at.no = conn.LastInsertRowID()
	}
	now := l.now().UnixMicro()
	for _, e := range events {
		l.last++
		at.version++
		err := exec(conn, `INSERT INTO events (pos, stream, version, at, id, name, data, correlation, causation, actor, trace, link)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			int64(l.last), at.no, int64(at.version), now, e.ID[:], e.Name, []byte(e.Data),
			idOrNull(e.Meta.Correlation), idOrNull(e.Meta.Causation), e.Meta.Actor, e.Meta.Trace, linkOrNull(e.Meta.Link))
		if err != nil {
			return eventlog.Appended{}, nil, err
		}
	}
	if len(l.heads) >= headsMost {
		clear(l.heads)
	}
	l.heads[stream] = at
	return eventlog.Appended{Version: at.version, Position: l.last}, nil, nil
}

func idOrNull(id eventlog.ID) any {
	if id.IsZero() {
		return nil
	}
	return id[:]
}

func linkOrNull(link eventlog.Link) any {
	if link.IsZero() {
		return nil
	}
	return link[:]
}

// head looks up the end of a stream; the zero head means that the stream does not exist.
func (l *Log) head(conn *sqlite.Conn, stream eventlog.Stream) (head, error) {
	if at, ok := l.heads[stream]; ok {
		return at, nil
	}
	return headOf(conn, stream)
}

// headOf reads the end of a stream; the zero head means that the stream does not exist. A
// restore that has not finished may have put back some of the archived events only.
func headOf(conn *sqlite.Conn, stream eventlog.Stream) (at head, err error) {
	err = query(conn, `SELECT s.no, max(s.archived, coalesce((SELECT max(e.version) FROM events e WHERE e.stream = s.no), 0)) FROM streams s
		WHERE s.digest = ? AND s.name = ?`,
		func(s *sqlite.Stmt) bool {
			at = head{s.ColumnInt64(0), eventlog.Version(s.ColumnInt64(1))}
			return false
		}, digest(stream), string(stream))
	return at, err
}

// Version returns the version of a stream's last event; 0 when there is no stream.
func (l *Log) Version(ctx context.Context, stream eventlog.Stream) (eventlog.Version, error) {
	var at head
	err := l.file.readers.read(ctx, func(conn *sqlite.Conn) (err error) {
		at, err = headOf(conn, stream)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the version of %s: %w", stream, err)
	}
	return at.version, nil
}

// digest is the index key of a stream. Names with the same digest cost one lookup each. Making
// many of them would require breaking SHA-256.
func digest(stream eventlog.Stream) int64 {
	sum := sha256.Sum256([]byte(stream))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// repeated reports whether the events after the expected version are these very events, from an
// earlier try.
func repeated(conn *sqlite.Conn, at head, expected eventlog.Version, events []eventlog.Event) (a eventlog.Appended, err error) {
	same := 0
	err = query(conn, "SELECT id, pos FROM events WHERE stream = ? AND version > ? ORDER BY version LIMIT ?",
		func(s *sqlite.Stmt) bool {
			if !bytes.Equal(columnBytes(s, 0), events[same].ID[:]) {
				return false
			}
			same++
			a.Position = eventlog.Position(s.ColumnInt64(1))
			return true
		}, at.no, int64(expected), int64(len(events)))
	if err != nil || same < len(events) {
		return eventlog.Appended{}, err
	}
	a.Version, a.Repeated = expected+eventlog.Version(len(events)), true
	return a, nil
}

// Head is the position of the last committed event.
func (l *Log) Head(ctx context.Context) (eventlog.Position, error) {
	select {
	case <-l.closing:
		return 0, eventlog.ErrClosed
	default:
		return eventlog.Position(l.committed.Load()), ctx.Err()
	}
}
