package embedded

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Apply makes changes and moves the reader's checkpoint, in one transaction.
func (w *Work) Apply(ctx context.Context, reader string, from, to eventlog.Position, changes []tx.Change) error {
	_, err := write(ctx, w.file, "apply to the queue", func(conn *sqlite.Conn) (struct{}, error) {
		if err := moveCheckpoint(conn, reader, from, to); err != nil {
			return struct{}{}, err
		}
		a := applying{conn: conn, now: w.now(), window: w.window}
		return struct{}{}, a.apply(changes, w.ahead())
	})
	return err
}

// applying is the state of one call of Apply.
type applying struct {
	conn   *sqlite.Conn
	now    time.Time
	window int
}

// apply folds changes and writes the resulting rows.
func (a *applying) apply(changes []tx.Change, beyond time.Duration) error {
	f := tx.NewFold(tx.Clock{Now: a.now, Beyond: beyond})
	for _, ref := range tx.Refs(changes) {
		if err := a.load(f, ref); err != nil {
			return fmt.Errorf("%s: %w", ref.Hash, err)
		}
	}
	for _, c := range changes {
		f.Apply(c)
	}
	folded := f.Folded()
	before, err := a.edges(folded.Shifted)
	if err != nil {
		return err
	}
	for _, s := range folded.Woken { // before the fold's rows are written, see [tx.Folded]
		if err := a.wake(s); err != nil {
			return err
		}
	}
	if err := a.write(folded, before); err != nil {
		return err
	}
	return a.park(before)
}

// load adds a row to the fold, if it exists.
func (a *applying) load(f *tx.Fold, ref tx.Ref) error {
	return query(a.conn, "SELECT "+workColumns+", holder, lease_until FROM work WHERE chain = ? AND hash = ?", func(s *sqlite.Stmt) bool {
		f.Load(tx.Row{Work: scanRow(s).Work, Holder: s.ColumnText(leaseColumn), Until: timeAt(s, leaseColumn+1)})
		return false
	}, int64(ref.Chain), ref.Hash[:])
}

// write writes the rows of a fold, parked by the edges before the change.
func (a *applying) write(f tx.Folded, before map[chain.Sequence]tx.Edge) error {
	for _, r := range f.Drop {
		if err := exec(a.conn, "DELETE FROM work WHERE chain = ? AND hash = ?", int64(r.Chain), r.Hash[:]); err != nil {
			return err
		}
	}
	if err := a.join(f.Joined); err != nil {
		return err
	}
	for _, r := range f.Insert {
		if err := a.insert(r, before); err != nil {
			return fmt.Errorf("%s: %w", r.Hash, err)
		}
	}
	for _, r := range f.Update {
		if err := a.update(r, before); err != nil {
			return fmt.Errorf("%s: %w", r.Hash, err)
		}
	}
	if err := a.joined(f); err != nil {
		return err
	}
	for client, more := range f.Used {
		err := exec(a.conn, `INSERT INTO work_clients (client, waiting, bytes) VALUES (?1, ?2, ?3)
			ON CONFLICT (client) DO UPDATE SET waiting = waiting + ?2, bytes = bytes + ?3`, client, more.Transactions, more.Bytes)
		if err != nil {
			return fmt.Errorf("client %q: %w", client, err)
		}
	}
	return nil
}

func (a *applying) insert(r tx.Row, before map[chain.Sequence]tx.Edge) error {
	number, blockHash := blockOrNull(r.Block)
	s := r.Sequence()
	namedSender, namedKey := namedOrNull(r.Work)
	return exec(a.conn, `INSERT INTO work (chain, hash, sender, nonce_key, nonce, eligible_at, expires_at, phase, verdict,
			block_number, block_hash, next_at, attempts, note, sent_at, parked, wait_nonce, wait_since, account,
			client, bytes, claimed, named_sender, named_key, shared)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		int64(r.Chain), r.Hash[:], s.Sender[:], s.Key[:], ordered(r.Nonce), ordered(r.EligibleAt), orNull(r.ExpiresAt),
		string(r.Phase), string(r.Verdict), number, blockHash, micros(r.NextAt), int64(r.Attempts), r.Note,
		microsOrNull(r.SentAt), parked(r, before), orNull(r.WaitNonce), microsOrNull(r.WaitSince), r.Account[:],
		r.Client, int64(r.Bytes), bit(r.Claimed), namedSender, namedKey, bit(r.Shared))
}

func (a *applying) update(r tx.Row, before map[chain.Sequence]tx.Edge) error {
	number, blockHash := blockOrNull(r.Block)
	s := r.Sequence()
	namedSender, namedKey := namedOrNull(r.Work)
	return exec(a.conn, `UPDATE work SET phase = ?3, verdict = ?4, block_number = ?5, block_hash = ?6, next_at = ?7, parked = ?8,
			attempts = ?9, note = ?10, sent_at = ?11, holder = ?12, lease_until = ?13, held_since = ?14,
			wait_nonce = ?15, wait_since = ?16, seen = CASE WHEN ?15 IS NULL THEN NULL ELSE seen END,
			sender = ?17, nonce_key = ?18, claimed = ?19, named_sender = ?20, named_key = ?21, client = ?22, bytes = ?23
		WHERE chain = ?1 AND hash = ?2`,
		int64(r.Chain), r.Hash[:], string(r.Phase), string(r.Verdict), number, blockHash, micros(r.NextAt), parked(r, before),
		int64(r.Attempts), r.Note, microsOrNull(r.SentAt), textOrNull(r.Holder), microsOrNull(r.Until), microsOrNull(r.HeldSince),
		orNull(r.WaitNonce), microsOrNull(r.WaitSince), s.Sender[:], s.Key[:], bit(r.Claimed), namedSender, namedKey,
		r.Client, int64(r.Bytes))
}

// namedOrNull returns the sequence in a row's bytes, if the row's own sequence is another.
func namedOrNull(w tx.Work) (sender, key any) {
	if !w.Apart() {
		return nil, nil
	}
	return w.Sender[:], w.NonceKey[:]
}

func blockOrNull(b chain.Block) (number, hash any) {
	if b.IsZero() {
		return nil, nil
	}
	return ordered(b.Number), b.Hash[:]
}

func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// wake makes rows due that wait for a nonce in a sequence.
func (a *applying) wake(s chain.Sequence) error {
	return exec(a.conn, `UPDATE work SET next_at = ?4
		WHERE chain = ?1 AND sender = ?2 AND nonce_key = ?3 AND wait_nonce IS NOT NULL AND next_at > ?4 AND phase = 'open'`,
		int64(s.Chain), s.Sender[:], s.Key[:], micros(a.now))
}

// edges finds the edges of sequences' windows.
func (a *applying) edges(of []chain.Sequence) (map[chain.Sequence]tx.Edge, error) {
	edges := make(map[chain.Sequence]tx.Edge, len(of))
	for _, s := range of {
		var e tx.Edge
		err := query(a.conn, `SELECT nonce FROM work WHERE chain = ? AND sender = ? AND nonce_key = ? AND phase = 'open'
			ORDER BY nonce LIMIT 1 OFFSET ?`, func(q *sqlite.Stmt) bool {
			e = tx.Edge{Nonce: unordered(q.ColumnInt64(0)), Full: true}
			return false
		}, int64(s.Chain), s.Sender[:], s.Key[:], int64(a.window-1))
		if err != nil {
			return nil, err
		}
		edges[s] = e
	}
	return edges, nil
}

// parked is the parked value of a changed row, by the edge before the change. A row whose
// sequence did not move keeps its value.
func parked(r tx.Row, before map[chain.Sequence]tx.Edge) int64 {
	is := r.Parked
	if edge, moved := before[r.Sequence()]; moved {
		is = r.Phase == tx.Open && edge.Parks(r.Nonce)
	}
	return bit(is)
}

func bit(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// park corrects the rows between the old edges and the new ones. Below both edges, and above
// both, the parked value is the same by either.
func (a *applying) park(before map[chain.Sequence]tx.Edge) error {
	after, err := a.edges(slices.Collect(maps.Keys(before)))
	if err != nil {
		return err
	}
	for s, before := range before {
		after := after[s]
		if after == before {
			continue
		}
		low, high, parked := before, after, int64(0) // the window has moved up
		if !before.Full || after.Full && after.Nonce < before.Nonce {
			low, high, parked = after, before, 1
		}
		top := uint64(1<<64 - 1)
		if high.Full {
			top = high.Nonce
		}
		err = exec(a.conn, `UPDATE work SET parked = ?6
			WHERE chain = ?1 AND sender = ?2 AND nonce_key = ?3 AND phase = 'open' AND nonce > ?4 AND nonce <= ?5 AND parked <> ?6`,
			int64(s.Chain), s.Sender[:], s.Key[:], ordered(low.Nonce), ordered(top), parked)
		if err != nil {
			return err
		}
	}
	return nil
}

// nextTurn numbers the checks of waiting sequences. The numbers come from the clock, so that
// they continue after a restart, but are never used twice.
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
			err := tellOwners(conn, &(*into)[i])
			if err == nil {
				err = tellWait(conn, &(*into)[i], now)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// tellWait sets the WaitNonce of a parked row that is due: the nonce for which the first row of
// its sequence waits, or the one after that row's own.
func tellWait(conn *sqlite.Conn, r *tx.Work, now time.Time) error {
	if !r.Parked || r.WaitNonce != 0 || r.NextAt.After(now) || r.Apart() {
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

// Unfilled lists rows that were written before the queue stored clients, or further owners, after
// one reference, in order.
func (w *Work) Unfilled(ctx context.Context, after tx.Ref, limit int) (refs []tx.Ref, err error) {
	err = w.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		return query(conn, `SELECT chain, hash FROM work INDEXED BY work_unfilled WHERE bytes = 0 AND (chain, hash) > (?1, ?2)
			UNION SELECT chain, hash FROM work INDEXED BY work_unknown WHERE shared IS NULL AND phase = 'open' AND (chain, hash) > (?1, ?2)
			ORDER BY chain, hash LIMIT ?3`,
			func(row *sqlite.Stmt) bool {
				ref := tx.Ref{Chain: chain.ID(row.ColumnInt64(0))}
				row.ColumnBytes(1, ref.Hash[:])
				refs = append(refs, ref)
				return true
			}, int64(after.Chain), after.Hash[:], int64(limit))
	})
	return refs, err
}
