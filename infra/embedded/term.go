package embedded

import (
	"time"

	"zombiezen.com/go/sqlite"
)

// term is a holder's claim to the name of a row in leases or groups.
type term struct {
	token uint64
	held  bool // by the asking holder; otherwise the token has no meaning
}

// take takes or renews the claim to a row of a table, and makes the row if necessary. A lapsed
// claim gets a new token, even for its last holder: others may have held it meanwhile.
func take(conn *sqlite.Conn, table, name, holder string, now time.Time, ttl time.Duration) (term, error) {
	var last term
	free := true
	err := query(conn, "SELECT holder, token, until FROM "+table+" WHERE name = ?", func(s *sqlite.Stmt) bool {
		until := s.ColumnInt64(2)
		// A claim that runs longer than any term was given before the clock was set back.
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
