package intents

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections"
)

// Name is the name of the projection's checkpoint and lease.
const Name = "intents"

// Filter selects the events that the projection reads.
func Filter() eventlog.Filter { return eventlog.Filter{Streams: []string{intent.StreamPrefix}} }

// Projection folds intents' events into rows.
type Projection struct {
	Codec eventlog.Codec[intent.Event]
	// Prefix begins the tables' names; empty for the serving tables.
	Prefix string
}

const (
	// rowsPerStatement is small because SQLite compares each parameter's name with all names
	// before it, twice. With hundreds of rows in a statement that costs more than the rows.
	rowsPerStatement = 32
	table            = "intents"
	attemptsTable    = "intent_attempts"
)

// The columns of the tables, in order. The primary key is the first column of intents, and the
// first two of attempts.
var (
	columns        = []string{"intent", "position", "version", "chain", "client", "wants", "wish", "signer", "subject", "status", "data"} //nolint:gochecknoglobals // a table
	attemptColumns = []string{"hash", "intent", "attempt"}                                                                                //nolint:gochecknoglobals // a table
)

// Fold adds events to the tables, with one read and one write of the affected rows.
func (p Projection) Fold(ctx context.Context, dbtx *sql.Tx, events []eventlog.Recorded) error {
	ids := make([]chain.IntentID, len(events)) // of each event
	var known []chain.IntentID                 // their streams begin before these events
	for i, e := range events {
		id, err := intent.ParseStream(e.Stream)
		if err != nil {
			return &eventlog.Stuck{At: e.Position, Err: err}
		}
		if ids[i] = id; e.Version > 1 {
			known = append(known, id)
		}
	}
	rows, err := read(ctx, dbtx, p.Prefix+table, known, rowsPerStatement)
	if err != nil {
		return err
	}
	had := make(map[chain.IntentID]int, len(rows)) // attempts already stored
	for id, row := range rows {
		had[id] = len(row.State.Attempts)
	}
	for i, e := range events {
		if rows[ids[i]], err = rows[ids[i]].Evolve(e, p.Codec); err != nil {
			return &eventlog.Stuck{At: e.Position, Err: err}
		}
	}
	return p.write(ctx, dbtx, rows, had, projections.Distinct(ids))
}

// read returns the existing rows of these intents, at most most per statement.
func read(ctx context.Context, db projections.Querier, table string, ids []chain.IntentID, most int) (map[chain.IntentID]Row, error) {
	rows := make(map[chain.IntentID]Row, len(ids))
	for some := range slices.Chunk(projections.Distinct(ids), most) {
		args := make([]any, len(some))
		for i, id := range some {
			args[i] = id[:]
		}
		found, err := projections.Documents[Row](ctx, db, Name, `SELECT data FROM `+table+` WHERE intent IN (`+projections.Places(1, len(some))+`)`, args...)
		if err != nil {
			return nil, err
		}
		for _, row := range found {
			rows[row.State.Requested.ID] = row
		}
	}
	return rows, nil
}

// write upserts rows, and adds their new attempts.
func (p Projection) write(ctx context.Context, dbtx *sql.Tx, rows map[chain.IntentID]Row, had map[chain.IntentID]int, ids []chain.IntentID) error {
	for some := range slices.Chunk(ids, rowsPerStatement) {
		var changed, made [][]any
		for _, id := range some {
			row, err := arguments(rows[id])
			if err != nil {
				return err
			}
			changed = append(changed, row)
			made = append(made, attempts(rows[id], had[id])...)
		}
		err := insert(ctx, dbtx, p.Prefix+table, columns, changed,
			`(intent) DO UPDATE SET version = excluded.version, signer = excluded.signer, status = excluded.status, data = excluded.data`)
		if err != nil {
			return err
		}
		for some := range slices.Chunk(made, rowsPerStatement) {
			if err := insert(ctx, dbtx, p.Prefix+attemptsTable, attemptColumns, some, `(hash, intent) DO NOTHING`); err != nil {
				return err
			}
		}
	}
	return nil
}

func insert(ctx context.Context, dbtx *sql.Tx, table string, columns []string, rows [][]any, conflict string) error {
	values := make([]string, len(rows))
	var args []any
	for i, row := range rows {
		values[i] = "(" + projections.Places(len(args)+1, len(row)) + ")"
		args = append(args, row...)
	}
	_, err := dbtx.ExecContext(ctx, `INSERT INTO `+table+` (`+strings.Join(columns, ", ")+`)
		VALUES `+strings.Join(values, ", ")+` ON CONFLICT `+conflict, args...)
	if err != nil {
		return fmt.Errorf("write %d rows of %s: %w", len(rows), table, err)
	}
	return nil
}

// arguments returns a row's columns.
func arguments(row Row) ([]any, error) {
	data, err := json.Marshal(row)
	if err != nil {
		return nil, fmt.Errorf("row of %s: %w", row.State.Requested.ID, err)
	}
	var signer []byte
	if s := row.Signer(); s != nil {
		signer = s[:]
	}
	id, r := row.State.Requested.ID, row.Request()
	return []any{
		id[:], int64(row.Position), int64(row.Version), int64(r.Chain), r.Client, r.From.Name(), r.Key,
		signer, r.Subject, string(row.State.Status()), data,
	}, nil
}

// attempts returns the columns of a row's attempts from index n on.
func attempts(row Row, n int) (all [][]any) {
	id := row.State.Requested.ID
	for _, made := range row.State.Attempts[n:] {
		all = append(all, []any{made.Hash[:], id[:], int64(made.Attempt)})
	}
	return all
}
