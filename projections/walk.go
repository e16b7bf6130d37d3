package projections

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// StepRows is the largest number of index entries that one step of a [Walk] covers.
const StepRows = 1000

// Walk reads a list of rows R from the newest to the oldest along an index, in steps of at
// most [StepRows] index entries. A filter that few rows pass makes a list read many rows;
// steps let the caller limit and charge that work. The statements leave the databases no
// other index to choose: the cost of a step does not depend on the rows of other clients.
type Walk[R any] struct {
	Model string // the name of the read model, for errors
	// Table is the table of the index, Position its column of the order, and Keys are its
	// columns with the rows' key.
	Table, Position string
	Keys            []string
	// Equal are the columns of the index before Position. Each entry of the index has one of
	// the column's values.
	Equal []Equal
	// Empty, if set, reports that the index has no entry with these values of the columns.
	Empty func(values []any) bool
	// Rows is the table of the rows, with the alias t: its column data is a row in JSON, its
	// columns Keys are the key, and Where has the filters, as conditions on t.
	Rows  string
	Where Where
	// At returns the position of a row.
	At func(R) eventlog.Position
}

// Equal is a column and the values that it may have, at least one.
type Equal struct {
	Column string
	Values []any
}

// rangesMax is the number of index ranges that one statement reads. SQLite allows 500
// selects in a compound one.
const rangesMax = 100

// Step reads one step of the list below before (0: from the newest row on): at most limit
// rows. rest is the position below which the next step begins; 0 means that the list ends.
func (w Walk[R]) Step(ctx context.Context, db Querier, before eventlog.Position, limit int) (rows []R, rest eventlog.Position, err error) {
	ranges := slices.Collect(slices.Chunk(w.ranges(), rangesMax))
	for _, some := range ranges {
		text, args := w.page(some, before, limit)
		found, err := Documents[R](ctx, db, w.Model, text, args...)
		if err != nil {
			return nil, 0, err
		}
		rows = append(rows, found...)
	}
	if len(ranges) == 1 && len(rows) == limit {
		return rows, w.At(rows[limit-1]), nil
	}
	floor, err := w.floor(ctx, db, ranges, before)
	if err != nil || len(ranges) == 1 {
		return rows, floor, err
	}
	rows = slices.DeleteFunc(rows, func(r R) bool { return w.At(r) < floor })
	slices.SortFunc(rows, func(a, b R) int { return cmp.Compare(w.At(b), w.At(a)) })
	rows = slices.CompactFunc(rows, func(a, b R) bool { return w.At(a) == w.At(b) })
	if len(rows) >= limit {
		return rows[:limit], w.At(rows[limit-1]), nil
	}
	return rows, floor, nil
}

// floor returns the position of the last entry of a step, or 0 if the list ends within it.
func (w Walk[R]) floor(ctx context.Context, db Querier, ranges [][][]any, before eventlog.Position) (floor eventlog.Position, err error) {
	for _, some := range ranges {
		entries, args := w.entries(some, before)
		var at int64
		err := db.QueryRowContext(ctx, fmt.Sprintf("SELECT position FROM (%s) e ORDER BY position DESC LIMIT 1 OFFSET %d", entries, StepRows-1), args...).Scan(&at)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return 0, fmt.Errorf("%s: step of a list: %w", w.Model, err)
		}
		floor = max(floor, eventlog.Position(at))
	}
	return floor, nil
}

// page is the statement that reads the rows of a step. The limit inside keeps the databases
// from turning the statement around, and from reading the rows by another index first.
func (w Walk[R]) page(ranges [][]any, before eventlog.Position, limit int) (text string, args []any) {
	entries, args := w.entries(ranges, before)
	where := Where{Args: args}
	for _, key := range w.Keys {
		where.And(fmt.Sprintf("t.%s = w.%s", key, key))
	}
	where.Add(w.Where)
	return fmt.Sprintf("SELECT t.data FROM (SELECT * FROM (%s) e ORDER BY position DESC LIMIT %d) w CROSS JOIN %s t%s ORDER BY w.position DESC LIMIT %d",
		entries, StepRows, w.Rows, &where, limit), where.Args
}

// Statement returns the statement that reads the newest rows, for tests of the plan that a
// database makes of it.
func (w Walk[R]) Statement(limit int) (text string, args []any) {
	all := w.ranges()
	return w.page(all[:min(len(all), rangesMax)], 0, limit)
}

// ranges are the ranges of the index: every combination of the columns' values.
func (w Walk[R]) ranges() [][]any {
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
	if w.Empty != nil {
		all = slices.DeleteFunc(all, w.Empty)
	}
	return all
}

// entries is the select of the newest entries of these ranges, each once.
func (w Walk[R]) entries(ranges [][]any, before eventlog.Position) (text string, args []any) {
	selects := make([]string, len(ranges))
	for i, values := range ranges {
		where := Where{Args: args}
		for n, e := range w.Equal {
			where.And(e.Column+" = %s", values[n])
		}
		if before != 0 {
			where.And(w.Position+" < %s", int64(before))
		}
		args = where.Args
		selects[i] = fmt.Sprintf("SELECT * FROM (SELECT %s AS position, %s FROM %s%s ORDER BY %s DESC LIMIT %d) s%d",
			w.Position, strings.Join(w.Keys, ", "), w.Table, &where, w.Position, StepRows, i)
	}
	return strings.Join(selects, " UNION "), args
}
