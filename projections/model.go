// Package projections maintains read models: tables that are folded from the log and can be rebuilt
// from it. The folders below have one model each: its row, its fold and its queries. A rebuild runs
// the same fold beside the running service. It imports eventlog and database/sql, and of ours
// nothing that decides.
package projections

import (
	"context"
	"database/sql"

	"github.com/tempo-watchtower/watchtower/domain/bulk"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Model is a read model: its tables, and the functions that build them.
type Model struct {
	Name   string // of the checkpoint and the lease
	About  string // a short description for people
	Filter eventlog.Filter
	// Version rises with every change of the program that makes other rows from the same
	// events. A rebuild does not resume a shadow of another version.
	Version int
	Tables  []Table // in the order in which queries lock them
	// Fold adds events, inside a database transaction, to the tables whose names begin with
	// prefix. The rows do not depend on how the events were split into batches.
	Fold func(prefix string) Fold
	// Load returns a loader that builds the tables in memory, from the first event on.
	Load func(prefix string) Loader
	// Finish computes rows that sum up other rows, after loading; nil if there are none.
	Finish func(ctx context.Context, dbtx *sql.Tx, prefix string) error
}

// Fold adds events to tables.
type Fold func(ctx context.Context, dbtx *sql.Tx, events []eventlog.Recorded) error

// Loader folds many events at a time in memory, and returns the resulting rows. It evicts rows
// that were taken, so its memory is bounded, and reads them again when another event needs
// them.
type Loader interface {
	// Add folds events. Rows that it needs and does not hold are read from db. It has all rows
	// that were taken before the last Take; those of the last Take may still be on their way.
	Add(ctx context.Context, db *sql.DB, events []eventlog.Recorded) error
	// Pending returns the number of rows that wait to be taken.
	Pending() int
	// Take returns the changes of the rows since the last Take.
	Take() ([]bulk.Change, error)
}

// TableNames returns the names of the model's tables.
func (m Model) TableNames() []string {
	all := make([]string, len(m.Tables))
	for i, t := range m.Tables {
		all[i] = t.Name
	}
	return all
}

// Shape describes a table. Its first key columns are the primary key. Columns that are not in
// kinds have the kind other.
func Shape(name string, key int, columns []string, kinds map[string]Kind, other Kind) Table {
	t := Table{Name: name, Key: key}
	for _, c := range columns {
		kind, known := kinds[c]
		if !known {
			kind = other
		}
		t.Columns = append(t.Columns, Column{Name: c, Kind: kind})
	}
	return t
}
