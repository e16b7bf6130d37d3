package embedded

import (
	"slices"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// The next free nonce is found by reading rows in the order of an index, without a sort: rows
// behind the first gap are not read.
func TestNextFreeReadsNoRowBehindAGap(t *testing.T) {
	db, err := Open("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing is kept
	var steps []string
	err = db.work.file.readers.read(t.Context(), func(conn *sqlite.Conn) error {
		return sqlitex.ExecuteTransient(conn, "EXPLAIN QUERY PLAN "+sequenceRows(), &sqlitex.ExecOptions{
			Args:       []any{int64(1), []byte{1}, []byte{2}, ordered(3)},
			ResultFunc: func(s *sqlite.Stmt) error { steps = append(steps, s.ColumnText(3)); return nil },
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	searches := 0
	for _, step := range steps {
		switch {
		case strings.Contains(step, "SCAN"), strings.Contains(step, "TEMP B-TREE"):
			t.Errorf("%q", steps)
		case strings.Contains(step, "work_sequence") && strings.Contains(step, "phase=? AND nonce>?"):
			searches++
		}
	}
	if searches != 2 || !slices.Contains(steps, "MERGE (UNION ALL)") {
		t.Errorf("%d searches: %q", searches, steps)
	}
}
