package transactions

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
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

// List returns at most limit rows accepted before a position (0: from the newest
// on), newest first.
func (q Query) List(ctx context.Context, f Filters, before eventlog.Position, limit int) (rows []Row, err error) {
	for more := true; more && len(rows) < limit && err == nil; more = before != 0 {
		var some []Row
		some, before, err = q.Step(ctx, f, before, limit-len(rows))
		rows = append(rows, some...)
	}
	return rows, err
}

// Step reads one step of a list: see [projections.Walk].
func (q Query) Step(ctx context.Context, f Filters, before eventlog.Position, limit int) (rows []Row, rest eventlog.Position, err error) {
	return f.walk().Step(ctx, q.DB, before, limit)
}

const namesPerStatement = 100 // SQLite allows 500 selects in a compound one

// Newest returns the position of the newest acceptance of a sender that a client submitted, under one
// of its names; 0 if there is none. With all it is the newest one of any client. Of these it leaves out
// the transactions that only claim the sender, so that nobody else can make it newer. The time does
// not grow with the number of rows.
func (q Query) Newest(ctx context.Context, sender chain.Address, names []string, all bool) (newest eventlog.Position, err error) {
	if all {
		names = append(slices.Clone(names), string(sender[:]))
	}
	for some := range slices.Chunk(names, namesPerStatement) {
		var at sql.NullInt64
		text, args := newestOf(sender, some)
		if err := q.DB.QueryRowContext(ctx, text, args...).Scan(&at); err != nil {
			return 0, fmt.Errorf("%s: newest of %s: %w", Name, sender, err)
		}
		newest = max(newest, eventlog.Position(at.Int64))
	}
	return newest, nil
}

// newestOf reads one entry of the owners' index for each name.
func newestOf(sender chain.Address, names []string) (text string, args []any) {
	args = []any{sender[:]}
	selects := make([]string, len(names))
	for i, name := range names {
		args = append(args, []byte(name))
		selects[i] = fmt.Sprintf("SELECT * FROM (SELECT position FROM ownership WHERE owner = $%d AND sender = $1 ORDER BY position DESC LIMIT 1) s%d", len(args), i)
	}
	return "SELECT max(position) FROM (" + strings.Join(selects, " UNION ALL ") + ") n", args
}

// walk is along the index that leads to the fewest rows which the filters exclude.
func (f Filters) walk() projections.Walk[Row] {
	w := projections.Walk[Row]{
		Model: Name, Table: "transactions", Position: "position", Keys: []string{"chain", "hash"},
		Rows: "transactions", Where: f.where(), At: func(r Row) eventlog.Position { return r.Position },
	}
	equal := func(column string, values ...any) {
		w.Equal = append(w.Equal, projections.Equal{Column: column, Values: values})
	}
	senders := f.Senders
	if in := f.Within; in != nil && len(in.Senders) == 0 {
		// From the client's own rows: the cost does not grow with the rows of others.
		w.Table, senders = "ownership", nil
		equal("owner", projections.Names(in.Owners)...)
	} else if in != nil {
		// From the client's own rows of these senders, and the senders' rows: the claims of others are
		// not among them.
		w.Table, senders = "ownership", in.Senders
		equal("owner", append(projections.Names(in.Owners), addresses(in.Senders)...)...)
		w.Empty = func(values []any) bool { // a sender owns no transactions of others
			owner, sender := values[0].([]byte), values[1].([]byte) //nolint:forcetypeassert // as they are made above
			return isAmong(in.Senders, owner) && !bytes.Equal(owner, sender)
		}
	}
	if f.Sender != nil {
		senders = []chain.Address{*f.Sender}
	}
	switch {
	case len(senders) > 0:
		equal("sender", addresses(senders)...)
		if f.Group != nil {
			equal("group_id", f.Group[:])
		}
	case w.Table != "transactions":
	case f.Group != nil:
		equal("group_id", f.Group[:])
	case len(f.Statuses) > 0:
		equal("status", projections.Texts(f.Statuses)...)
	}
	return w
}

// where has all filters but the client's names, which the walk is along.
func (f Filters) where() (where projections.Where) {
	if w := f.Within; w != nil && len(w.Senders) > 0 {
		where.And("t.sender IN (%s)", addresses(w.Senders)...)
	}
	if f.Chain != 0 {
		where.And("t.chain = %s", int64(f.Chain))
	}
	if f.Sender != nil {
		where.And("t.sender = %s", f.Sender[:])
	}
	if len(f.Senders) > 0 {
		where.And("t.sender IN (%s)", addresses(f.Senders)...)
	}
	if f.Group != nil {
		where.And("t.group_id = %s", f.Group[:])
	}
	if f.Ungrouped {
		where.And("t.group_id IS NULL")
	}
	projections.AndIn(&where, "t.status", f.Statuses)
	return where
}

// isAmong reports whether an owner is one of these senders.
func isAmong(senders []chain.Address, owner []byte) bool {
	return slices.ContainsFunc(senders, func(a chain.Address) bool { return bytes.Equal(a[:], owner) })
}

func addresses(all []chain.Address) []any {
	values := make([]any, len(all))
	for i, a := range all {
		values[i] = a[:]
	}
	return values
}
