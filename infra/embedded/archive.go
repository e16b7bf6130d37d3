package embedded

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

func beginsOf(conn *sqlite.Conn) (begins eventlog.Position, err error) {
	err = query(conn, "SELECT pos FROM beginning", func(s *sqlite.Stmt) bool {
		begins = eventlog.Position(s.ColumnInt64(0))
		return false
	})
	return begins, err
}

// gone returns the error for reading after a position if the log begins later. It is checked
// together with each read, in every process: another process may be dropping events.
func gone(conn *sqlite.Conn, after eventlog.Position) error {
	begins, err := beginsOf(conn)
	if err == nil && begins > 1 && after < begins-1 {
		err = &archive.GoneError{Begins: begins}
	}
	return err
}

// streamGone is the same for a stream whose events after a version were dropped.
func streamGone(conn *sqlite.Conn, stream eventlog.Stream, after eventlog.Version) error {
	begins, err := beginsOf(conn)
	if err != nil || begins <= 1 {
		return err
	}
	archived, in, err := extentOf(conn, stream)
	if err == nil && after < archived {
		err = &archive.GoneError{Begins: begins, Stream: stream, Extent: in}
	}
	return err
}

// extentOf returns the version up to which a stream's events are only in the archive, and their
// positions there.
func extentOf(conn *sqlite.Conn, stream eventlog.Stream) (archived eventlog.Version, in archive.Extent, err error) {
	err = query(conn, "SELECT archived, archived_from, archived_to FROM streams WHERE digest = ? AND name = ?", func(s *sqlite.Stmt) bool {
		archived = eventlog.Version(s.ColumnInt64(0))
		in = archive.Extent{First: eventlog.Position(s.ColumnInt64(1)), Last: eventlog.Position(s.ColumnInt64(2))}
		return false
	}, digest(stream), string(stream))
	return archived, in, err
}

// Begins is the position from which the log is complete in this database; 1 if nothing was
// dropped.
func (l *Log) Begins(ctx context.Context) (begins eventlog.Position, err error) {
	err = l.file.readers.read(ctx, func(conn *sqlite.Conn) (err error) {
		begins, err = beginsOf(conn)
		return err
	})
	return begins, err
}

// Segments lists the archive's files in order.
func (l *Log) Segments(ctx context.Context) (all []archive.Segment, err error) {
	err = l.file.readers.read(ctx, func(conn *sqlite.Conn) (err error) {
		all, err = segmentsOf(conn)
		return err
	})
	return all, err
}

func segmentsOf(conn *sqlite.Conn) (all []archive.Segment, err error) {
	err = query(conn, "SELECT first, past, name, events, bytes, since, until, store, hash FROM segments ORDER BY first", func(s *sqlite.Stmt) bool {
		segment := archive.Segment{
			First: eventlog.Position(s.ColumnInt64(0)), Past: eventlog.Position(s.ColumnInt64(1)), Name: s.ColumnText(2),
			Events: uint64(s.ColumnInt64(3)), Bytes: uint64(s.ColumnInt64(4)),
			From: time.UnixMicro(s.ColumnInt64(5)).UTC(), To: time.UnixMicro(s.ColumnInt64(6)).UTC(),
		}
		s.ColumnBytes(7, segment.Store[:])
		s.ColumnBytes(8, segment.Hash[:])
		all = append(all, segment)
		return true
	})
	return all, err
}

// KeepSegment lists a file. A file that is listed already stays unchanged.
func (l *Log) KeepSegment(ctx context.Context, s archive.Segment) error {
	return l.write(ctx, func(conn *sqlite.Conn) error {
		return exec(conn, `INSERT OR IGNORE INTO segments (first, past, store, name, hash, events, bytes, since, until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			int64(s.First), int64(s.Past), s.Store[:], s.Name, s.Hash[:], int64(s.Events), int64(s.Bytes), s.From.UnixMicro(), s.To.UnixMicro())
	})
}

func (l *Log) write(ctx context.Context, do func(conn *sqlite.Conn) error) error {
	return l.file.writer.do(ctx, &job{do: do})
}

// dropEvents is the number of events checked per commit, which blocks appends meanwhile.
const dropEvents = 2000

// Drop removes the events below a position, which are in segments, except those in unsettled
// streams. The freed pages are reused. It returns the position where the log begins afterwards,
// and may be called again after any error.
func (l *Log) Drop(ctx context.Context, below eventlog.Position, rule archive.Rule) (eventlog.Position, error) {
	begins, err := l.Begins(ctx)
	if err != nil {
		return 0, err
	}
	if below > begins {
		// The new beginning is written first, so no reader can miss the events removed after
		// it.
		err := l.write(ctx, func(conn *sqlite.Conn) error { return begin(conn, begins, below) })
		if err != nil {
			return begins, fmt.Errorf("drop below position %d: %w", below, err)
		}
		begins = below
		l.crash(dropping)
	}
	for after := eventlog.Position(0); after+1 < begins; {
		var next eventlog.Position
		err := l.write(ctx, func(conn *sqlite.Conn) (err error) {
			next, err = dropSome(conn, after, begins, rule)
			return err
		})
		if err != nil {
			return begins, fmt.Errorf("drop below position %d: %w", begins, err)
		}
		after = next
		l.crash(dropped)
	}
	return begins, nil
}

// begin moves the log's beginning forward, if all events before it are in segments.
func begin(conn *sqlite.Conn, from, below eventlog.Position) error {
	all, err := segmentsOf(conn)
	if err != nil {
		return err
	}
	next := from
	for _, s := range all {
		if s.First <= next && next < s.Past {
			next = s.Past
		}
	}
	if next < below {
		return fmt.Errorf("positions from %d on are in no listed segment", next)
	}
	return exec(conn, "UPDATE beginning SET pos = ?", int64(below))
}

// dropSome removes the droppable ones among the next events after a position, and returns the
// last position checked.
func dropSome(conn *sqlite.Conn, after, below eventlog.Position, rule archive.Rule) (eventlog.Position, error) {
	type stream struct {
		no      int64
		name    eventlog.Stream
		version int64 // of its last event in this batch
	}
	streams := map[int64]stream{}
	next := below - 1
	count := 0
	err := query(conn, `SELECT e.pos, e.stream, e.version, s.name FROM events e CROSS JOIN streams s ON s.no = e.stream
		WHERE e.pos > ? AND e.pos < ? ORDER BY e.pos`, func(s *sqlite.Stmt) bool {
		if count == dropEvents {
			return false
		}
		count++
		next = eventlog.Position(s.ColumnInt64(0))
		streams[s.ColumnInt64(1)] = stream{s.ColumnInt64(1), eventlog.Stream(s.ColumnText(3)), s.ColumnInt64(2)}
		return true
	}, int64(after), int64(below))
	if err != nil {
		return after, err
	}
	if count < dropEvents {
		next = below - 1
	}
	for _, s := range streams {
		// Events that were dropped already: a restore that did not finish has put them back.
		if err := exec(conn, "DELETE FROM events WHERE stream = ?1 AND version <= (SELECT archived FROM streams WHERE no = ?1)", s.no); err != nil {
			return after, err
		}
		last, name := below, ""
		err := query(conn, "SELECT pos, name FROM events WHERE stream = ? ORDER BY version DESC LIMIT 1", func(row *sqlite.Stmt) bool {
			last, name = eventlog.Position(row.ColumnInt64(0)), row.ColumnText(1)
			return false
		}, s.no)
		if err != nil {
			return after, err
		}
		if last >= below || !rule.Settled(s.name, name) {
			continue
		}
		// The stream's last event is removed last: its version and name are needed until then.
		if err := forget(conn, s.no, s.version); err != nil {
			return after, err
		}
	}
	return next, nil
}

// forget removes a stream's events up to a version, and records their range of positions. Where
// events were removed before ranges were recorded, the range's start stays unknown.
func forget(conn *sqlite.Conn, stream, version int64) error {
	err := exec(conn, `UPDATE streams SET archived = max(archived, ?2),
		archived_from = CASE archived WHEN 0 THEN coalesce((SELECT pos FROM events WHERE stream = ?1 ORDER BY version LIMIT 1), 0) ELSE archived_from END,
		archived_to = max(archived_to, coalesce((SELECT pos FROM events WHERE stream = ?1 AND version <= ?2 ORDER BY version DESC LIMIT 1), 0))
		WHERE no = ?1`, stream, version)
	if err != nil {
		return err
	}
	return exec(conn, "DELETE FROM events WHERE stream = ? AND version <= ?", stream, version)
}

// Restore puts dropped events from a position on back into the log. They must be all events up
// to the beginning of the log, which is lowered last. If that fails, events that were put back
// are not part of the log; the next restore completes them, or the next drop removes them.
func (l *Log) Restore(ctx context.Context, from eventlog.Position, events iter.Seq2[eventlog.Batch, error]) error {
	begins, err := l.Begins(ctx)
	if err != nil || from >= begins {
		return err
	}
	next := from
	for batch, err := range events {
		if err != nil {
			return err
		}
		for i, r := range batch.Events {
			if r.Position >= begins {
				batch.Events = batch.Events[:i]
				break
			}
			if r.Position != next {
				return fmt.Errorf("position %d comes instead of %d", r.Position, next)
			}
			next++
		}
		err := l.write(ctx, func(conn *sqlite.Conn) error {
			for _, r := range batch.Events {
				if err := putBack(conn, r); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		l.crash(recalled)
		if next == begins {
			break // the rest is in the log
		}
	}
	if next != begins {
		return fmt.Errorf("the events end before position %d, the log begins at %d", next, begins)
	}
	err = l.write(ctx, func(conn *sqlite.Conn) error {
		// A stream with restored events is archived only up to the first of them.
		err := exec(conn, `UPDATE streams SET archived = coalesce((SELECT min(e.version) - 1 FROM events e
			WHERE e.stream = streams.no AND e.pos >= ? AND e.pos < ?), archived)
			WHERE archived > 0 AND no IN (SELECT stream FROM events WHERE pos >= ? AND pos < ?)`,
			int64(from), int64(begins), int64(from), int64(begins))
		if err == nil {
			err = exec(conn, "UPDATE beginning SET pos = ?", int64(from))
		}
		return err
	})
	if err == nil {
		l.crash(rejoined)
	}
	return err
}

// putBack inserts an event as recorded, if it is missing.
func putBack(conn *sqlite.Conn, r eventlog.Recorded) error {
	no := int64(0)
	err := query(conn, "SELECT no FROM streams WHERE digest = ? AND name = ?", func(s *sqlite.Stmt) bool {
		no = s.ColumnInt64(0)
		return false
	}, digest(r.Stream), string(r.Stream))
	if err != nil {
		return err
	}
	if no == 0 {
		return errors.New("an event has an unknown stream: " + string(r.Stream))
	}
	return exec(conn, `INSERT OR IGNORE INTO events (pos, stream, version, at, id, name, data, correlation, causation, actor, trace, link)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		int64(r.Position), no, int64(r.Version), r.At.UnixMicro(), r.ID[:], r.Name, []byte(r.Data),
		idOrNull(r.Meta.Correlation), idOrNull(r.Meta.Causation), r.Meta.Actor, r.Meta.Trace, linkOrNull(r.Meta.Link))
}
