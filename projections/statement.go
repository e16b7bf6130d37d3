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

// Places is "$from, …" for n parameters.
func Places(from, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("$%d", from+i)
	}
	return strings.Join(all, ", ")
}

// Where gathers the conditions of a statement, and their arguments.
type Where struct {
	conditions []string
	parts      []part
	Args       []any
}

// part is a condition as it was added.
type part struct {
	text   string
	values []any
}

// And adds a condition. Where it has values, their parameters stand in the place of %s.
func (w *Where) And(condition string, values ...any) {
	w.parts = append(w.parts, part{condition, values})
	if len(values) > 0 {
		condition = fmt.Sprintf(condition, Places(len(w.Args)+1, len(values)))
	}
	w.conditions = append(w.conditions, condition)
	w.Args = append(w.Args, values...)
}

// Add adds the conditions of another clause. Its parameters are numbered on from the last
// one here.
func (w *Where) Add(other Where) {
	for _, c := range other.parts {
		w.And(c.text, c.values...)
	}
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

// Names are clients as the table of owners keeps them.
func Names(clients []string) []any {
	values := make([]any, len(clients))
	for i, c := range clients {
		values[i] = []byte(c)
	}
	return values
}

// String is the clause, with a space before it; empty where all rows fit.
func (w *Where) String() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conditions, " AND ")
}

// Documents asks for rows of one column, each of which is an R in JSON. Errors begin
// with the read model's name.
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

// Distinct is the keys in the order in which each comes first.
func Distinct[K comparable](keys []K) []K {
	seen := make(map[K]bool, len(keys))
	return slices.DeleteFunc(slices.Clone(keys), func(k K) bool {
		again := seen[k]
		seen[k] = true
		return again
	})
}
