package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Inspection reads each of a directory's files as of one moment, and writes nothing. It opens
// the read models first, then the queue, the keys, and the log last, so that no file is ahead
// of the log. The service may be running; while the inspection is open, the write-ahead logs
// grow. It is not safe for concurrent use.
type Inspection struct {
	view   *sql.DB
	viewTx *sql.Tx
	work   *sqlite.Conn
	keys   *sqlite.Conn
	log    *sqlite.Conn
}

// Inspect opens a directory for reading. Missing files are an error: nothing is created.
func Inspect(ctx context.Context, dir string) (_ *Inspection, err error) {
	i := &Inspection{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("inspect %s: %w", dir, err), i.Close())
		}
	}()
	if err := i.openView(ctx, filepath.Join(dir, "view.db")); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		conn  **sqlite.Conn
		name  string
		table string
	}{{&i.work, "work.db", "work"}, {&i.keys, "keys.db", "keys"}, {&i.log, "events.db", "events"}} {
		if *f.conn, err = freeze(filepath.Join(dir, f.name), f.table); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return i, nil
}

// freeze opens a file and begins a read of it that lasts until the file is closed.
func freeze(path, table string) (*sqlite.Conn, error) {
	conn, err := openToRead(path, writerCacheKiB)
	if err != nil {
		return nil, err
	}
	for _, text := range []string{"BEGIN", "SELECT 1 FROM " + table + " LIMIT 1"} {
		if err := sqlitex.ExecuteTransient(conn, text, nil); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

func (i *Inspection) openView(ctx context.Context, path string) error {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	settings := url.Values{
		"mode":    {"ro"},
		"_pragma": {fmt.Sprintf("busy_timeout(%d)", busyPatience.Milliseconds()), "query_only(1)", "temp_store(MEMORY)", fmt.Sprintf("cache_size(-%d)", viewCacheKiB)},
	}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(full), RawQuery: settings.Encode()}
	if i.view, err = sql.Open("sqlite", name.String()); err != nil {
		return err
	}
	if i.viewTx, err = i.view.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}); err != nil {
		return fmt.Errorf("view.db: %w", err)
	}
	var tables int // the snapshot is taken by the first statement
	if err := i.viewTx.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil {
		return fmt.Errorf("view.db: %w", err)
	}
	return nil
}

// Close ends the reads and closes the files.
func (i *Inspection) Close() error {
	var errs []error
	if i.viewTx != nil {
		errs = append(errs, i.viewTx.Rollback())
	}
	if i.view != nil {
		errs = append(errs, i.view.Close())
	}
	for _, conn := range []*sqlite.Conn{i.work, i.keys, i.log} {
		if conn != nil {
			errs = append(errs, conn.Close())
		}
	}
	return errors.Join(errs...)
}

// View is a transaction for queries on the read models.
func (i *Inspection) View() *sql.Tx { return i.viewTx }

// reading makes a connection's statements end with ctx.
func reading(ctx context.Context, conn *sqlite.Conn) func() {
	conn.SetInterrupt(ctx.Done())
	return func() { conn.SetInterrupt(nil) }
}

// Head is the position of the last event.
func (i *Inspection) Head(ctx context.Context) (head eventlog.Position, err error) {
	defer reading(ctx, i.log)()
	err = query(i.log, `SELECT coalesce(max(pos), 0) FROM events`, func(s *sqlite.Stmt) bool {
		head = eventlog.Position(s.ColumnInt64(0))
		return false
	})
	return head, err
}

// Page returns up to most next events of the log; none at its end.
func (i *Inspection) Page(ctx context.Context, after eventlog.Position, most int) (page []eventlog.Recorded, err error) {
	defer reading(ctx, i.log)()
	if err := gone(i.log, after); err != nil {
		return nil, err
	}
	// A missing stream row must not hide its events.
	err = query(i.log, `SELECT coalesce(s.name, ''), e.name, e.pos, e.version, e.at, e.id, e.data, e.correlation, e.causation, e.actor, e.trace, e.link
		FROM events e LEFT JOIN streams s ON s.no = e.stream WHERE e.pos > ? ORDER BY e.pos LIMIT ?`,
		func(s *sqlite.Stmt) bool {
			page = append(page, scanEvent(s))
			return true
		}, int64(after), int64(most))
	return page, err
}

// Current returns an error if the log's tables are not of this program's version.
func (i *Inspection) Current(ctx context.Context) error {
	defer reading(ctx, i.log)()
	names, done, err := steps(i.log, tables("log"))
	if err == nil && done < len(names) {
		err = fmt.Errorf("older than this program (%d of %d migrations): watchtower migrate brings it up to date", done, len(names))
	}
	return err
}

// Begins is the position from which the log is complete in this database.
func (i *Inspection) Begins(ctx context.Context) (eventlog.Position, error) {
	defer reading(ctx, i.log)()
	return beginsOf(i.log)
}

// Segments lists the archive's files in order.
func (i *Inspection) Segments(ctx context.Context) ([]archive.Segment, error) {
	defer reading(ctx, i.log)()
	return segmentsOf(i.log)
}

// Extents returns the positions of streams' events that are only in the archive.
func (i *Inspection) Extents(ctx context.Context, names []eventlog.Stream) (map[eventlog.Stream]archive.Extent, error) {
	defer reading(ctx, i.log)()
	all := make(map[eventlog.Stream]archive.Extent, len(names))
	for _, name := range names {
		_, in, err := extentOf(i.log, name)
		if err != nil {
			return nil, err
		}
		all[name] = in
	}
	return all, nil
}

// Names lists up to most streams with a prefix. after is the next of the previous call.
func (i *Inspection) Names(ctx context.Context, prefix string, after int64, most int) (names []eventlog.Stream, next int64, err error) {
	defer reading(ctx, i.log)()
	next = after
	err = query(i.log, `SELECT no, name FROM streams WHERE no > ? AND substr(name, 1, ?) = ? ORDER BY no LIMIT ?`,
		func(s *sqlite.Stmt) bool {
			next = s.ColumnInt64(0)
			names = append(names, eventlog.Stream(s.ColumnText(1)))
			return true
		}, after, int64(len(prefix)), prefix, int64(most))
	return names, next, err
}

// Ending lists up to most streams by the end of their names. It reads the names of all streams.
func (i *Inspection) Ending(ctx context.Context, ending string, most int) (names []eventlog.Stream, err error) {
	defer reading(ctx, i.log)()
	err = query(i.log, `SELECT name FROM streams WHERE substr(name, ?) = ? LIMIT ?`, func(s *sqlite.Stmt) bool {
		names = append(names, eventlog.Stream(s.ColumnText(0)))
		return true
	}, -int64(len(ending)), ending, int64(most))
	return names, err
}

// Stream returns up to most events of a stream after a version, without archived events. A
// restore that did not finish may have put back some of these.
func (i *Inspection) Stream(ctx context.Context, stream eventlog.Stream, after eventlog.Version, most int) (page []eventlog.Recorded, err error) {
	defer reading(ctx, i.log)()
	err = query(i.log, `SELECT `+eventColumns+` FROM streams s CROSS JOIN events e ON e.stream = s.no
		WHERE s.digest = ? AND s.name = ? AND e.version > max(?, s.archived) ORDER BY e.version LIMIT ?`,
		func(s *sqlite.Stmt) bool {
			page = append(page, scanEvent(s))
			return true
		}, digest(stream), string(stream), int64(after), int64(most))
	return page, err
}

// Streams returns all events of some streams without those in the archive, each stream's in
// order.
func (i *Inspection) Streams(ctx context.Context, names []eventlog.Stream) (all map[eventlog.Stream][]eventlog.Recorded, err error) {
	all = make(map[eventlog.Stream][]eventlog.Recorded, len(names))
	for _, name := range names {
		for more, after := true, eventlog.Version(0); more; {
			page, err := i.Stream(ctx, name, after, pageEvents)
			if err != nil {
				return nil, err
			}
			all[name] = append(all[name], page...)
			if more = len(page) == pageEvents; more {
				after = page[len(page)-1].Version
			}
		}
	}
	return all, nil
}

// Known reports which of some streams exist.
func (i *Inspection) Known(ctx context.Context, names []eventlog.Stream) (map[eventlog.Stream]bool, error) {
	defer reading(ctx, i.log)()
	known := make(map[eventlog.Stream]bool, len(names))
	for _, name := range names {
		err := query(i.log, `SELECT 1 FROM streams WHERE digest = ? AND name = ?`, func(*sqlite.Stmt) bool {
			known[name] = true
			return false
		}, digest(name), string(name))
		if err != nil {
			return nil, err
		}
	}
	return known, nil
}

// Checkpoint is the checkpoint of a reader in the queue's database.
func (i *Inspection) Checkpoint(ctx context.Context, reader string) (eventlog.Position, error) {
	defer reading(ctx, i.work)()
	return checkpointOf(i.work, reader)
}

// Lease returns the last holder of a lease, and the end of its term; an empty holder if the
// lease was given up.
func (i *Inspection) Lease(ctx context.Context, name string) (holder string, until time.Time, err error) {
	defer reading(ctx, i.work)()
	return leaseOf(i.work, name)
}

// Work returns rows of the due queue.
func (i *Inspection) Work(ctx context.Context, refs []payload.Ref) (map[payload.Ref]tx.Work, error) {
	defer reading(ctx, i.work)()
	found := make(map[payload.Ref]tx.Work, len(refs))
	var all []tx.Work
	for _, ref := range refs {
		if err := rows(i.work, &all, "WHERE chain = ? AND hash = ?", int64(ref.Chain), ref.Hash[:]); err != nil {
			return nil, err
		}
	}
	for _, w := range all {
		found[payload.Ref{Chain: w.Chain, Hash: w.Hash}] = w
	}
	return found, nil
}

// Queued lists the rows of the due queue, ordered by chain and hash.
func (i *Inspection) Queued(ctx context.Context, after payload.Ref, most int) ([]payload.Ref, error) {
	defer reading(ctx, i.work)()
	return refs(i.work, "work", after, most)
}

// Kept lists the payloads, ordered by chain and hash.
func (i *Inspection) Kept(ctx context.Context, after payload.Ref, most int) ([]payload.Ref, error) {
	defer reading(ctx, i.log)()
	return refs(i.log, "payloads", after, most)
}

func refs(conn *sqlite.Conn, table string, after payload.Ref, most int) (found []payload.Ref, err error) {
	err = query(conn, `SELECT chain, hash FROM `+table+` WHERE (chain, hash) > (?, ?) ORDER BY chain, hash LIMIT ?`,
		func(s *sqlite.Stmt) bool {
			ref := payload.Ref{Chain: chain.ID(s.ColumnInt64(0))}
			s.ColumnBytes(1, ref.Hash[:])
			found = append(found, ref)
			return true
		}, int64(after.Chain), after.Hash[:], int64(most))
	return found, err
}

// Payloads returns which sealed bytes and which data keys are stored. For stored bytes only the
// key that opens them counts; without stored bytes any key counts.
func (i *Inspection) Payloads(ctx context.Context, refs []payload.Ref) (bytes, keys map[payload.Ref]bool, err error) {
	defer reading(ctx, i.log)()
	defer reading(ctx, i.keys)()
	bytes, keys = map[payload.Ref]bool{}, map[payload.Ref]bool{}
	for _, ref := range refs {
		tag, kept, err := tagOf(i.log, ref)
		if err != nil {
			return nil, nil, err
		}
		err = query(i.keys, `SELECT tag FROM keys WHERE chain = ? AND hash = ?`, func(s *sqlite.Stmt) bool {
			keys[ref] = keys[ref] || !kept || s.ColumnInt64(0) == tag
			return true
		}, int64(ref.Chain), ref.Hash[:])
		if err != nil {
			return nil, nil, err
		}
		if kept {
			bytes[ref] = true
		}
	}
	return bytes, keys, nil
}
