package lanes

import (
	"context"
	"database/sql"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections"
)

// Query reads lanes.
type Query struct {
	DB *sql.DB
}

// Filters restrict a list; the zero value lists everything.
type Filters struct {
	Chain  chain.ID
	Signer *chain.Address
	Holder string
	Busy   *bool // whether a nonce is in flight
}

// Find returns a lane's row; ok is false if it was never opened.
func (q Query) Find(ctx context.Context, id chain.Sequence) (row Row, ok bool, err error) {
	rows, err := read(ctx, q.DB, table, []chain.Sequence{id})
	if err != nil {
		return row, false, err
	}
	row, ok = rows[id]
	return row, ok, nil
}

// Step reads one step of a list, newest lane first: see [projections.Walk].
func (q Query) Step(ctx context.Context, f Filters, before eventlog.Position, limit int) (rows []Row, rest eventlog.Position, err error) {
	return f.walk().Step(ctx, q.DB, before, limit)
}

// walk is along the index that leads to the fewest rows which the filters exclude.
func (f Filters) walk() projections.Walk[Row] {
	w := projections.Walk[Row]{
		Model: Name, Table: table, Position: "position", Keys: columns[:keyColumns], Rows: table,
		At: func(r Row) eventlog.Position { return r.Position },
	}
	busy := int64(0)
	if f.Busy != nil && *f.Busy {
		busy = 1
	}
	if f.Chain != 0 {
		w.Where.And("t.chain = %s", int64(f.Chain)) //nolint:gosec // a chain's id is below 2^63
	}
	if f.Signer != nil {
		w.Where.And("t.signer = %s", f.Signer[:])
	}
	if f.Holder != "" {
		w.Where.And("t.holder = %s", f.Holder)
	}
	if f.Busy != nil {
		w.Where.And("t.busy = %s", busy)
	}
	equal := func(column string, value any) {
		w.Equal = []projections.Equal{{Column: column, Values: []any{value}}}
	}
	switch {
	case busy == 1:
		equal("busy", busy)
	case f.Signer != nil:
		equal("signer", f.Signer[:])
	case f.Holder != "":
		equal("holder", f.Holder)
	case f.Chain != 0:
		equal("chain", int64(f.Chain)) //nolint:gosec // as above
	}
	return w
}
