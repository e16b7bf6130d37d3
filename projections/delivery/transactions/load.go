package transactions

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/bulk"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections"
)

// version is the version of the rows: see [projections.Model].
const version = 2

// Model describes this read model for a rebuild.
func Model(codec eventlog.Codec[tx.Event]) projections.Model {
	kinds := map[string]projections.Kind{
		"chain": projections.Number, "position": projections.Number, "version": projections.Number,
		"status": projections.Text, "data": projections.JSON,
	}
	return projections.Model{
		Name: Name, About: "each transaction, behind /v1/transactions", Filter: Filter(), Version: version,
		Tables: []projections.Table{projections.Shape(table, 2, columns, kinds, projections.Bytes)},
		Fold:   func(prefix string) projections.Fold { return Projection{codec, prefix}.Fold },
		Load:   func(prefix string) projections.Loader { return NewLoader(codec, prefix) },
	}
}

const (
	// heldMost is the most rows that a loader keeps after they were taken, in case more events
	// change them. A row takes two to three kilobytes.
	heldMost = 1 << 16
	// readMost is how many evicted rows one statement reads by their keys.
	readMost = 500
)

// Loader folds transactions in memory.
type Loader struct {
	projection Projection
	held       map[eventlog.Stream]*held
	pending    []*held
}

// held is a row in the loader's memory.
type held struct {
	stream  eventlog.Stream
	key     key
	row     Row
	stored  bool // it was taken before
	pending bool // it is to be taken
}

// NewLoader returns an empty loader. Rows that it needs again are read from the table whose
// name begins with prefix.
func NewLoader(codec eventlog.Codec[tx.Event], prefix string) *Loader {
	return &Loader{projection: Projection{codec, prefix}, held: map[eventlog.Stream]*held{}}
}

// Add folds events.
func (l *Loader) Add(ctx context.Context, db *sql.DB, events []eventlog.Recorded) error {
	if err := l.hold(ctx, db, events); err != nil {
		return err
	}
	for _, e := range events {
		h := l.held[e.Stream]
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
// begin here, and reads evicted rows.
func (l *Loader) hold(ctx context.Context, db *sql.DB, events []eventlog.Recorded) error {
	var known []key
	for _, e := range events {
		if l.held[e.Stream] != nil {
			continue
		}
		id, hash, err := tx.ParseStream(e.Stream)
		if err != nil {
			return &eventlog.Stuck{At: e.Position, Err: err}
		}
		h := &held{stream: e.Stream, key: key{id, hash}}
		if l.held[e.Stream] = h; e.Version > 1 {
			known = append(known, h.key)
		}
	}
	stored, err := read(ctx, db, l.projection.table(), known, readMost)
	if err != nil {
		return err
	}
	for k, row := range stored {
		h := l.held[tx.Stream(k.chain, k.hash)]
		h.row, h.stored = row, true
	}
	return nil
}

// Pending returns the number of rows that wait to be taken.
func (l *Loader) Pending() int { return len(l.pending) }

// Take returns the changed rows. It evicts unchanged rows that are settled, and all unchanged
// rows if there are too many.
func (l *Loader) Take() ([]bulk.Change, error) {
	for stream, h := range l.held {
		if !h.pending && (len(l.held) > heldMost || h.row.State.Settled()) {
			delete(l.held, stream)
		}
	}
	c := bulk.Change{Table: table, Columns: columns, Key: 2}
	for _, h := range l.pending {
		h.pending = false
		if h.row.State.Retired {
			// Also if this run never wrote it: a run that was killed may have.
			c.Gone = append(c.Gone, []any{int64(h.key.chain), h.key.hash[:]})
			delete(l.held, h.stream)
			continue
		}
		data, err := json.Marshal(h.row)
		if err != nil {
			return nil, fmt.Errorf("row of %s: %w", h.stream, err)
		}
		if row := arguments(h.row, data); h.stored {
			c.Changed = append(c.Changed, row)
		} else {
			c.New = append(c.New, row)
		}
		h.stored = true
	}
	clear(l.pending)
	l.pending = l.pending[:0]
	return []bulk.Change{c}, nil
}
