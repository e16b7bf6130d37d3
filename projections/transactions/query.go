package transactions

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Query answers questions about transactions.
type Query struct {
	DB *sql.DB
}

// Filters narrow a list; the zero value lists everything.
type Filters struct {
	Chain     chain.ID // 0 is every chain
	Sender    *chain.Address
	Senders   []chain.Address // any of these; none is everybody
	Group     *chain.GroupID
	Ungrouped bool
	Statuses  []tx.Status // any of these
}

// Find returns the rows with a hash, on one chain or (0) on every chain, newest first.
func (q Query) Find(ctx context.Context, id chain.ID, hash chain.Hash) ([]Row, error) {
	if id != 0 {
		return query(ctx, q.DB, `SELECT data FROM transactions WHERE hash = $1 AND chain = $2`, hash[:], int64(id))
	}
	return query(ctx, q.DB, `SELECT data FROM transactions WHERE hash = $1 ORDER BY position DESC`, hash[:])
}

// FindAll returns a chain's rows with these hashes, in any order; a hash without a
// row is left out.
func (q Query) FindAll(ctx context.Context, id chain.ID, hashes []chain.Hash) ([]Row, error) {
	var all []Row
	for some := range slices.Chunk(hashes, rowsPerStatement) {
		args := []any{int64(id)}
		for _, hash := range some {
			args = append(args, hash[:])
		}
		rows, err := query(ctx, q.DB, `SELECT data FROM transactions WHERE chain = $1 AND hash IN (`+places(2, len(some))+`)`, args...)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

// List returns at most limit rows accepted before a position (0: from the newest
// on), newest first.
func (q Query) List(ctx context.Context, f Filters, before event.Position, limit int) ([]Row, error) {
	text, args := list(f, before, limit)
	return query(ctx, q.DB, text, args...)
}

// list is the statement that answers List.
func list(f Filters, before event.Position, limit int) (text string, args []any) {
	var where []string
	and := func(condition string, values ...any) {
		where = append(where, fmt.Sprintf(condition, places(len(args)+1, len(values))))
		args = append(args, values...)
	}
	if f.Chain != 0 {
		and("chain = %s", int64(f.Chain))
	}
	if f.Sender != nil {
		and("sender = %s", f.Sender[:])
	}
	if len(f.Senders) > 0 {
		values := make([]any, len(f.Senders))
		for i, s := range f.Senders {
			values[i] = s[:]
		}
		and("sender IN (%s)", values...)
	}
	if f.Group != nil {
		and("group_id = %s", f.Group[:])
	}
	if f.Ungrouped {
		where = append(where, "group_id IS NULL")
	}
	if len(f.Statuses) > 0 {
		values := make([]any, len(f.Statuses))
		for i, s := range f.Statuses {
			values[i] = string(s)
		}
		and("status IN (%s)", values...)
	}
	if before != 0 {
		and("position < %s", int64(before))
	}
	text = "SELECT data FROM transactions"
	if len(where) > 0 {
		text += " WHERE " + strings.Join(where, " AND ")
	}
	return text + fmt.Sprintf(" ORDER BY position DESC LIMIT %d", limit), args
}

// querier is a *sql.DB or a *sql.Tx.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func query(ctx context.Context, db querier, text string, args ...any) ([]Row, error) {
	found, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("transactions: %w", err)
	}
	defer found.Close() //nolint:errcheck // reading is over; Err below tells
	var rows []Row
	for found.Next() {
		var data []byte
		if err := found.Scan(&data); err != nil {
			return nil, fmt.Errorf("transactions: %w", err)
		}
		var row Row
		if err := json.Unmarshal(data, &row); err != nil {
			return nil, fmt.Errorf("transactions: row: %w", err)
		}
		rows = append(rows, row)
	}
	return rows, found.Err()
}
