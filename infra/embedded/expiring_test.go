package embedded

import (
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Clients with transactions that may expire, and a client's expired transactions, are found by an
// index and without a sort.
func TestExpiringReadsFewRows(t *testing.T) {
	db, err := Open("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing is kept
	for _, query := range []struct {
		text, search string
		args         []any
	}{
		{"SELECT client, " + expirings + " AND client > ?2 ORDER BY client, due LIMIT 1", "(chain=? AND client>?)", []any{int64(1), "a"}},
		{expiringOf(), "(chain=? AND client=? AND expires_at>? AND expires_at<?)", []any{int64(1), "a", ordered(9), int64(5)}},
	} {
		var steps []string
		err = db.work.file.readers.read(t.Context(), func(conn *sqlite.Conn) error {
			return sqlitex.ExecuteTransient(conn, "EXPLAIN QUERY PLAN "+query.text, &sqlitex.ExecOptions{
				Args:       query.args,
				ResultFunc: func(s *sqlite.Stmt) error { steps = append(steps, s.ColumnText(3)); return nil },
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(steps) != 1 || !strings.Contains(steps[0], "INDEX work_expiring "+query.search) {
			t.Errorf("%s: %q", query.text, steps)
		}
	}
}
