package transactions

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections"
)

// Name is the name of the projection's checkpoint and lease.
const Name = "transactions"

// Filter selects the events that the projection reads.
func Filter() eventlog.Filter { return eventlog.Filter{Streams: []string{tx.StreamPrefix}} }

// Projection folds transaction events into rows.
type Projection struct {
	Codec eventlog.Codec[tx.Event]
	// Prefix begins the table's name; empty for the serving table.
	Prefix string
}

// table is the name of the table into which it folds.
func (p Projection) table() string { return p.Prefix + table }

type key struct {
	chain chain.ID
	hash  chain.Hash
}

const (
	// rowsPerStatement is small because SQLite compares each parameter's name with all names
	// before it, twice. With hundreds of rows in a statement that costs more than the rows.
	rowsPerStatement = 32
	table            = "transactions"
)

// columns are the table's columns, in order; the first two are its primary key.
var columns = []string{"chain", "hash", "position", "version", "sender", "nonce_key", "group_id", "status", "data"} //nolint:gochecknoglobals // a table

// Fold adds events to the table, with one read and one write of the affected rows.
func (p Projection) Fold(ctx context.Context, dbtx *sql.Tx, events []eventlog.Recorded) error {
	keys := make([]key, len(events)) // of each event
	var known []key                  // their streams begin before these events
	for i, e := range events {
		id, hash, err := tx.ParseStream(e.Stream)
		if err != nil {
			return &eventlog.Stuck{At: e.Position, Err: err}
		}
		keys[i] = key{id, hash}
		if e.Version > 1 {
			known = append(known, keys[i])
		}
	}
	rows, err := read(ctx, dbtx, p.table(), known, rowsPerStatement)
	if err != nil {
		return err
	}
	var touched []key
	for i, e := range events {
		row, err := rows[keys[i]].Evolve(e, p.Codec)
		if err != nil {
			return &eventlog.Stuck{At: e.Position, Err: err}
		}
		if _, ok := rows[keys[i]]; !ok || e.Version > 1 {
			touched = append(touched, keys[i])
		}
		rows[keys[i]] = row
	}
	return p.write(ctx, dbtx, rows, projections.Distinct(touched))
}

// read returns the existing rows of these keys, at most most per statement.
func read(ctx context.Context, db projections.Querier, table string, keys []key, most int) (map[key]Row, error) {
	rows := make(map[key]Row, len(keys))
	byChain := map[chain.ID][]any{}
	for _, k := range projections.Distinct(keys) {
		byChain[k.chain] = append(byChain[k.chain], k.hash[:])
	}
	for id, hashes := range byChain {
		for some := range slices.Chunk(hashes, most) {
			found, err := projections.Documents[Row](ctx, db, Name, `SELECT data FROM `+table+` WHERE chain = $1 AND hash IN (`+projections.Places(2, len(some))+`)`,
				append([]any{int64(id)}, some...)...)
			if err != nil {
				return nil, err
			}
			for _, row := range found {
				rows[key{row.State.Accepted.Chain, row.State.Accepted.Hash}] = row
			}
		}
	}
	return rows, nil
}

// write upserts rows, and removes retired ones.
func (p Projection) write(ctx context.Context, dbtx *sql.Tx, rows map[key]Row, keys []key) error {
	for some := range slices.Chunk(keys, rowsPerStatement) {
		var values []string
		var args []any
		for _, k := range some {
			row := rows[k]
			if row.State.Retired {
				if _, err := dbtx.ExecContext(ctx, `DELETE FROM `+p.table()+` WHERE chain = $1 AND hash = $2`, int64(k.chain), k.hash[:]); err != nil {
					return err
				}
				continue
			}
			data, err := json.Marshal(row)
			if err != nil {
				return err
			}
			values = append(values, "("+projections.Places(len(args)+1, len(columns))+")")
			args = append(args, arguments(row, data)...)
		}
		if len(values) == 0 {
			continue
		}
		_, err := dbtx.ExecContext(ctx, `INSERT INTO `+p.table()+`
			(`+strings.Join(columns, ", ")+`)
			VALUES `+strings.Join(values, ", ")+`
			ON CONFLICT (chain, hash) DO UPDATE SET
			version = excluded.version, group_id = excluded.group_id, status = excluded.status, data = excluded.data`, args...)
		if err != nil {
			return fmt.Errorf("write %d rows: %w", len(values), err)
		}
	}
	return nil
}

func arguments(row Row, data []byte) []any {
	a := row.State.Accepted
	var group []byte
	if g := row.State.Group(); g != nil {
		group = g[:]
	}
	return []any{
		int64(a.Chain), a.Hash[:], int64(row.Position), int64(row.Version),
		a.Sender[:], a.NonceKey[:], group, string(row.State.Status), data,
	}
}
