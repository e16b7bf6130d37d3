package embedded

import (
	"cmp"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// join stores further owners of rows. The rows' update has to follow: its trigger copies the rows'
// state.
func (a *applying) join(joined []tx.Joined) error {
	for _, j := range joined {
		err := exec(a.conn, `INSERT INTO work_owners (chain, hash, client, account, next_at, free, attempts)
			VALUES (?, ?, ?, ?, ?, 0, 0) ON CONFLICT DO NOTHING`,
			int64(j.Chain), j.Hash[:], j.Client, j.Account[:], micros(j.NextAt))
		if err != nil {
			return err
		}
	}
	return nil
}

// joined copies the state of rows to their further owners, and notes whose owners are known now.
func (a *applying) joined(f tx.Folded) error {
	for _, j := range f.Joined {
		err := exec(a.conn, "UPDATE work SET shared = 1 WHERE chain = ? AND hash = ?", int64(j.Chain), j.Hash[:])
		if err != nil {
			return err
		}
	}
	for _, r := range f.Filled {
		err := exec(a.conn, "UPDATE work SET shared = coalesce(shared, 0) WHERE chain = ? AND hash = ?", int64(r.Chain), r.Hash[:])
		if err != nil {
			return err
		}
	}
	for _, ref := range f.Turned() {
		if err := a.count(ref); err != nil {
			return err
		}
	}
	return nil
}

// count counts the turns of a row's further owners while the row is open.
func (a *applying) count(ref tx.Ref) error {
	err := exec(a.conn, `INSERT INTO work_clients (client, waiting, bytes)
		SELECT o.client, (w.phase = 'open') - (o.counted IS NOT NULL), CASE WHEN w.phase = 'open' THEN w.bytes ELSE 0 END - coalesce(o.counted, 0)
		FROM work_owners o JOIN work w ON w.chain = o.chain AND w.hash = o.hash WHERE o.chain = ?1 AND o.hash = ?2
		ON CONFLICT (client) DO UPDATE SET waiting = waiting + excluded.waiting, bytes = bytes + excluded.bytes`,
		int64(ref.Chain), ref.Hash[:])
	if err != nil {
		return err
	}
	return exec(a.conn, `UPDATE work_owners AS o SET counted = (
			SELECT CASE WHEN phase = 'open' THEN bytes END FROM work w WHERE w.chain = o.chain AND w.hash = o.hash)
		WHERE chain = ?1 AND hash = ?2`, int64(ref.Chain), ref.Hash[:])
}

// turn is a further owner of a row.
type turn struct {
	no      int64
	hash    chain.Hash
	client  string
	account tx.Account
	nextAt  time.Time
}

const turnColumns = "no, hash, client, account, next_at"

func scanTurn(s *sqlite.Stmt) turn {
	t := turn{no: s.ColumnInt64(0), client: s.ColumnText(2), nextAt: timeAt(s, 4)}
	s.ColumnBytes(1, t.hash[:])
	s.ColumnBytes(3, t.account[:])
	return t
}

// rowIn returns a row as it is in the turn of a further owner.
func (l *leasing) rowIn(t turn) (r row, err error) {
	err = query(l.conn, "SELECT "+workColumns+" FROM work WHERE chain = ? AND hash = ?", func(s *sqlite.Stmt) bool {
		r = scanRow(s)
		return false
	}, int64(l.chain), t.hash[:])
	r.turn, r.Client, r.Account, r.NextAt, r.HeldSince = t.no, t.client, t.account, t.nextAt, time.Time{}
	return r, err
}

// dueTurns finds rows of one kind that are due in a client's turn as a further owner, oldest due
// first, without the turns whose account is on hold.
func (l *leasing) dueTurns(kind, client string, at time.Time, limit int) (found []row, err error) {
	var turns []turn
	var failed error
	aside := 0
	err = query(l.conn, "SELECT "+turnColumns+` FROM work_owners
		WHERE chain = ? AND client = ? AND free = 1 AND held_since IS NULL AND `+kind+` ORDER BY due`,
		func(s *sqlite.Stmt) bool {
			t := scanTurn(s)
			var held bool
			if held, failed = l.onHold(t.account); held {
				l.asideTurns[t.no] = true
				aside++
			} else {
				turns = append(turns, t)
			}
			return failed == nil && len(turns) < limit && aside < asideMax
		}, int64(l.chain), client, micros(at))
	if err = cmp.Or(err, failed); err != nil {
		return nil, err
	}
	return l.rowsIn(turns)
}

func (l *leasing) rowsIn(turns []turn) (found []row, err error) {
	for _, t := range turns {
		r, err := l.rowIn(t)
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, nil
}

// takeTurn leases a row in a further owner's turn. The first client's due time and hold stay.
func (l *leasing) takeTurn(r row) error {
	err := exec(l.conn, "UPDATE work SET holder = ?, lease_until = ? WHERE no = ?", l.holder, micros(l.now.Add(l.ttl)), r.no)
	if err != nil {
		return err
	}
	return exec(l.conn, "UPDATE work_owners SET held_since = NULL, next_at = min(next_at, ?) WHERE no = ?", micros(l.now), r.turn)
}

// heldTurns adds the turns that are set aside for an account to its rows that are, least attempted
// first, then oldest due first.
func (l *leasing) heldTurns(found []row, a tx.Account, limit int) ([]row, error) {
	var turns []turn
	err := query(l.conn, "SELECT "+turnColumns+` FROM work_owners
		WHERE account = ? AND held_since IS NOT NULL AND free = 1 AND due <= ? ORDER BY attempts, due LIMIT ?`,
		func(s *sqlite.Stmt) bool {
			turns = append(turns, scanTurn(s))
			return true
		}, a[:], micros(l.now), int64(limit))
	if err != nil || len(turns) == 0 {
		return found, err
	}
	more, err := l.rowsIn(turns)
	if err != nil {
		return nil, err
	}
	found = append(found, more...)
	slices.SortStableFunc(found, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Attempts, b.Attempts), a.NextAt.Compare(b.NextAt), cmp.Compare(a.Nonce, b.Nonce))
	})
	return found[:min(len(found), limit)], nil
}

// doneTurns stores the result of an attempt for a row's further owners.
func doneTurns(conn *sqlite.Conn, d tx.Done, heldSince any) error {
	return exec(conn, `UPDATE work_owners SET next_at = ?3,
			held_since = CASE WHEN account = ?4 THEN ?5 ELSE held_since END
		WHERE chain = ?1 AND hash = ?2 AND (?6 OR account = ?4)`,
		int64(d.Chain), d.Hash[:], micros(d.NextAt), d.Account[:], heldSince, bit(forAll(d)))
}

// forAll reports whether a result moves the due time of every owner.
func forAll(d tx.Done) bool { return d.ForAll || d.Account == tx.Account{} }

// tellOwners sets the further owners of a row.
func tellOwners(conn *sqlite.Conn, r *tx.Work) error {
	if !r.Shared {
		return nil
	}
	return query(conn, "SELECT client, account, next_at, held_since FROM work_owners WHERE chain = ? AND hash = ? ORDER BY client",
		func(s *sqlite.Stmt) bool {
			o := tx.Owner{Client: s.ColumnText(0), NextAt: timeAt(s, 2), HeldSince: timeAt(s, 3)}
			s.ColumnBytes(1, o.Account[:])
			r.Owners = append(r.Owners, o)
			return true
		}, int64(r.Chain), r.Hash[:])
}
