package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Limits of one read. No connection is held while the reader processes a page.
const (
	streamPage = 256    // events of a stream
	pageMost   = 2000   // events of the log, even if max is larger
	scanMost   = 20_000 // positions read under a filter
)

// eventColumns are the columns that scanEvent reads.
const eventColumns = `e.pos, e.version, e.at, e.id, e.name, e.data, e.correlation, e.causation, e.actor, e.trace, e.link`

const selectHead = `SELECT pos FROM log.head`

// Head is the position of the last event; 0 if there is none.
func (l *Log) Head(ctx context.Context) (eventlog.Position, error) {
	var head int64
	err := retry(ctx, func() error { return l.pool.QueryRow(ctx, selectHead).Scan(&head) })
	return eventlog.Position(head), err
}

// With bounds on pos the executor skips partitions.
const selectStream = `
SELECT ` + eventColumns + `, s.name FROM log.streams s
CROSS JOIN LATERAL (
  SELECT * FROM log.events e
  WHERE e.stream = s.no AND e.version > $2 AND e.pos BETWEEN s.no AND s.last_pos
  ORDER BY e.version LIMIT $3
) e WHERE s.name = $1 ORDER BY e.version`

// selectKeptStream also reads events copied forward from dropped partitions.
const selectKeptStream = `
SELECT ` + eventColumns + `, s.name FROM log.streams s
CROSS JOIN LATERAL (
  (SELECT * FROM log.kept k WHERE k.stream = s.no AND k.version > $2 AND k.pos < (SELECT begins FROM log.head) ORDER BY k.version LIMIT $3)
  UNION ALL
  (SELECT * FROM log.events e
   WHERE e.stream = s.no AND e.version > $2 AND e.pos BETWEEN s.no AND s.last_pos ORDER BY e.version LIMIT $3)
) e WHERE s.name = $1 ORDER BY e.version LIMIT $3`

// Read before the events: an event missing up to this version was dropped.
const selectExtent = `SELECT version, no, last_pos FROM log.streams WHERE name = $1`

const selectVersion = `SELECT version FROM log.streams WHERE name = $1`

// Version returns the version of the stream's last event; 0 when there is no stream.
func (l *Log) Version(ctx context.Context, stream eventlog.Stream) (eventlog.Version, error) {
	var version int64
	err := retry(ctx, func() error { return l.pool.QueryRow(ctx, selectVersion, string(stream)).Scan(&version) })
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return eventlog.Version(version), err
}

// ReadStream yields the stream's events with version > after. It ends with an
// *archive.GoneError where events were dropped.
func (l *Log) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for {
			page, more, err := l.streamPage(ctx, stream, after)
			if err != nil {
				yield(eventlog.Recorded{}, err)
				return
			}
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
				after = r.Version
			}
			if !more {
				return
			}
		}
	}
}

// streamPage reads consecutive events of a stream.
func (l *Log) streamPage(ctx context.Context, stream eventlog.Stream, after eventlog.Version) (page []eventlog.Recorded, more bool, err error) {
	for _, text := range []string{selectStream, selectKeptStream} {
		var extent extent
		var found int
		page, found, extent, err = l.stretch(ctx, text, stream, after)
		switch {
		case err != nil:
			return nil, false, err
		case len(page) > 0:
			return page, found == streamPage || len(page) < found, nil
		case extent.version <= after:
			return nil, false, nil
		}
		if text == selectKeptStream {
			begins, err := l.Begins(ctx)
			if err != nil {
				return nil, false, err
			}
			return nil, false, &archive.GoneError{Begins: begins, Stream: stream, Extent: extent.Extent}
		}
	}
	panic("unreachable")
}

// extent is the range of a stream's positions.
type extent struct {
	version eventlog.Version
	archive.Extent
}

// stretch reads events of a stream up to the first gap, and returns the number of rows found.
func (l *Log) stretch(ctx context.Context, text string, stream eventlog.Stream, after eventlog.Version) (page []eventlog.Recorded, found int, at extent, err error) {
	err = retry(ctx, func() error {
		page, at = nil, extent{}
		q := &pgx.Batch{}
		q.Queue(selectExtent, string(stream)).Query(func(rows pgx.Rows) error {
			var version, first, last int64
			_, err := pgx.ForEachRow(rows, []any{&version, &first, &last}, func() error {
				at = extent{eventlog.Version(version), archive.Extent{First: eventlog.Position(first), Last: eventlog.Position(last)}}
				return nil
			})
			return err
		})
		q.Queue(text, string(stream), clamp(uint64(after)), streamPage).Query(func(rows pgx.Rows) (err error) {
			page, err = scanEvents(rows, nil)
			return err
		})
		return l.pool.SendBatch(ctx, q).Close()
	})
	found = len(page)
	return unbroken(page, after), found, at, err
}

// unbroken returns the events that follow a version without a gap.
func unbroken(page []eventlog.Recorded, after eventlog.Version) []eventlog.Recorded {
	kept := page[:0]
	for _, r := range page {
		if r.Version != after+1 {
			break
		}
		kept = append(kept, r)
		after = r.Version
	}
	return kept
}

// Reads of the whole log. A stream's name is looked up by index for each event that passes the
// filter: for a join the planner may choose to hash all streams.
const (
	streamName = `(SELECT s.name FROM log.streams s WHERE s.no = e.stream)`

	selectAll = `SELECT ` + eventColumns + `, ` + streamName + ` FROM log.events e
WHERE e.pos > $1 ORDER BY e.pos LIMIT $2`

	selectNames = `SELECT ` + eventColumns + `, ` + streamName + ` FROM log.events e
WHERE e.pos > $1 AND e.pos <= $3 AND e.name ^@ ANY ($4::text[]) ORDER BY e.pos LIMIT $2`

	selectStreams = `SELECT * FROM (
  SELECT ` + eventColumns + `, ` + streamName + ` AS stream FROM log.events e
  WHERE e.pos > $1 AND e.pos <= $3 ORDER BY e.pos OFFSET 0
) e WHERE e.stream ^@ ANY ($5::text[]) OR e.name ^@ ANY ($4::text[]) LIMIT $2`
)

// page reads at most most events after a position. It reads the head first. Everything
// committed up to there is visible to the second statement, so an event missing in between does
// not pass the filter.
func (l *Log) page(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) (eventlog.Batch, error) {
	from := clamp(uint64(after))
	limit := min(max(most, 1), pageMost)
	upto := from + min(scanMost, math.MaxInt64-from)
	var head, begins int64
	var events []eventlog.Recorded
	read := func() error {
		events = nil
		q := &pgx.Batch{}
		q.Queue(selectHead).QueryRow(func(row pgx.Row) error { return row.Scan(&head) })
		var body *pgx.QueuedQuery
		switch {
		case len(f.Streams) > 0:
			body = q.Queue(selectStreams, from, limit, upto, notNil(f.Names), notNil(f.Streams))
		case len(f.Names) > 0:
			body = q.Queue(selectNames, from, limit, upto, f.Names)
		default:
			body = q.Queue(selectAll, from, limit)
		}
		body.Query(func(rows pgx.Rows) (err error) {
			events, err = scanEvents(rows, make([]eventlog.Recorded, 0, min(limit, 64)))
			return err
		})
		// Last: events missing because they were dropped are below this position.
		q.Queue(selectBegins).QueryRow(func(row pgx.Row) error { return row.Scan(&begins) })
		return l.pool.SendBatch(ctx, q).Close()
	}
	if err := retry(ctx, read); err != nil {
		return eventlog.Batch{}, err
	}
	if after < eventlog.Position(begins)-1 {
		return eventlog.Batch{}, &archive.GoneError{Begins: eventlog.Position(begins)}
	}
	if after > eventlog.Position(head) {
		return eventlog.Batch{}, fmt.Errorf("read after position %d: %w, which ends at %d", after, errBeyond, head)
	}
	b := eventlog.Batch{Events: events, Next: after}
	if n := len(events); n > 0 {
		b.Next = events[n-1].Position
	}
	if len(events) < limit { // nothing more up to the end of the range, or of the log
		end := eventlog.Position(head)
		if len(f.Streams)+len(f.Names) > 0 {
			end = min(end, eventlog.Position(upto))
		}
		b.Next = max(b.Next, end)
	}
	b.Live = b.Next >= eventlog.Position(head)
	return b, nil
}

// errBeyond refuses a position beyond this log's head. The reader has it from another log,
// perhaps of a server that has lost its last events, and would silently miss events appended up
// to that position.
var errBeyond = errors.New("the position does not belong to this log")

// ReadAll yields batches after a position up to the log's head.
func (l *Log) ReadAll(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error] {
	return eventlog.Pages(after, func(after eventlog.Position) (eventlog.Batch, error) { return l.page(ctx, after, f, max) })
}

func scanEvents(rows pgx.Rows, into []eventlog.Recorded) ([]eventlog.Recorded, error) {
	defer rows.Close()
	for rows.Next() {
		var r eventlog.Recorded
		var pos, version int64
		var correlation, causation pgtype.UUID
		var data, link []byte
		var stream string
		var at time.Time
		err := rows.Scan(&pos, &version, &at, (*[16]byte)(&r.ID), &r.Name, &data, &correlation, &causation,
			&r.Meta.Actor, &r.Meta.Trace, &link, &stream)
		if err != nil {
			return into, err
		}
		r.Position, r.Version = eventlog.Position(pos), eventlog.Version(version)
		r.Stream, r.Data, r.At = eventlog.Stream(stream), data, at.UTC()
		r.Meta.Correlation, r.Meta.Causation = correlation.Bytes, causation.Bytes
		copy(r.Meta.Link[:], link)
		into = append(into, r)
	}
	return into, rows.Err()
}

// notNil keeps empty prefixes from becoming NULL.
func notNil(prefixes []string) []string {
	if prefixes == nil {
		return []string{}
	}
	return prefixes
}
