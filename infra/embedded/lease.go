package embedded

import (
	"context"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// horizon is the longest time that Lease returns in until.
const horizon = tx.Horizon

// clockSlack is how much longer than ours another holder's term may be. A lease that runs even
// longer was given before the clock was set back, and counts as lapsed. A repeat due later than
// the longest pause was stored before that, and counts as due. First attempts may be any time
// away; Advance makes them due by the chain's clock.
const clockSlack = time.Minute

// beyond is the latest possible due time of a repeat, if the clock shows now and was not set
// back.
func (w *Work) beyond(now time.Time) time.Time {
	if w.pause == 0 {
		return tx.StoredTime(time.Unix(1<<40, 0))
	}
	return now.Add(w.ahead())
}

// ahead is the longest time from now until a repeat is due; 0: unknown.
func (w *Work) ahead() time.Duration {
	if w.pause == 0 {
		return 0
	}
	return w.pause + clockSlack
}

// asideMax bounds how many of a client's rows with accounts on hold one Lease sets aside.
const asideMax = 1000

// Lease gives due rows of a chain to a holder. Rows leased by others count as due when their
// lease ends, so that a caller that waits for until is there in time if the holder has died.
func (w *Work) Lease(ctx context.Context, id chain.ID, holder string, ttl time.Duration, limit, repeats int) ([]tx.Work, time.Duration, error) {
	l, err := write(ctx, w.file, "lease work", func(conn *sqlite.Conn) (*leasing, error) {
		now := w.now()
		if err := w.hurry(conn, now); err != nil {
			return nil, err
		}
		l := &leasing{conn: conn, now: now, beyond: w.beyond(now), chain: id, holder: holder, ttl: ttl, held: map[tx.Account]bool{}, probes: map[string]bool{},
			aside: map[int64]bool{}, asideTurns: map[int64]bool{}, sharing: map[string]bool{}, leased: map[int64]bool{}}
		turns := w.turns[id]
		err := l.run(&turns, limit, repeats)
		w.turns[id] = turns
		return l, err
	})
	if err != nil {
		return nil, 0, err
	}
	return l.work, l.until, nil
}

// hurry makes eligible rows without attempts due if their due time lies too far ahead. It does
// so if the clock may have been set back: before the first Lease, or since the last one.
func (w *Work) hurry(conn *sqlite.Conn, now time.Time) error {
	back := w.latest.IsZero() || now.Before(w.latest.Add(-clockSlack))
	if back || now.After(w.latest) {
		w.latest = now
	}
	if !back {
		return nil
	}
	err := exec(conn, `UPDATE work SET next_at = ?1
		WHERE phase = 'open' AND attempts = 0 AND next_at > ?2 AND eligible_at <= ?3`,
		micros(now), micros(w.beyond(now)), ordered(uint64(max(now.Unix(), 0))))
	if err != nil {
		return err
	}
	return exec(conn, `UPDATE work_owners AS o SET next_at = ?1 WHERE free = 1 AND attempts = 0 AND next_at > ?2
			AND EXISTS (SELECT 1 FROM work w WHERE w.chain = o.chain AND w.hash = o.hash AND w.eligible_at <= ?3)`,
		micros(now), micros(w.beyond(now)), ordered(uint64(max(now.Unix(), 0))))
}

// leasing is the state of one call of Lease.
type leasing struct {
	conn   *sqlite.Conn
	now    time.Time
	beyond time.Time // no repeat is due later, unless the clock was set back
	chain  chain.ID
	holder string
	ttl    time.Duration
	held   map[tx.Account]bool // the accounts checked: whether they are on hold
	aside  map[int64]bool      // rows to set aside
	probes map[string]bool     // the clients with accounts whose hold has expired
	// Further owners' turns to set aside, and the clients that have due ones.
	asideTurns map[int64]bool
	sharing    map[string]bool
	leased     map[int64]bool // rows leased by this call
	// When the first row or hold of each kind is due. A kind without any is missing.
	soonest map[string]int64

	work  []tx.Work
	until time.Duration
}

func (l *leasing) run(turns *tx.Turns, limit, repeats int) error {
	ready, err := l.ready()
	if err != nil {
		return err
	}
	again := 0
	err = turns.Serve(limit, repeats, ready, func(shares []tx.Share) (taken []tx.Share, err error) {
		for _, s := range shares {
			got, err := l.share(s)
			if err != nil {
				return nil, err
			}
			again += got.Repeats
			taken = append(taken, got)
		}
		return taken, nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(l.work, func(a, b tx.Work) int { return a.NextAt.Compare(b.NextAt) })
	for no := range l.aside {
		if err := exec(l.conn, "UPDATE work SET held_since = ? WHERE no = ?", micros(l.now), no); err != nil {
			return err
		}
	}
	for no := range l.asideTurns {
		if err := exec(l.conn, "UPDATE work_owners SET held_since = ? WHERE no = ?", micros(l.now), no); err != nil {
			return err
		}
	}
	switch {
	case len(l.work) >= limit:
		return nil // more may be due now
	case len(ready) > 0:
		if l.soonest, err = l.look(nil); err != nil {
			return err
		}
	}
	l.until = horizon
	if len(l.aside)+len(l.asideTurns) >= asideMax {
		l.until = 0
	}
	for kind, at := range l.soonest {
		if kind != agains && kind != turnAgains || again < repeats {
			l.until = min(l.until, max(0, time.UnixMicro(at).Sub(l.now)))
		}
	}
	return nil
}

// share leases one client's share: probes first, then the rows due longest.
func (l *leasing) share(may tx.Share) (got tx.Share, err error) {
	before := len(l.work)
	if l.probes[may.Client] {
		if err := l.probe(may.Client, may.Rows); err != nil {
			return got, err
		}
	}
	limit := may.Rows - (len(l.work) - before)
	repeats := min(limit, may.Repeats)
	again, err := l.due("attempts > 0 AND due <= ?", may.Client, l.now, repeats)
	if err != nil {
		return got, err
	}
	astray, err := l.due("attempts > 0 AND due > ?", may.Client, l.beyond, repeats-len(again))
	if err != nil {
		return got, err
	}
	due, err := l.due("attempts = 0 AND due <= ?", may.Client, l.now, limit)
	if err != nil {
		return got, err
	}
	due = append(append(due, again...), astray...)
	slices.SortStableFunc(due, func(a, b row) int { return a.NextAt.Compare(b.NextAt) })
	for _, r := range due[:min(max(limit, 0), len(due))] {
		if l.leased[r.no] {
			continue
		}
		if r.Attempts > 0 {
			got.Repeats++
		}
		if err := l.take(r); err != nil {
			return got, err
		}
	}
	got.Client, got.Rows = may.Client, len(l.work)-before
	return got, nil
}

// due finds rows of one kind that are due in a client's turn, oldest due first, without rows of
// accounts on hold.
func (l *leasing) due(kind, client string, at time.Time, limit int) (found []row, err error) {
	if found, err = l.dueOwn(kind, client, at, limit); err != nil || limit <= 0 || !l.sharing[client] {
		return found, err
	}
	more, err := l.dueTurns(kind, client, at, limit)
	if err != nil || len(more) == 0 {
		return found, err
	}
	found = append(found, more...)
	slices.SortStableFunc(found, func(a, b row) int { return a.NextAt.Compare(b.NextAt) })
	return found[:min(len(found), limit)], nil
}

// dueOwn finds the rows of which the client is the first.
func (l *leasing) dueOwn(kind, client string, at time.Time, limit int) (found []row, err error) {
	if limit <= 0 {
		return nil, nil
	}
	var failed error
	aside := 0
	err = query(l.conn, "SELECT "+workColumns+` FROM work
		WHERE chain = ? AND client = ? AND phase = 'open' AND parked = 0 AND held_since IS NULL AND `+kind+` ORDER BY due`,
		func(s *sqlite.Stmt) bool {
			r := scanRow(s)
			var held bool
			if held, failed = l.onHold(r.Account); held {
				l.aside[r.no] = true
				aside++
			} else {
				found = append(found, r)
			}
			return failed == nil && len(found) < limit && aside < asideMax
		}, int64(l.chain), client, micros(at))
	if err == nil {
		err = failed
	}
	return found, err
}

func (l *leasing) onHold(a tx.Account) (held bool, err error) {
	if held, met := l.held[a]; met {
		return held, nil
	}
	err = query(l.conn, "SELECT 1 FROM holds WHERE account = ?", func(*sqlite.Stmt) bool {
		held = true
		return false
	}, a[:])
	l.held[a] = held
	return held, err
}

// take leases a row. If its due time is in the future because the clock was set back, it
// becomes now: otherwise the lease would not hide the row.
func (l *leasing) take(r row) error {
	l.work, l.leased[r.no] = append(l.work, r.Work), true
	if r.turn != 0 {
		return l.takeTurn(r)
	}
	return exec(l.conn, "UPDATE work SET holder = ?, lease_until = ?, held_since = NULL, next_at = min(next_at, ?) WHERE no = ?",
		l.holder, micros(l.now.Add(l.ttl)), micros(l.now), r.no)
}

// hold is an account whose rows are set aside.
type hold struct {
	account tx.Account
	since   time.Time
	grants  int
}

// probe leases rows of a client's accounts whose hold has expired.
func (l *leasing) probe(client string, limit int) error {
	if limit <= 0 {
		return nil
	}
	most := len(l.work) + limit
	var holds []hold
	err := query(l.conn, `SELECT account, since, grants FROM holds
		WHERE chain = ? AND client = ? AND (until <= ? OR until > ?) ORDER BY until LIMIT ?`,
		func(s *sqlite.Stmt) bool {
			h := hold{since: time.UnixMicro(s.ColumnInt64(1)).UTC(), grants: s.ColumnInt(2)}
			s.ColumnBytes(0, h.account[:])
			holds = append(holds, h)
			return true
		}, int64(l.chain), client, micros(l.now), micros(l.beyond), int64(limit))
	for _, h := range holds {
		if err == nil && len(l.work) < most {
			err = l.release(h, most-len(l.work))
		}
	}
	return err
}

// release leases rows of one account. A hold without rows ends.
func (l *leasing) release(h hold, limit int) error {
	var found []row
	n := min(max(h.grants, 1), limit)
	err := query(l.conn, "SELECT "+workColumns+` FROM work
		WHERE account = ? AND held_since IS NOT NULL AND parked = 0 AND due <= ? ORDER BY attempts, due, nonce LIMIT ?`,
		func(s *sqlite.Stmt) bool {
			found = append(found, scanRow(s))
			return true
		}, h.account[:], micros(l.now), int64(n))
	if err == nil {
		found, err = l.heldTurns(found, h.account, n)
	}
	if err != nil {
		return err
	}
	for _, r := range found {
		if l.leased[r.no] {
			continue
		}
		r.HeldSince = h.since
		if err := l.take(r); err != nil {
			return err
		}
	}
	if len(found) == 0 {
		err := exec(l.conn, `DELETE FROM holds WHERE account = ?1
			AND NOT EXISTS (SELECT 1 FROM work WHERE account = ?1 AND held_since IS NOT NULL)
			AND NOT EXISTS (SELECT 1 FROM work_owners WHERE account = ?1 AND held_since IS NOT NULL)`, h.account[:])
		if err != nil || l.conn.Changes() > 0 {
			return err
		}
	}
	until, left := l.now.Add(l.ttl), 0
	if len(found) == n && h.grants > n { // the next Lease may release more
		until, left = l.now, h.grants-n
	}
	return exec(l.conn, "UPDATE holds SET until = ?2, grants = ?3 WHERE account = ?1", h.account[:], micros(until), int64(left))
}

// Done ends leases and stores the results of their attempts.
func (w *Work) Done(ctx context.Context, holder string, done []tx.Done) error {
	_, err := write(ctx, w.file, "report work", func(conn *sqlite.Conn) (struct{}, error) {
		now := w.now()
		for _, d := range done {
			var heldSince any
			if d.Standing == tx.Unable && d.Account != (tx.Account{}) {
				heldSince = micros(now)
			}
			// The first client's due time and hold change by what holds for it too.
			err := exec(conn, `UPDATE work SET holder = NULL, lease_until = NULL,
					attempts = max(attempts, ?4),
					next_at = CASE WHEN ?12 OR account = ?13 OR shared IS NOT 1 THEN ?5 ELSE next_at END,
					sent_at = coalesce(?6, sent_at), note = ?7, wait_nonce = ?8,
					wait_since = CASE WHEN ?8 IS NULL THEN NULL ELSE coalesce(wait_since, ?9) END,
					seen = CASE WHEN ?8 IS NULL THEN NULL ELSE coalesce(seen, ?10) END,
					held_since = CASE WHEN account = ?13 OR shared IS NOT 1 THEN ?11 ELSE held_since END
				WHERE chain = ?1 AND hash = ?2 AND phase = 'open' AND (holder = ?3 OR holder IS NULL)`,
				int64(d.Chain), d.Hash[:], holder, int64(d.Attempts), micros(d.NextAt), microsOrNull(d.SentAt), d.Note,
				orNull(d.WaitNonce), micros(now), w.nextTurn(now), heldSince, bit(forAll(d)), d.Account[:])
			if err == nil && conn.Changes() > 0 {
				err = doneTurns(conn, d, heldSince)
			}
			if err != nil {
				return struct{}{}, err
			}
			if err := noteStanding(conn, now, d); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	return err
}

// grantsMax bounds how many rows of an account are released at once.
const grantsMax = 1 << 20

// noteStanding applies a report's statement about its account.
func noteStanding(conn *sqlite.Conn, now time.Time, d tx.Done) error {
	switch {
	case d.Account == (tx.Account{}):
		return nil
	case d.Standing == tx.Unable:
		return exec(conn, `INSERT INTO holds (account, chain, since, until, grants, client)
			VALUES (?1, ?2, ?3, ?4, 0, coalesce(
				(SELECT client FROM work_owners WHERE chain = ?2 AND hash = ?5 AND account = ?1 LIMIT 1),
				(SELECT client FROM work WHERE chain = ?2 AND hash = ?5), ''))
			ON CONFLICT (account) DO UPDATE SET until = ?4, grants = 0`,
			d.Account[:], int64(d.Chain), micros(now), micros(d.NextAt), d.Hash[:])
	case d.Standing == tx.Able:
		return exec(conn, "UPDATE holds SET since = ?2, until = min(until, ?2), grants = min(grants + 2, ?3) WHERE account = ?1",
			d.Account[:], micros(now), int64(grantsMax))
	case d.Standing == tx.Unclear, d.Standing == tx.Unasked:
		again := d.NextAt
		if d.Standing == tx.Unasked {
			again = now
		}
		return exec(conn, "UPDATE holds SET until = min(until, ?2) WHERE account = ?1", d.Account[:], micros(again))
	}
	return nil
}
