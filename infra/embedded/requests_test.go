package embedded

import (
	"math"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// The writer finds the oldest requests by an index, without a sort, and reads none that it
// keeps, except running ones.
func TestForgetReadsNoRequestThatItKeeps(t *testing.T) {
	db, err := Open("", Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing is kept
	all := []any{int64(math.MaxInt64), int64(0), int64(100)}
	for text, args := range map[string][]any{forgetOldest: all, forgetOldestOfClient: append([]any{"ann"}, all...)} {
		var steps []string
		err := db.work.file.readers.read(t.Context(), func(conn *sqlite.Conn) error {
			return sqlitex.ExecuteTransient(conn, "EXPLAIN QUERY PLAN "+text, &sqlitex.ExecOptions{
				Args:       args,
				ResultFunc: func(s *sqlite.Stmt) error { steps = append(steps, s.ColumnText(3)); return nil },
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		indexed := 0
		for _, step := range steps {
			if strings.HasPrefix(step, "SEARCH requests USING ") {
				indexed++
			} else if strings.Contains(step, "SCAN") || strings.Contains(step, "TEMP B-TREE") {
				t.Errorf("%s\n%s", text, step)
			}
		}
		if indexed != 2 {
			t.Errorf("%s\n%q", text, steps)
		}
	}
}

// A client that claims more requests than its share displaces its own oldest ones, and leaves few
// for a sweep. It gets back to a share that was lowered.
func TestClaimsDisplaceTheClientsOldest(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	db, err := Open("", Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing is kept
	r := db.Requests()
	id := byte(0)
	claim := func(client string, name byte, share int, want request.Stage) {
		t.Helper()
		id++
		c := request.Claim{ID: eventlog.ID{id}, Name: request.Name{name}, Client: client, Hold: time.Hour, Keep: time.Hour, Share: share}
		stage, _, err := r.Claim(t.Context(), c)
		if err != nil || stage != want {
			t.Fatalf("%s %d: stage %d, %v; want %d", client, name, stage, err, want)
		}
		if stage == request.Claimed {
			if err := r.Answer(t.Context(), c.Name, c.ID, request.Answer{Status: 200}); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(time.Second)
	}
	stored := func(want int) {
		t.Helper()
		if u, err := r.Usage(t.Context(), 1); err != nil || u.Largest != want {
			t.Fatalf("%+v, %v; want %d", u, err, want)
		}
	}
	const share, first = 4, 100
	claim("victim", 1, share, request.Claimed) // the oldest of all
	name := byte(first)
	for range share + displacedAtOnce - 1 {
		claim("flood", name, share, request.Claimed)
		name++
	}
	stored(share + displacedAtOnce - 1)
	claim("flood", name, share, request.Claimed)
	stored(share)
	claim("flood", name+1-share, share, request.Answered) // the oldest that is kept
	claim("flood", first, 0, request.Claimed)             // without a bound
	claim("victim", 1, share, request.Answered)
	for n := range byte(displacedAtOnce - share) {
		claim("flood", 10+n, 0, request.Claimed)
	}
	stored(displacedAtOnce + 1)
	claim("flood", 2, 1, request.Claimed)
	claim("flood", 2, 1, request.Answered)
	stored(2)
}
