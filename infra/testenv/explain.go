package testenv

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
)

// Explain returns a database's plan for a statement as text, one step per line.
func Explain(t *testing.T, db *sql.DB, text string, args ...any) string {
	t.Helper()
	word, column := "EXPLAIN QUERY PLAN ", 3 // SQLite's
	if _, err := db.ExecContext(t.Context(), word+text, args...); err != nil {
		word, column = "EXPLAIN ", 0
	}
	rows, err := db.QueryContext(t.Context(), word+text, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // Err below tells
	var said strings.Builder
	for rows.Next() {
		line := make([]any, column+1)
		for i := range line {
			line[i] = new(any)
		}
		if err := rows.Scan(line...); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&said, "%v \n", *line[column].(*any))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return said.String()
}
