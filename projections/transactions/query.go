package transactions

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/tx"
	"github.com/tempo-watchtower/watchtower/projections"
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
		return projections.Documents[Row](ctx, q.DB, Name, `SELECT data FROM transactions WHERE hash = $1 AND chain = $2`, hash[:], int64(id))
	}
	return projections.Documents[Row](ctx, q.DB, Name, `SELECT data FROM transactions WHERE hash = $1 ORDER BY position DESC`, hash[:])
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
		rows, err := projections.Documents[Row](ctx, q.DB, Name, `SELECT data FROM transactions WHERE chain = $1 AND hash IN (`+projections.Places(2, len(some))+`)`, args...)
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
	return projections.Documents[Row](ctx, q.DB, Name, text, args...)
}

// list is the statement that answers List.
func list(f Filters, before event.Position, limit int) (text string, args []any) {
	var where projections.Where
	if f.Chain != 0 {
		where.And("chain = %s", int64(f.Chain))
	}
	if f.Sender != nil {
		where.And("sender = %s", f.Sender[:])
	}
	if len(f.Senders) > 0 {
		values := make([]any, len(f.Senders))
		for i, s := range f.Senders {
			values[i] = s[:]
		}
		where.And("sender IN (%s)", values...)
	}
	if f.Group != nil {
		where.And("group_id = %s", f.Group[:])
	}
	if f.Ungrouped {
		where.And("group_id IS NULL")
	}
	projections.AndIn(&where, "status", f.Statuses)
	if before != 0 {
		where.And("position < %s", int64(before))
	}
	return fmt.Sprintf("SELECT data FROM transactions%s ORDER BY position DESC LIMIT %d", &where, limit), where.Args
}
