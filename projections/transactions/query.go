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

// Query reads transactions.
type Query struct {
	DB *sql.DB
}

// Filters restrict a list; the zero value lists everything.
type Filters struct {
	Chain     chain.ID // 0 means every chain
	Sender    *chain.Address
	Senders   []chain.Address // any of these; none means every sender
	Group     *chain.GroupID
	Ungrouped bool
	Statuses  []tx.Status // any of these
	// Within, if set, restricts the list to the transactions that one reader owns.
	Within *Within
}

// Within selects the transactions that one reader owns. Without Senders these are the
// transactions that its client submitted. With Senders these are the transactions of these
// senders, except transactions that only claim the sender and that the client did not submit.
type Within struct {
	Owners  []string // the client's names
	Senders []chain.Address
}

// Find returns the rows with a hash, newest first; chain 0 means every chain.
func (q Query) Find(ctx context.Context, id chain.ID, hash chain.Hash) ([]Row, error) {
	if id != 0 {
		return projections.Documents[Row](ctx, q.DB, Name, `SELECT data FROM transactions WHERE hash = $1 AND chain = $2`, hash[:], int64(id))
	}
	return projections.Documents[Row](ctx, q.DB, Name, `SELECT data FROM transactions WHERE hash = $1 ORDER BY position DESC`, hash[:])
}

// FindAll returns a chain's rows with these hashes, in any order; a hash without a row is left
// out.
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

// List returns at most limit rows accepted before a position (0: from the newest), newest
// first.
func (q Query) List(ctx context.Context, f Filters, before event.Position, limit int) ([]Row, error) {
	text, args := list(f, 0, before, limit)
	return projections.Documents[Row](ctx, q.DB, Name, text, args...)
}

// Step reads one step of a list, newest first: at most limit rows from the next
// [projections.StepRows] entries of its index. rest is the position before which the next
// step begins; 0 means that the list has ended.
func (q Query) Step(ctx context.Context, f Filters, before event.Position, limit int) (rows []Row, rest event.Position, err error) {
	floor, err := f.walk().Floor(ctx, q.DB, before)
	if err != nil {
		return nil, 0, err
	}
	text, args := list(f, floor, before, limit)
	if rows, err = projections.Documents[Row](ctx, q.DB, Name, text, args...); err != nil || len(rows) == 0 {
		return nil, floor, err
	}
	return rows, projections.Next(len(rows), limit, rows[len(rows)-1].Position, floor), nil
}

// walk chooses the index with the fewest entries that do not match the filters.
func (f Filters) walk() projections.Walk {
	w := projections.Walk{Table: "transactions t", Position: "t.position", Filtered: f.Chain != 0 || f.Ungrouped}
	equal := func(column string, values ...any) {
		w.Equal = append(w.Equal, projections.Equal{Column: column, Values: values})
	}
	if in := f.Within; in != nil && len(in.Senders) == 0 {
		w.Table, w.Position = "transaction_owners o", "o.position"
		equal("o.owner", projections.Names(in.Owners)...)
		w.Filtered = w.Filtered || len(f.Statuses) > 0 || len(f.Senders) > 0
		if f.Sender != nil {
			equal("o.sender", f.Sender[:])
		}
		switch {
		case f.Group != nil && f.Sender != nil:
			equal("o.group_id", f.Group[:])
		case f.Group != nil:
			w.Filtered = true
		}
		return w
	}
	senders := f.Senders
	if f.Within != nil {
		senders, w.Filtered = f.Within.Senders, true
	}
	if f.Sender != nil {
		w.Filtered = w.Filtered || len(senders) > 0
		senders = []chain.Address{*f.Sender}
	}
	switch {
	case len(senders) > 0:
		equal("t.sender", addresses(senders)...)
		w.Filtered = w.Filtered || len(f.Statuses) > 0
		if f.Group != nil {
			equal("t.group_id", f.Group[:])
		}
	case f.Group != nil:
		equal("t.group_id", f.Group[:])
		w.Filtered = w.Filtered || len(f.Statuses) > 0
	case len(f.Statuses) > 0:
		equal("t.status", projections.Texts(f.Statuses)...)
	}
	return w
}

// list returns the statement behind List, for rows at or after the position from (0: from the
// oldest).
func list(f Filters, from, before event.Position, limit int) (text string, args []any) {
	var where projections.Where
	table, by := "transactions t", "t"
	if w := f.Within; w != nil && len(w.Senders) == 0 {
		// Start at the client's own rows, so the cost does not grow with other clients' rows.
		// If the client has several names, a transaction may have several rows.
		table, by = "transaction_owners o JOIN transactions t ON t.chain = o.chain AND t.hash = o.hash", "o"
		where.And("o.owner IN (%s)", projections.Names(w.Owners)...)
		if len(w.Owners) > 1 {
			where.And("NOT EXISTS (SELECT 1 FROM transaction_owners p WHERE p.chain = o.chain AND p.hash = o.hash AND p.owner < o.owner AND p.owner IN (%s))",
				projections.Names(w.Owners)...)
		}
	} else if w != nil {
		where.And("t.sender IN (%s)", addresses(w.Senders)...)
		where.And("(NOT EXISTS (SELECT 1 FROM transaction_claims c WHERE c.chain = t.chain AND c.hash = t.hash)"+
			" OR EXISTS (SELECT 1 FROM transaction_owners o WHERE o.chain = t.chain AND o.hash = t.hash AND o.owner IN (%s)))", projections.Names(w.Owners)...)
	}
	if f.Chain != 0 {
		where.And(by+".chain = %s", int64(f.Chain))
	}
	if f.Sender != nil {
		where.And(by+".sender = %s", f.Sender[:])
	}
	if len(f.Senders) > 0 {
		where.And("t.sender IN (%s)", addresses(f.Senders)...)
	}
	if f.Group != nil {
		where.And("t.group_id = %s", f.Group[:])
		if by == "o" { // it finds the rows sooner
			where.And("o.group_id = %s", f.Group[:])
		}
	}
	if f.Ungrouped {
		where.And("t.group_id IS NULL")
	}
	projections.AndIn(&where, "t.status", f.Statuses)
	projections.AndWithin(&where, by+".position", from, before)
	return fmt.Sprintf("SELECT t.data FROM %s%s ORDER BY %s.position DESC LIMIT %d", table, &where, by, limit), where.Args
}

func addresses(all []chain.Address) []any {
	values := make([]any, len(all))
	for i, a := range all {
		values[i] = a[:]
	}
	return values
}
