package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/migrations"
)

// Inspection reads a database as of one moment, and its read models as of a moment before that.
// It writes nothing; the server enforces that. The service may be running. While the inspection
// is open, the server keeps old row versions. A standby is sufficient. It is not safe for
// concurrent use.
type Inspection struct {
	view   *sql.DB
	viewTx *sql.Tx
	conn   *pgx.Conn
}

// inspectSettings: an inspection's database transaction is long, and waits for no locks.
var inspectSettings = map[string]string{
	"default_transaction_read_only": "on", "default_transaction_isolation": "repeatable read",
	"statement_timeout": "0", "idle_in_transaction_session_timeout": "0",
	"plan_cache_mode": "force_custom_plan",
}

// Inspect connects to a database for reading. Its tables must exist.
func Inspect(ctx context.Context, url string) (_ *Inspection, err error) {
	i := &Inspection{}
	defer func() {
		if err != nil {
			if missing(err) {
				err = fmt.Errorf("tables of this program are missing: watchtower migrate creates them: %w", err)
			}
			err = errors.Join(fmt.Errorf("inspect: %w", err), i.Close())
		}
	}()
	config, err := connConfig(url, Options{Application: "watchtower verify"}.withDefaults())
	if err != nil {
		return nil, err
	}
	config.ValidateConnect = nil
	config = withParams(config, inspectSettings)
	i.view = stdlib.OpenDB(*withParams(config, map[string]string{"search_path": "view"}))
	i.view.SetMaxOpenConns(1)
	if i.viewTx, err = i.view.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead}); err != nil {
		return nil, err
	}
	if err := i.hold(ctx, config); err != nil {
		return nil, err
	}
	var readers int // the snapshot is taken by the first statement
	if err := i.viewTx.QueryRowContext(ctx, `SELECT count(*) FROM readers`).Scan(&readers); err != nil {
		return nil, err
	}
	if i.conn, err = pgx.ConnectConfig(ctx, withParams(config, knownPaths)); err != nil {
		return nil, err
	}
	if _, err := i.conn.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`); err != nil {
		return nil, err
	}
	_, err = i.Head(ctx)
	return i, err
}

// hold keeps the read models' tables from being swapped for others, whose rows do not exist in
// the snapshot: it takes read locks on them before the snapshot.
func (i *Inspection) hold(ctx context.Context, config *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	rows, err := conn.Query(ctx, `SELECT quote_ident(relname) FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r' ORDER BY relname`, liveSchema)
	if err != nil {
		return err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) == 0 {
		return err
	}
	_, err = i.viewTx.ExecContext(ctx, `LOCK TABLE `+strings.Join(tables, ", ")+` IN ACCESS SHARE MODE`)
	return err
}

// Close ends the transactions and closes the connections.
func (i *Inspection) Close() error {
	var errs []error
	if i.viewTx != nil {
		errs = append(errs, i.viewTx.Rollback())
	}
	if i.view != nil {
		errs = append(errs, i.view.Close())
	}
	if i.conn != nil {
		closeConn(i.conn)
	}
	return errors.Join(errs...)
}

// View is a transaction for queries on the read models.
func (i *Inspection) View() *sql.Tx { return i.viewTx }

// Head is the position of the last event.
func (i *Inspection) Head(ctx context.Context) (eventlog.Position, error) {
	var head int64
	err := i.conn.QueryRow(ctx, selectHead).Scan(&head)
	return eventlog.Position(head), err
}

func (i *Inspection) events(ctx context.Context, text string, args ...any) ([]eventlog.Recorded, error) {
	rows, err := i.conn.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return scanEvents(rows, nil)
}

// Page returns up to most next events of the log; none at its end.
func (i *Inspection) Page(ctx context.Context, after eventlog.Position, most int) ([]eventlog.Recorded, error) {
	// A missing stream row must not hide its events.
	const page = `SELECT ` + eventColumns + `, coalesce(` + streamName + `, '') FROM log.events e
		WHERE e.pos > $1 ORDER BY e.pos LIMIT $2`
	begins, err := i.Begins(ctx)
	if err == nil && after < begins-1 {
		err = &archive.GoneError{Begins: begins}
	}
	if err != nil {
		return nil, err
	}
	return i.events(ctx, page, clamp(uint64(after)), most)
}

// Current returns an error if the tables are not of this program's version.
func (i *Inspection) Current(ctx context.Context) error {
	known, err := migrationSteps(migrations.Postgres)
	if err != nil {
		return err
	}
	versions := make([]int64, len(known))
	for n, step := range known {
		versions[n] = step.version
	}
	var applied int
	err = i.conn.QueryRow(ctx, `SELECT count(*) FROM log.migrations WHERE version = ANY ($1)`, versions).Scan(&applied)
	if err == nil && applied < len(known) {
		err = fmt.Errorf("older than this program (%d of %d migrations): watchtower migrate brings it up to date", applied, len(known))
	}
	return err
}

// Begins is the position from which the log is complete in this database.
func (i *Inspection) Begins(ctx context.Context) (eventlog.Position, error) {
	var begins int64
	err := i.conn.QueryRow(ctx, selectBegins).Scan(&begins)
	return eventlog.Position(begins), err
}

// Segments lists the archive's files in order.
func (i *Inspection) Segments(ctx context.Context) ([]archive.Segment, error) {
	rows, err := i.conn.Query(ctx, selectSegments)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanSegment)
}

// Extents returns the positions of streams, which show the parts that are only in the archive.
func (i *Inspection) Extents(ctx context.Context, names []eventlog.Stream) (map[eventlog.Stream]archive.Extent, error) {
	rows, err := i.conn.Query(ctx, `SELECT name, no, last_pos FROM log.streams WHERE name = ANY ($1::text[])`, texts(names))
	if err != nil {
		return nil, err
	}
	all := make(map[eventlog.Stream]archive.Extent, len(names))
	var name string
	var first, last int64
	_, err = pgx.ForEachRow(rows, []any{&name, &first, &last}, func() error {
		all[eventlog.Stream(name)] = archive.Extent{First: eventlog.Position(first), Last: eventlog.Position(last)}
		return nil
	})
	return all, err
}

// Names lists up to most streams with a prefix. after is the next of the previous call.
func (i *Inspection) Names(ctx context.Context, prefix string, after int64, most int) (names []eventlog.Stream, next int64, err error) {
	rows, err := i.conn.Query(ctx, `SELECT no, name FROM log.streams WHERE no > $1 AND name ^@ $2 ORDER BY no LIMIT $3`, after, prefix, most)
	if err != nil {
		return nil, 0, err
	}
	next = after
	var name string
	_, err = pgx.ForEachRow(rows, []any{&next, &name}, func() error {
		names = append(names, eventlog.Stream(name))
		return nil
	})
	return names, next, err
}

// Ending lists up to most streams by the end of their names. It reads the names of all streams.
func (i *Inspection) Ending(ctx context.Context, ending string, most int) (names []eventlog.Stream, err error) {
	rows, err := i.conn.Query(ctx, `SELECT name FROM log.streams WHERE right(name, length($1)) = $1 LIMIT $2`, ending, most)
	if err != nil {
		return nil, err
	}
	var name string
	_, err = pgx.ForEachRow(rows, []any{&name}, func() error {
		names = append(names, eventlog.Stream(name))
		return nil
	})
	return names, err
}

// Stream returns up to most events of a stream after a version, without those in the archive.
func (i *Inspection) Stream(ctx context.Context, stream eventlog.Stream, after eventlog.Version, most int) ([]eventlog.Recorded, error) {
	if !storable(string(stream)) {
		return nil, nil
	}
	return i.events(ctx, selectKeptStream, string(stream), clamp(uint64(after)), most)
}

// Streams returns all events of some streams without those in the archive, each stream's in
// order.
func (i *Inspection) Streams(ctx context.Context, names []eventlog.Stream) (map[eventlog.Stream][]eventlog.Recorded, error) {
	const streams = `SELECT ` + eventColumns + `, s.name FROM log.streams s
		CROSS JOIN LATERAL (
			(SELECT * FROM log.kept k WHERE k.stream = s.no AND k.pos < (SELECT begins FROM log.head) ORDER BY k.version)
			UNION ALL
			(SELECT * FROM log.events e WHERE e.stream = s.no AND e.pos BETWEEN s.no AND s.last_pos ORDER BY e.version)
		) e WHERE s.name = ANY ($1::text[])`
	found, err := i.events(ctx, streams, texts(names))
	all := make(map[eventlog.Stream][]eventlog.Recorded, len(names))
	for _, r := range found {
		all[r.Stream] = append(all[r.Stream], r)
	}
	return all, err
}

// Known reports which of some streams exist.
func (i *Inspection) Known(ctx context.Context, names []eventlog.Stream) (map[eventlog.Stream]bool, error) {
	rows, err := i.conn.Query(ctx, `SELECT s.name FROM unnest($1::text[]) u (name) JOIN log.streams s ON s.name = u.name`, texts(names))
	if err != nil {
		return nil, err
	}
	known := make(map[eventlog.Stream]bool, len(names))
	var name string
	_, err = pgx.ForEachRow(rows, []any{&name}, func() error {
		known[eventlog.Stream(name)] = true
		return nil
	})
	return known, err
}

// texts converts names to a parameter, without names that no stream can have.
func texts(names []eventlog.Stream) []string {
	all := make([]string, 0, len(names))
	for _, name := range names {
		if storable(string(name)) {
			all = append(all, string(name))
		}
	}
	return all
}

// Checkpoint is the checkpoint of a reader in the queue's database.
func (i *Inspection) Checkpoint(ctx context.Context, reader string) (eventlog.Position, error) {
	var pos int64
	err := i.conn.QueryRow(ctx, `SELECT coalesce(max(pos), 0) FROM work.checkpoints WHERE reader = $1`, reader).Scan(&pos)
	return eventlog.Position(pos), err
}

// Lease returns the last holder of a lease, and the end of its term by the server's clock; an
// empty holder if the lease was given up.
func (i *Inspection) Lease(ctx context.Context, name string) (holder string, until time.Time, err error) {
	return leaseOf(ctx, i.conn, name)
}

// Work returns rows of the due queue.
func (i *Inspection) Work(ctx context.Context, refs []payload.Ref) (map[payload.Ref]tx.Work, error) {
	ids, hashes := refColumns(refs)
	rows, err := i.conn.Query(ctx, `SELECT `+workColumns+` FROM unnest($1::bigint[], $2::bytea[]) u (chain, hash)
		JOIN work.queue q ON q.chain = u.chain AND q.hash = u.hash`, ids, hashes)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (tx.Work, error) { return scanWork(row) })
	found := make(map[payload.Ref]tx.Work, len(all))
	for _, w := range all {
		found[payload.Ref{Chain: w.Chain, Hash: w.Hash}] = w
	}
	return found, err
}

// refColumns converts refs to parameters.
func refColumns(refs []payload.Ref) (ids []int64, hashes [][]byte) {
	for _, ref := range refs {
		ids, hashes = append(ids, int64(ref.Chain)), append(hashes, ref.Hash[:])
	}
	return ids, hashes
}

// Queued lists the rows of the due queue, ordered by chain and hash.
func (i *Inspection) Queued(ctx context.Context, after payload.Ref, most int) ([]payload.Ref, error) {
	return i.refs(ctx, "work.queue", after, most)
}

// Kept lists the payloads, ordered by chain and hash.
func (i *Inspection) Kept(ctx context.Context, after payload.Ref, most int) ([]payload.Ref, error) {
	return i.refs(ctx, "log.payloads", after, most)
}

func (i *Inspection) refs(ctx context.Context, table string, after payload.Ref, most int) (found []payload.Ref, err error) {
	rows, err := i.conn.Query(ctx, `SELECT chain, hash FROM `+table+` WHERE (chain, hash) > ($1, $2) ORDER BY chain, hash LIMIT $3`,
		int64(after.Chain), after.Hash[:], most)
	if err != nil {
		return nil, err
	}
	var id int64
	var hash []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &hash}, func() error {
		ref := payload.Ref{Chain: chain.ID(id)}
		copy(ref.Hash[:], hash)
		found = append(found, ref)
		return nil
	})
	return found, err
}

// Payloads returns which sealed bytes and which data keys are stored.
func (i *Inspection) Payloads(ctx context.Context, refs []payload.Ref) (bytes, keys map[payload.Ref]bool, err error) {
	bytes, keys = map[payload.Ref]bool{}, map[payload.Ref]bool{}
	ids, hashes := refColumns(refs)
	for table, found := range map[string]map[payload.Ref]bool{"log.payloads": bytes, "log.payload_keys": keys} {
		rows, err := i.conn.Query(ctx, `SELECT u.chain, u.hash FROM unnest($1::bigint[], $2::bytea[]) u (chain, hash)
			JOIN `+table+` t ON t.chain = u.chain AND t.hash = u.hash`, ids, hashes)
		if err != nil {
			return nil, nil, err
		}
		var id int64
		var hash []byte
		_, err = pgx.ForEachRow(rows, []any{&id, &hash}, func() error {
			found[payload.Ref{Chain: chain.ID(id), Hash: chain.Hash(hash)}] = true
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return bytes, keys, nil
}
