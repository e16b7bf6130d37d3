package intents

import (
	"context"
	"database/sql"

	"github.com/tempo-watchtower/watchtower/domain/bulk"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections"
)

// version is the version of the rows: see [projections.Model].
const version = 3

// Model describes this read model for a rebuild.
func Model(codec eventlog.Codec[intent.Event]) projections.Model {
	kinds := map[string]projections.Kind{
		"intent": projections.Bytes, "signer": projections.Bytes, "hash": projections.Bytes,
		"position": projections.Number, "attempt": projections.Number, "version": projections.Number, "chain": projections.Number, "data": projections.JSON,
	}
	shape := func(name string, key int, columns []string) projections.Table {
		return projections.Shape(name, key, columns, kinds, projections.Text)
	}
	return projections.Model{
		Name: Name, About: "each intent, behind the relay's /v1/intents", Filter: Filter(), Version: version,
		Tables: []projections.Table{shape(table, 1, columns), shape(attemptsTable, 2, attemptColumns)},
		Fold:   func(prefix string) projections.Fold { return Projection{codec, prefix}.Fold },
		Load:   func(prefix string) projections.Loader { return NewLoader(codec, prefix) },
	}
}

const (
	// heldMost is the most rows that a loader keeps after they were taken, in case more events
	// change them. A row takes some kilobytes.
	heldMost = 1 << 15
	// readMost is how many evicted rows one statement reads by their keys.
	readMost = 500
)

// Loader folds intents in memory.
type Loader struct {
	projection Projection
	held       map[chain.IntentID]*held
	pending    []*held
}

// held is a row in the loader's memory.
type held struct {
	row      Row
	stored   bool // it was taken before
	attempts int  // number of its attempts that were taken
	pending  bool // it is to be taken
}

// NewLoader returns an empty loader. Rows that it needs again are read from the tables whose
// names begin with prefix.
func NewLoader(codec eventlog.Codec[intent.Event], prefix string) *Loader {
	return &Loader{projection: Projection{codec, prefix}, held: map[chain.IntentID]*held{}}
}

// Add folds events.
func (l *Loader) Add(ctx context.Context, db *sql.DB, events []eventlog.Recorded) error {
	ids, err := l.hold(ctx, db, events)
	if err != nil {
		return err
	}
	for i, e := range events {
		h := l.held[ids[i]]
		row, err := h.row.Evolve(e, l.projection.Codec)
		if err != nil {
			return &eventlog.Stuck{At: e.Position, Err: err}
		}
		if h.row = row; !h.pending {
			h.pending = true
			l.pending = append(l.pending, h)
		}
	}
	return nil
}

// hold makes sure that the rows of these events are in memory: it creates rows whose streams
// begin here, and reads evicted rows. It returns the intent of each event.
func (l *Loader) hold(ctx context.Context, db *sql.DB, events []eventlog.Recorded) ([]chain.IntentID, error) {
	ids := make([]chain.IntentID, len(events))
	var known []chain.IntentID
	for i, e := range events {
		id, err := intent.ParseStream(e.Stream)
		if err != nil {
			return nil, &eventlog.Stuck{At: e.Position, Err: err}
		}
		if ids[i] = id; l.held[id] != nil {
			continue
		}
		if l.held[id] = new(held); e.Version > 1 {
			known = append(known, id)
		}
	}
	stored, err := read(ctx, db, l.projection.Prefix+table, known, readMost)
	if err != nil {
		return nil, err
	}
	for id, row := range stored {
		*l.held[id] = held{row: row, stored: true, attempts: len(row.State.Attempts)}
	}
	return ids, nil
}

// Pending returns the number of rows that wait to be taken.
func (l *Loader) Pending() int { return len(l.pending) }

// Take returns the changed rows. It evicts unchanged rows whose intents have ended, and all
// unchanged rows if there are too many.
func (l *Loader) Take() ([]bulk.Change, error) {
	for id, h := range l.held {
		if !h.pending && (len(l.held) > heldMost || h.row.State.End != nil) {
			delete(l.held, id)
		}
	}
	rows := bulk.Change{Table: table, Columns: columns, Key: 1}
	made := bulk.Change{Table: attemptsTable, Columns: attemptColumns, Key: 2}
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
		made.New = append(made.New, attempts(h.row, h.attempts)...)
		h.stored, h.attempts, h.pending = true, len(h.row.State.Attempts), false
	}
	clear(l.pending)
	l.pending = l.pending[:0]
	return []bulk.Change{rows, made}, nil
}
