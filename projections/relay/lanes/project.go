package lanes

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/bulk"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections"
)

// Name is the name of the projection's checkpoint and lease.
const Name = "lanes"

// Filter selects the events that the projection reads.
func Filter() eventlog.Filter { return eventlog.Filter{Streams: []string{lane.StreamPrefix}} }

const (
	table = "lanes"
	// keyColumns is the number of columns of the primary key.
	keyColumns = 3
	// rowsPerStatement is small for the reason that the read model of intents gives.
	rowsPerStatement = 32
)

var columns = []string{"chain", "signer", "nonce_key", "position", "version", "holder", "busy", "data"} //nolint:gochecknoglobals // a table

// Projection folds lanes' events into rows.
type Projection struct {
	Codec eventlog.Codec[lane.Event]
	// Prefix begins the table's name; empty for the serving table.
	Prefix string
}

// Fold adds events to the table, with one read and one write of the affected rows.
func (p Projection) Fold(ctx context.Context, dbtx *sql.Tx, events []eventlog.Recorded) error {
	ids := make([]chain.Sequence, len(events)) // of each event
	var known []chain.Sequence                 // their streams begin before these events
	for i, e := range events {
		id, err := lane.ParseStream(e.Stream)
		if err != nil {
			return &eventlog.Stuck{At: e.Position, Err: err}
		}
		if ids[i] = id; e.Version > 1 {
			known = append(known, id)
		}
	}
	rows, err := read(ctx, dbtx, p.Prefix+table, known)
	if err != nil {
		return err
	}
	for i, e := range events {
		if rows[ids[i]], err = rows[ids[i]].Evolve(e, p.Codec); err != nil {
			return &eventlog.Stuck{At: e.Position, Err: err}
		}
	}
	for some := range slices.Chunk(projections.Distinct(ids), rowsPerStatement) {
		values, args := make([]string, len(some)), []any(nil)
		for i, id := range some {
			row, err := arguments(rows[id])
			if err != nil {
				return err
			}
			values[i] = "(" + projections.Places(len(args)+1, len(row)) + ")"
			args = append(args, row...)
		}
		_, err := dbtx.ExecContext(ctx, `INSERT INTO `+p.Prefix+table+` (`+strings.Join(columns, ", ")+`) VALUES `+strings.Join(values, ", ")+`
			ON CONFLICT (chain, signer, nonce_key) DO UPDATE SET version = excluded.version, holder = excluded.holder, busy = excluded.busy, data = excluded.data`, args...)
		if err != nil {
			return fmt.Errorf("write %d rows of %s: %w", len(some), table, err)
		}
	}
	return nil
}

// read returns the existing rows of these lanes.
func read(ctx context.Context, db projections.Querier, table string, ids []chain.Sequence) (map[chain.Sequence]Row, error) {
	rows := make(map[chain.Sequence]Row, len(ids))
	for some := range slices.Chunk(projections.Distinct(ids), rowsPerStatement) {
		keys, args := make([]string, len(some)), []any(nil)
		for i, id := range some {
			keys[i] = fmt.Sprintf("(chain = $%d AND signer = $%d AND nonce_key = $%d)", len(args)+1, len(args)+2, len(args)+keyColumns)
			args = append(args, int64(id.Chain), id.Sender[:], id.Key[:]) //nolint:gosec // a chain's id is below 2^63
		}
		found, err := projections.Documents[Row](ctx, db, Name, `SELECT data FROM `+table+` WHERE `+strings.Join(keys, " OR "), args...)
		if err != nil {
			return nil, err
		}
		for _, row := range found {
			rows[row.ID] = row
		}
	}
	return rows, nil
}

// arguments returns a row's columns.
func arguments(row Row) ([]any, error) {
	data, err := json.Marshal(row)
	if err != nil {
		return nil, fmt.Errorf("row of %s: %w", lane.Stream(row.ID), err)
	}
	busy := int64(0)
	if row.State.InFlight() > 0 {
		busy = 1
	}
	return []any{
		int64(row.ID.Chain), row.ID.Sender[:], row.ID.Key[:], int64(row.Position), int64(row.Version), row.State.Holder, busy, data, //nolint:gosec // below 2^63
	}, nil
}

// version is the version of the rows: see [projections.Model].
const version = 1

// Model describes this read model for a rebuild.
func Model(codec eventlog.Codec[lane.Event]) projections.Model {
	kinds := map[string]projections.Kind{
		"chain": projections.Number, "position": projections.Number, "version": projections.Number, "busy": projections.Number,
		"signer": projections.Bytes, "nonce_key": projections.Bytes, "data": projections.JSON,
	}
	return projections.Model{
		Name: Name, About: "each lane, behind the relay's /v1/lanes", Filter: Filter(), Version: version,
		Tables: []projections.Table{projections.Shape(table, keyColumns, columns, kinds, projections.Text)},
		Fold:   func(prefix string) projections.Fold { return Projection{codec, prefix}.Fold },
		Load: func(prefix string) projections.Loader {
			return &Loader{projection: Projection{codec, prefix}, held: map[chain.Sequence]*held{}}
		},
	}
}

// heldMost is the most rows that a loader keeps after they were taken, in case more events change them.
const heldMost = 1 << 12

// Loader folds lanes in memory.
type Loader struct {
	projection Projection
	held       map[chain.Sequence]*held
	pending    []*held
}

// held is a row in the loader's memory.
type held struct {
	row     Row
	stored  bool // it was taken before
	pending bool // it is to be taken
}

// Add folds events.
func (l *Loader) Add(ctx context.Context, db *sql.DB, events []eventlog.Recorded) error {
	ids := make([]chain.Sequence, len(events))
	var known []chain.Sequence
	for i, e := range events {
		id, err := lane.ParseStream(e.Stream)
		if err != nil {
			return &eventlog.Stuck{At: e.Position, Err: err}
		}
		if ids[i] = id; l.held[id] != nil {
			continue
		}
		if l.held[id] = new(held); e.Version > 1 {
			known = append(known, id)
		}
	}
	rows, err := read(ctx, db, l.projection.Prefix+table, known)
	if err != nil {
		return err
	}
	for id, row := range rows {
		*l.held[id] = held{row: row, stored: true}
	}
	for i, e := range events {
		h := l.held[ids[i]]
		if h.row, err = h.row.Evolve(e, l.projection.Codec); err != nil {
			return &eventlog.Stuck{At: e.Position, Err: err}
		}
		if !h.pending {
			h.pending = true
			l.pending = append(l.pending, h)
		}
	}
	return nil
}

// Pending returns the number of rows that wait to be taken.
func (l *Loader) Pending() int { return len(l.pending) }

// Take returns the changed rows. It evicts unchanged rows if there are many.
func (l *Loader) Take() ([]bulk.Change, error) {
	for id, h := range l.held {
		if !h.pending && len(l.held) > heldMost {
			delete(l.held, id)
		}
	}
	rows := bulk.Change{Table: table, Columns: columns, Key: keyColumns}
	for _, h := range l.pending {
		row, err := arguments(h.row)
		if err != nil {
			return nil, err
		}
		if h.stored {
			rows.Changed = append(rows.Changed, row)
		} else {
			rows.New = append(rows.New, row)
		}
		h.stored, h.pending = true, false
	}
	clear(l.pending)
	l.pending = l.pending[:0]
	return slices.DeleteFunc([]bulk.Change{rows}, bulk.Change.Empty), nil
}
