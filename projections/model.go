package projections

import (
	"context"
	"database/sql"

	"github.com/tempo-watchtower/watchtower/domain/bulk"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Model is a read model: what it is made of, and the ways of making it.
type Model struct {
	Name   string // of the checkpoint and the lease
	About  string // in a few words, for people
	Filter event.Filter
	// Version rises with every change of the program after which the same events make
	// other rows. What a rebuild of another version has left is not gone on with.
	Version int
	Tables  []Table // in the order in which queries lock them
	// Fold adds events to the tables whose names begin with prefix, inside a database
	// transaction. What it writes does not depend on how the events were cut.
	Fold func(prefix string) Fold
	// Load begins to make the tables from the first event on, in memory.
	Load func(prefix string) Loader
	// Finish makes rows that sum up others, after rows were loaded; nil has none.
	Finish func(ctx context.Context, dbtx *sql.Tx, prefix string) error
}

// Fold adds events to tables.
type Fold func(ctx context.Context, dbtx *sql.Tx, events []event.Recorded) error

// Loader folds events in memory, many at a time, and says what rows they came to. It
// forgets rows that were taken, so that what it holds is bounded, and reads them when
// another event needs them.
type Loader interface {
	// Add folds events. Rows that it needs and does not hold are read from db, where
	// all that was taken earlier has been written.
	Add(ctx context.Context, db *sql.DB, events []event.Recorded) error
	// Pending is how many rows wait to be taken.
	Pending() int
	// Take returns what became of rows since the last Take.
	Take() ([]bulk.Change, error)
}

// TableNames are those of its tables.
func (m Model) TableNames() []string {
	all := make([]string, len(m.Tables))
	for i, t := range m.Tables {
		all[i] = t.Name
	}
	return all
}

// Shape describes a table: its first key columns are its primary key, and columns that
// have no kind of their own are of the kind other.
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
