package projections

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Querier is a *sql.DB or a *sql.Tx.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Places returns "$from, …" for n parameters.
func Places(from, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("$%d", from+i)
	}
	return strings.Join(all, ", ")
}

// Where collects the conditions of a statement, and their arguments.
type Where struct {
	conditions []condition
	Args       []any
}

// condition is a condition as it was added.
type condition struct {
	text   string // with %s for the parameters of the values, if it has any
	values int
}

// And adds a condition. Where it has values, their parameters stand in the place of %s.
func (w *Where) And(text string, values ...any) {
	w.conditions = append(w.conditions, condition{text, len(values)})
	w.Args = append(w.Args, values...)
}

// Add adds the conditions of another clause, which has no arguments but theirs. Its parameters
// are numbered on from the last one here.
func (w *Where) Add(other Where) {
	w.conditions = append(w.conditions, other.conditions...)
	w.Args = append(w.Args, other.Args...)
}

// AndIn adds the condition that a column has one of these values, if there are any.
func AndIn[S ~string](w *Where, column string, values []S) {
	if len(values) > 0 {
		w.And(column+" IN (%s)", Texts(values)...)
	}
}

// Texts are values as parameters of a statement.
func Texts[S ~string](values []S) []any {
	anys := make([]any, len(values))
	for i, v := range values {
		anys[i] = string(v)
	}
	return anys
}

// Names returns client names as the owners table stores them.
func Names(clients []string) []any {
	values := make([]any, len(clients))
	for i, c := range clients {
		values[i] = []byte(c)
	}
	return values
}

// String is the WHERE clause, with a leading space; empty without conditions.
func (w *Where) String() string {
	if len(w.conditions) == 0 {
		return ""
	}
	// Arguments that were there before the first condition have the first parameters.
	next := len(w.Args) + 1
	for _, c := range w.conditions {
		next -= c.values
	}
	texts := make([]string, len(w.conditions))
	for i, c := range w.conditions {
		if texts[i] = c.text; c.values > 0 {
			texts[i] = fmt.Sprintf(c.text, Places(next, c.values))
		}
		next += c.values
	}
	return " WHERE " + strings.Join(texts, " AND ")
}

// Documents runs a query for one column of JSON documents of type R. Errors begin with the read
// model's name.
func Documents[R any](ctx context.Context, db Querier, model, text string, args ...any) ([]R, error) {
	found, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", model, err)
	}
	defer found.Close() //nolint:errcheck // reading is over; Err below tells
	var rows []R
	for found.Next() {
		var data []byte
		if err := found.Scan(&data); err != nil {
			return nil, fmt.Errorf("%s: %w", model, err)
		}
		var row R
		if err := json.Unmarshal(data, &row); err != nil {
			return nil, fmt.Errorf("%s: row: %w", model, err)
		}
		rows = append(rows, row)
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", model, err)
	}
	return rows, nil
}

// Distinct returns the keys without repetitions, in order of first occurrence.
func Distinct[K comparable](keys []K) []K {
	seen := make(map[K]bool, len(keys))
	return slices.DeleteFunc(slices.Clone(keys), func(k K) bool {
		again := seen[k]
		seen[k] = true
		return again
	})
}
