package embedded

import (
	"time"

	"zombiezen.com/go/sqlite"
)

// term is a holder's right to what a row of leases or of groups names.
type term struct {
	token uint64
	held  bool // by the one who asks; else the token says nothing
}

// take takes or renews the right to a row of a table, which may have to be made first. One
// that has lapsed is taken anew, with a new token, even by its last holder: others may
// have come and gone meanwhile.
func take(conn *sqlite.Conn, table, name, holder string, now time.Time, ttl time.Duration) (term, error) {
	var last term
	free := true
	err := query(conn, "SELECT holder, token, until FROM "+table+" WHERE name = ?", func(s *sqlite.Stmt) bool {
		until := s.ColumnInt64(2)
		// One that runs for longer than any was given before the clock was set back.
		free = s.ColumnIsNull(0) || until <= micros(now) || until > micros(now.Add(ttl+clockSlack))
		last = term{uint64(s.ColumnInt64(1)), !free && s.ColumnText(0) == holder}
		return false
	}, name)
	if err != nil || !free && !last.held {
		return term{}, err
	}
	if free {
		last = term{last.token + 1, true}
	}
	return last, exec(conn, "INSERT INTO "+table+` (name, holder, token, until) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT (name) DO UPDATE SET holder = ?2, token = ?3, until = ?4`,
		name, holder, int64(last.token), micros(now.Add(ttl)))
}
