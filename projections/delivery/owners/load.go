package owners

import (
	"context"
	"database/sql"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/bulk"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections"
)

// version is the version of the rows: see [projections.Model].
const version = 2

// Model describes this read model for a rebuild.
func Model(codec eventlog.Codec[tx.Event]) projections.Model {
	kinds := map[string]projections.Kind{"chain": projections.Number, "position": projections.Number}
	return projections.Model{
		Name: Name, About: "which client owns which transaction, behind each client's lists", Filter: Filter(), Version: version,
		Tables: []projections.Table{
			projections.Shape(ownersTable, ownersKey, ownerColumns, kinds, projections.Bytes),
			projections.Shape(claimsTable, claimsKey, claimColumns, kinds, projections.Bytes),
		},
		Fold: func(prefix string) projections.Fold { return Projection{codec, prefix}.Fold },
		Load: func(prefix string) projections.Loader {
			return &Loader{projection: Projection{codec, prefix}, change: newChange()}
		},
	}
}

// Loader gathers owners and claims in memory.
type Loader struct {
	projection Projection
	change     change
	// places are the places of the last Take: its rows may not be in the table yet.
	places map[key]place
}

// Add gathers events.
func (l *Loader) Add(ctx context.Context, db *sql.DB, events []eventlog.Recorded) error {
	for _, e := range events {
		if err := l.change.gather(e, l.projection.Codec); err != nil {
			return &eventlog.Stuck{At: e.Position, Err: err}
		}
	}
	var stored []key
	for _, k := range l.change.strangers() {
		if p, taken := l.places[k]; taken {
			l.change.found(k, p)
		} else {
			stored = append(stored, k)
		}
	}
	return l.projection.read(ctx, db, &l.change, stored)
}

// Pending returns the number of rows that wait to be taken.
func (l *Loader) Pending() int {
	return len(l.change.owners) + len(l.change.claims) + len(l.change.confirmed) + len(l.change.retired)
}

// Take returns the changes of the rows since the last Take.
func (l *Loader) Take() ([]bulk.Change, error) {
	c := l.change
	l.change, l.places = newChange(), c.places
	gone := keysOf(sorted(c.retired))
	changes := []bulk.Change{
		// All owners of a transaction are removed together.
		{Table: ownersTable, Columns: ownerColumns, Key: claimsKey, Gone: gone},
		{Table: ownersTable, Columns: ownerColumns, Key: ownersKey, New: c.ownerRows()},
		{Table: claimsTable, Columns: claimColumns, Key: claimsKey, New: c.claimRows(), Gone: append(gone, keysOf(sorted(c.confirmed))...)},
	}
	return slices.DeleteFunc(changes, bulk.Change.Empty), nil
}

func keysOf(keys []key) [][]any {
	all := make([][]any, len(keys))
	for i, k := range keys {
		all[i] = []any{k.hash[:], int64(k.chain)}
	}
	return all
}
