package embedded

import (
	"context"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Apply makes changes and moves the reader's checkpoint, together.
func (w *Work) Apply(ctx context.Context, reader string, from, to event.Position, changes []tx.Change) error {
	_, err := write(ctx, w.file, "apply to the queue", func(conn *sqlite.Conn) (struct{}, error) {
		if err := moveCheckpoint(conn, reader, from, to); err != nil {
			return struct{}{}, err
		}
		now := w.now()
		a := applying{conn: conn, now: now, beyond: w.beyond(now), window: w.window, before: map[chain.Sequence]edge{}}
		for _, c := range changes {
			if err := a.apply(c); err != nil {
				return struct{}{}, fmt.Errorf("%s: %w", c.Hash, err)
			}
		}
		return struct{}{}, a.park()
	})
	return err
}

// applying is one Apply under way.
type applying struct {
	conn   *sqlite.Conn
	now    time.Time
	beyond time.Time // nothing is due that was told its time by this clock
	window int
	before map[chain.Sequence]edge // of the sequences touched, before the first change
}

func (a *applying) apply(c tx.Change) error {
	if c.Open != nil {
		return a.open(c)
	}
	r, found, err := a.find(c.Chain, c.Hash)
	if err != nil || !found {
		return err
	}
	switch {
	case c.Attempt != nil:
		return exec(a.conn, `UPDATE work SET attempts = ?2, next_at = ?3, sent_at = ?4, note = ?5
			WHERE no = ?1 AND attempts < ?2`,
			r.no, int64(c.Attempt.Number), micros(c.Attempt.NextAt), microsOrNull(c.Attempt.At), c.Attempt.Note)
	case c.Announce != nil:
		return a.end(r, tx.Announced, *c.Announce)
	case c.Seal != nil:
		return a.end(r, tx.Sealed, *c.Seal)
	case c.Reopen != nil:
		return a.turn(r, c.Reopen.To, tx.Verdict{}, c.Reopen.Due(r.Work))
	case c.Watch:
		return a.turn(r, tx.Watched, tx.Verdict{}, r.NextAt)
	case c.Close:
		if err := a.touch(r.Sequence()); err != nil {
			return err
		}
		if err := exec(a.conn, "DELETE FROM work WHERE no = ?", r.no); err != nil {
			return err
		}
		return a.wake(r.Sequence())
	}
	panic(fmt.Sprintf("embedded: a change of nothing to %s", c.Hash))
}

func (a *applying) find(id chain.ID, hash chain.Hash) (r row, found bool, err error) {
	err = query(a.conn, "SELECT "+workColumns+" FROM work WHERE chain = ? AND hash = ?", func(s *sqlite.Stmt) bool {
		r, found = scanRow(s), true
		return false
	}, int64(id), hash[:])
	return r, found, err
}

func (a *applying) open(c tx.Change) error {
	w := *c.Open
	w.Chain, w.Hash = c.Chain, c.Hash
	if w.EligibleAt <= uint64(max(a.now.Unix(), 0)) && w.NextAt.After(a.beyond) {
		w.NextAt = a.now // it was there by a clock that has been set back since
	}
	if err := a.touch(w.Sequence()); err != nil {
		return err
	}
	var number, blockHash any
	if !w.Block.IsZero() {
		number, blockHash = ordered(w.Block.Number), w.Block.Hash[:]
	}
	return exec(a.conn, `INSERT INTO work (chain, hash, sender, nonce_key, nonce, eligible_at, expires_at, phase, verdict,
			block_number, block_hash, next_at, attempts, note, sent_at, parked, wait_nonce, wait_since, account)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		int64(w.Chain), w.Hash[:], w.Sender[:], w.NonceKey[:], ordered(w.Nonce), ordered(w.EligibleAt), orNull(w.ExpiresAt),
		string(w.Phase), string(w.Verdict), number, blockHash, micros(w.NextAt), int64(w.Attempts), w.Note,
		microsOrNull(w.SentAt), a.parked(w.Sequence(), w.Phase, w.Nonce), orNull(w.WaitNonce), microsOrNull(w.WaitSince),
		w.Account[:])
}

// end gives a row a verdict, and wakes its followers: the nonce is used.
func (a *applying) end(r row, phase tx.Phase, v tx.Verdict) error {
	if r.Phase == phase && r.Verdict == v.Status && r.Block.Number == v.Block.Number && r.Block.Hash == v.Block.Hash {
		return nil
	}
	if err := a.turn(r, phase, v, r.NextAt); err != nil {
		return err
	}
	return a.wake(r.Sequence())
}

// turn puts a row into a phase. What belongs to an open row ends with it: its
// lease, its waiting, and that it is set aside.
func (a *applying) turn(r row, phase tx.Phase, v tx.Verdict, nextAt time.Time) error {
	if err := a.touch(r.Sequence()); err != nil {
		return err
	}
	var number, blockHash any
	if !v.Block.IsZero() {
		number, blockHash = ordered(v.Block.Number), v.Block.Hash[:]
	}
	return exec(a.conn, `UPDATE work SET phase = ?, verdict = ?, block_number = ?, block_hash = ?, next_at = ?, parked = ?,
			holder = NULL, lease_until = NULL, wait_nonce = NULL, wait_since = NULL, seen = NULL, held_since = NULL
		WHERE no = ?`,
		string(phase), string(v.Status), number, blockHash, micros(nextAt), a.parked(r.Sequence(), phase, r.Nonce), r.no)
}

// wake makes due what waits for a nonce in a sequence.
func (a *applying) wake(s chain.Sequence) error {
	if s.Key.IsExpiring() { // which is no sequence
		return nil
	}
	return exec(a.conn, `UPDATE work SET next_at = ?4
		WHERE chain = ?1 AND sender = ?2 AND nonce_key = ?3 AND wait_nonce IS NOT NULL AND next_at > ?4`,
		int64(s.Chain), s.Sender[:], s.Key[:], micros(a.now))
}

// edge is the highest nonce within a sequence's window: of its open rows, the
// nonce of the one in the window's last place. Rows with a higher one are parked.
// Without a full window there is no edge.
type edge struct {
	nonce uint64
	full  bool
}

func (e edge) parks(nonce uint64) bool { return e.full && nonce > e.nonce }

func (a *applying) edge(s chain.Sequence) (e edge, err error) {
	err = query(a.conn, `SELECT nonce FROM work WHERE chain = ? AND sender = ? AND nonce_key = ? AND phase = 'open'
		ORDER BY nonce LIMIT 1 OFFSET ?`, func(q *sqlite.Stmt) bool {
		e = edge{unordered(q.ColumnInt64(0)), true}
		return false
	}, int64(s.Chain), s.Sender[:], s.Key[:], int64(a.window-1))
	return e, err
}

// touch remembers where a sequence's edge was before its first change. The
// expiring key makes no sequence.
func (a *applying) touch(s chain.Sequence) error {
	if _, known := a.before[s]; known || s.Key.IsExpiring() {
		return nil
	}
	e, err := a.edge(s)
	a.before[s] = e
	return err
}

// parked is what a changed row starts with: right by the edge as it was.
func (a *applying) parked(s chain.Sequence, phase tx.Phase, nonce uint64) int64 {
	if phase == tx.Open && a.before[s].parks(nonce) {
		return 1
	}
	return 0
}

// park corrects the rows between the old edges and the new ones. Below both edges
// and above both, what is parked is the same by either.
func (a *applying) park() error {
	for s, before := range a.before {
		after, err := a.edge(s)
		if err != nil {
			return err
		}
		if after == before {
			continue
		}
		low, high, parked := before, after, int64(0) // the window has moved up
		if !before.full || after.full && after.nonce < before.nonce {
			low, high, parked = after, before, 1
		}
		top := uint64(1<<64 - 1)
		if high.full {
			top = high.nonce
		}
		err = exec(a.conn, `UPDATE work SET parked = ?6
			WHERE chain = ?1 AND sender = ?2 AND nonce_key = ?3 AND phase = 'open' AND nonce > ?4 AND nonce <= ?5 AND parked <> ?6`,
			int64(s.Chain), s.Sender[:], s.Key[:], ordered(low.nonce), ordered(top), parked)
		if err != nil {
			return err
		}
	}
	return nil
}

// nextTurn numbers the moments at which somebody looked at a waiting sequence:
// by the clock, so that the numbers go on after a restart, but never twice.
func (w *Work) nextTurn(now time.Time) int64 {
	w.turn = max(w.turn+1, now.UnixMicro())
	return w.turn
}

// Find returns the rows with these hashes.
func (w *Work) Find(ctx context.Context, id chain.ID, hashes []chain.Hash) ([]tx.Work, error) {
	return w.read(ctx, func(conn *sqlite.Conn, into *[]tx.Work) error {
		for _, hash := range hashes {
			if err := rows(conn, into, "WHERE chain = ? AND hash = ?", int64(id), hash[:]); err != nil {
				return err
			}
		}
		now := w.now()
		for i := range *into {
			if err := tellWait(conn, &(*into)[i], now); err != nil {
				return err
			}
		}
		return nil
	})
}

// tellWait says of a parked row that is due what it waits for: what the first of its
// sequence waits for, or is.
func tellWait(conn *sqlite.Conn, r *tx.Work, now time.Time) error {
	if !r.Parked || r.WaitNonce != 0 || r.NextAt.After(now) {
		return nil
	}
	s := r.Sequence()
	return query(conn, `SELECT nonce, wait_nonce FROM work
		WHERE chain = ? AND sender = ? AND nonce_key = ? AND phase = 'open' ORDER BY nonce LIMIT 1`,
		func(q *sqlite.Stmt) bool {
			r.WaitSince, r.WaitNonce = r.NextAt, unordered(q.ColumnInt64(0))+1
			if !q.ColumnIsNull(1) {
				r.WaitNonce = unordered(q.ColumnInt64(1))
			}
			return false
		}, int64(s.Chain), s.Sender[:], s.Key[:])
}
