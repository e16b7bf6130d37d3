package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// StepRows is the largest number of index entries that one step of a [Walk] covers.
const StepRows = 1000

// Walk reads a list from the newest row to the oldest along an index, in steps of at most
// [StepRows] index entries. A selective filter makes a list read many rows; steps let the
// caller limit and charge that work.
type Walk struct {
	Table    string // with its alias
	Position string // the column of the order
	// Equal are the columns of the index before Position. Each entry of the index has one of
	// the column's values.
	Equal []Equal
	// Filtered: the list has conditions beside Equal, so some index entries may have no row in
	// the list.
	Filtered bool
}

// Equal is a column with its possible values, at least one.
type Equal struct {
	Column string
	Values []any
}

// branchesMax is the number of index ranges that one statement reads. SQLite allows 500 selects
// in a compound select.
const branchesMax = 100

// Floor returns the lowest position of the step that begins below before (0: at the newest
// row). 0 means that the list ends within the step.
func (w Walk) Floor(ctx context.Context, db Querier, before event.Position) (event.Position, error) {
	if !w.Filtered && !w.merges() {
		return 0, nil // the index yields the list itself, in order
	}
	var floor event.Position
	for some := range slices.Chunk(w.branches(), branchesMax) {
		text, args := w.floor(some, before)
		var at int64
		err := db.QueryRowContext(ctx, text, args...).Scan(&at)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return 0, fmt.Errorf("step of a list: %w", err)
		}
		floor = max(floor, event.Position(at))
	}
	return floor, nil
}

// merges reports whether the list is merged from several ranges of the index.
func (w Walk) merges() bool {
	return slices.ContainsFunc(w.Equal, func(e Equal) bool { return len(e.Values) > 1 })
}

// branches returns the ranges of the index: every combination of the columns' values.
func (w Walk) branches() [][]any {
	all := [][]any{nil}
	for _, e := range w.Equal {
		var longer [][]any
		for _, b := range all {
			for _, v := range e.Values {
				longer = append(longer, append(slices.Clone(b), v))
			}
		}
		all = longer
	}
	return all
}

// floor returns the statement that finds the last entry of a step over these ranges.
func (w Walk) floor(branches [][]any, before event.Position) (text string, args []any) {
	selects := make([]string, len(branches))
	for i, values := range branches {
		where := Where{Args: args}
		for n, e := range w.Equal {
			where.And(e.Column+" = %s", values[n])
		}
		if before != 0 {
			where.And(w.Position+" < %s", int64(before))
		}
		args = where.Args
		selects[i] = fmt.Sprintf("SELECT * FROM (SELECT %s AS position FROM %s%s ORDER BY %s DESC LIMIT %d) s%d", w.Position, w.Table, &where, w.Position, StepRows, i)
	}
	return fmt.Sprintf("SELECT position FROM (%s) steps ORDER BY position DESC LIMIT 1 OFFSET %d", strings.Join(selects, " UNION ALL "), StepRows-1), args
}

// Next returns the position below which the next step begins; 0 means that there is none.
// found is the number of rows found, of at most limit. last is the position of the last row.
// floor is the step's floor.
func Next(found, limit int, last, floor event.Position) event.Position {
	if found == limit {
		return last
	}
	return floor
}
