package embedded

import (
	"cmp"
	"context"
	"slices"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Intents is the work queue of intents.
type Intents struct{ work *Work }

// Intents is the work queue of intents in this directory.
func (d *DB) Intents() *Intents { return &Intents{d.work} }

// Apply makes changes in order and moves the reader's checkpoint, in one transaction. It
// returns eventlog.ErrMoved if the checkpoint is not at from.
func (s *Intents) Apply(ctx context.Context, reader string, from, to eventlog.Position, changes []intent.Change) error {
	_, err := write(ctx, s.work.file, "apply to the queue of intents", func(conn *sqlite.Conn) (struct{}, error) {
		if err := moveCheckpoint(conn, reader, from, to); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, foldIntents(conn, s.work.now().Unix(), changes)
	})
	return err
}

func foldIntents(conn *sqlite.Conn, now int64, changes []intent.Change) error {
	var stored []intent.Entry
	known := map[chain.IntentID]bool{}
	for _, c := range changes {
		if known[c.ID] {
			continue
		}
		known[c.ID] = true
		found, err := intents(conn, "intent = ?", c.ID[:])
		if err != nil {
			return err
		}
		stored = append(stored, found...)
	}
	f := intent.NewFold(stored)
	for _, c := range changes {
		f.Apply(c)
	}
	for _, r := range f.Rows() {
		if err := writeIntent(conn, now, r); err != nil {
			return err
		}
	}
	return nil
}

// writeIntent stores a changed intent.
func writeIntent(conn *sqlite.Conn, now int64, r intent.Folded) error {
	if r.Was != nil && (r.Is == nil || r.Opened) {
		if err := exec(conn, "DELETE FROM intents WHERE intent = ?", r.Was.ID[:]); err != nil {
			return err
		}
		if err := moveHead(conn, r.Was.Row); err != nil {
			return err
		}
	}
	switch {
	case r.Opened:
		return insertIntent(conn, now, *r.Is)
	case r.Moved: // changes never make a claim
		return exec(conn, "UPDATE intents SET lane = ?, holder = NULL, claimed_until = NULL WHERE intent = ?", laneColumn(r.Is.Lane), r.Is.ID[:])
	}
	return nil
}

func insertIntent(conn *sqlite.Conn, now int64, e intent.Entry) error {
	err := exec(conn, `INSERT INTO intents (intent, pos, chain, client, wants, nonce_key, in_row, deadline, head, lane, max_fee, size, not_before, asleep)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?7 IS NULL AND ?12 <= ?13, ?9, ?10, ?11, ?12, ?12 > ?13)`,
		e.ID[:], int64(e.Position), int64(e.Chain), e.Client, e.From.Name(), keyColumn(e.Key), textOrNull(e.Row.Name()), int64(e.Deadline), laneColumn(e.Lane),
		feeColumn(e.MaxFee), int64(e.Size), int64(e.NotBefore), now)
	if err != nil {
		return err
	}
	return moveHead(conn, e.Row)
}

// awaken wakes sleeping intents whose time has come.
func awaken(conn *sqlite.Conn, now int64) error {
	due, err := scanIntents(conn, "SELECT "+intentColumns+", NULL FROM intents INDEXED BY intents_asleep WHERE asleep = 1 AND not_before <= ? ORDER BY not_before LIMIT 0 + ?", now, int64(intent.AwakenMost))
	if err != nil {
		return err
	}
	for _, e := range due {
		if err := exec(conn, "UPDATE intents SET asleep = 0, head = in_row IS NULL WHERE intent = ?", e.ID[:]); err != nil {
			return err
		}
		if err := moveHead(conn, e.Row); err != nil {
			return err
		}
	}
	return nil
}

// moveHead marks the first queued intent of an ordering group as its head, unless it sleeps.
func moveHead(conn *sqlite.Conn, row intent.Row) error {
	name := row.Name()
	if name == "" {
		return nil
	}
	var first, marked []byte
	ask := func(index, what string, into *[]byte) error {
		return query(conn, "SELECT intent FROM intents INDEXED BY "+index+" WHERE chain = ? AND in_row = ? "+what+" ORDER BY pos LIMIT 1", func(s *sqlite.Stmt) bool {
			*into = columnBytes(s, 0)
			return false
		}, int64(row.Chain), name)
	}
	if err := ask("intents_row", "", &first); err != nil || first == nil {
		return err
	}
	if err := ask("intents_firsts", "AND head = 1", &marked); err != nil || slices.Equal(first, marked) {
		return err
	}
	if marked != nil {
		if err := exec(conn, "UPDATE intents SET head = 0 WHERE intent = ?", marked); err != nil {
			return err
		}
	}
	return exec(conn, "UPDATE intents SET head = 1 WHERE intent = ? AND asleep = 0", first)
}

// laneOf encodes a lane, unique within its chain.
func laneOf(s chain.Sequence) []byte { return slices.Concat(s.Sender[:], s.Key[:]) }

// laneColumn is NULL for no lane.
func laneColumn(s *chain.Sequence) any {
	if s == nil {
		return nil
	}
	return laneOf(*s)
}

// laneAt decodes a lane encoded by [laneOf]; nil for none.
func laneAt(on chain.ID, column []byte) *chain.Sequence {
	if len(column) == 0 {
		return nil
	}
	n := len(chain.Address{})
	return &chain.Sequence{Chain: on, Sender: chain.Address(column[:n]), Key: chain.NonceKey(column[n:])}
}

// keyColumn is empty for any key.
func keyColumn(key *chain.NonceKey) []byte {
	if key == nil {
		return []byte{}
	}
	return key[:]
}

// keyOf is the inverse of keyColumn.
func keyOf(column []byte) *chain.NonceKey {
	if len(column) == 0 {
		return nil
	}
	key := chain.NonceKey(column)
	return &key
}

// feeColumn is empty for no ceiling.
func feeColumn(a intent.Amount) string {
	if a.IsZero() {
		return ""
	}
	return a.String()
}

// feeOf is the inverse of feeColumn.
func feeOf(column string) (intent.Amount, error) {
	if column == "" {
		return intent.Amount{}, nil
	}
	return intent.ParseAmount(column)
}

// Return ends a holder's claims of these intents. Intents that it has not claimed, or that no
// longer wait, are not changed.
func (s *Intents) Return(ctx context.Context, holder string, ids []chain.IntentID) error {
	_, err := write(ctx, s.work.file, "return intents", func(conn *sqlite.Conn) (struct{}, error) {
		for _, id := range ids {
			err := exec(conn, "UPDATE intents SET lane = NULL, holder = NULL, claimed_until = NULL WHERE intent = ? AND holder = ?", id[:], holder)
			if err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	return err
}

// Demand counts a chain's intents by client. Waiting intents are counted by requested signer
// and nonce key, intents with a nonce by their lane.
func (s *Intents) Demand(ctx context.Context, id chain.ID) (found []intent.Demand, err error) {
	var bad error
	err = s.work.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		err := query(conn, `SELECT wants, nonce_key, client, count(*), min(pos) FROM intents
			WHERE chain = ? AND (lane IS NULL OR holder IS NOT NULL) AND (asleep = 0 OR not_before <= ?) GROUP BY 1, 2, 3`, func(s *sqlite.Stmt) bool {
			d := intent.Demand{Key: keyOf(columnBytes(s, 1)), Client: s.ColumnText(2), Waiting: s.ColumnInt(3), First: eventlog.Position(s.ColumnInt64(4))}
			d.From, bad = intent.ParseFrom(s.ColumnText(0))
			found = append(found, d)
			return bad == nil
		}, int64(id), s.work.now().Unix())
		if err = cmp.Or(err, bad); err != nil {
			return err
		}
		return query(conn, `SELECT lane, client, count(*), min(pos) FROM intents
			WHERE chain = ? AND lane IS NOT NULL AND holder IS NULL GROUP BY 1, 2`, func(s *sqlite.Stmt) bool {
			lane := laneAt(id, columnBytes(s, 0))
			found = append(found, intent.Demand{
				From: intent.From{Signer: &lane.Sender}, Key: &lane.Key, Client: s.ColumnText(1), Assigned: s.ColumnInt(2), First: eventlog.Position(s.ColumnInt64(3)),
			})
			return true
		}, int64(id))
	})
	if err != nil {
		return nil, err
	}
	return intent.Sum(found), nil
}

// Open counts a client's intents, up to most.
func (s *Intents) Open(ctx context.Context, client string, most int) (n int, err error) {
	err = s.work.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		return query(conn, "SELECT count(*) FROM (SELECT 1 FROM intents INDEXED BY intents_client WHERE client = ? LIMIT ?)", func(s *sqlite.Stmt) bool {
			n = s.ColumnInt(0)
			return false
		}, client, int64(most))
	})
	return n, err
}

// Ahead returns the nearest earlier intent of an ordering group that has no nonce, among the
// [intent.AheadMost] right before a position; zero if there is none.
func (s *Intents) Ahead(ctx context.Context, row intent.Row, before eventlog.Position) (id chain.IntentID, err error) {
	err = s.work.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		return query(conn, `SELECT intent, lane IS NULL OR holder IS NOT NULL FROM intents INDEXED BY intents_row
			WHERE chain = ? AND in_row = ? AND pos < ? ORDER BY pos DESC LIMIT 0 + ?`, func(s *sqlite.Stmt) bool {
			waits := s.ColumnBool(1)
			if waits {
				s.ColumnBytes(0, id[:])
			}
			return !waits
		}, int64(row.Chain), row.Name(), int64(before), int64(intent.AheadMost))
	})
	return id, err
}
