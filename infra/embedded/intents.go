package embedded

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// Intents is the work queue of intents.
type Intents struct{ work *Work }

// Intents is the work queue of intents.
func (d *DB) Intents() *Intents { return &Intents{d.work} }

// Apply makes changes, in order, and moves the reader's checkpoint, together;
// event.ErrMoved if the checkpoint is not at from.
func (s *Intents) Apply(ctx context.Context, reader string, from, to event.Position, changes []intent.Change) error {
	_, err := write(ctx, s.work.file, "apply to the queue of intents", func(conn *sqlite.Conn) (struct{}, error) {
		if err := moveCheckpoint(conn, reader, from, to); err != nil {
			return struct{}{}, err
		}
		for _, c := range changes {
			if err := applyIntent(conn, c); err != nil {
				return struct{}{}, fmt.Errorf("%s: %w", c.ID, err)
			}
		}
		return struct{}{}, nil
	})
	return err
}

func applyIntent(conn *sqlite.Conn, c intent.Change) error {
	switch {
	case c.Open != nil:
		return openIntent(conn, *c.Open)
	case c.Place != nil:
		return exec(conn, "UPDATE intents SET lane = ?2, holder = NULL, claimed_until = NULL WHERE intent = ?1", c.ID[:], laneOf(c.Place.Signer, c.Place.NonceKey))
	case c.Requeue:
		return exec(conn, "UPDATE intents SET lane = NULL WHERE intent = ? AND holder IS NULL", c.ID[:])
	case c.Close:
		var row intent.Row
		err := query(conn, "SELECT chain, in_row FROM intents WHERE intent = ?", func(s *sqlite.Stmt) bool {
			row = intent.ParseRow(chain.ID(s.ColumnInt64(0)), s.ColumnText(1))
			return false
		}, c.ID[:])
		if err == nil {
			err = exec(conn, "DELETE FROM intents WHERE intent = ?", c.ID[:])
		}
		if err != nil {
			return err
		}
		return moveHead(conn, row)
	}
	panic(fmt.Sprintf("embedded: a change of nothing to %s", c.ID))
}

func openIntent(conn *sqlite.Conn, w intent.Waiting) error {
	var row any
	if name := w.Row.Name(); name != "" {
		row = name
	}
	err := exec(conn, `INSERT INTO intents (intent, pos, chain, wants, nonce_key, in_row, deadline, head)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?6 IS NULL) ON CONFLICT DO NOTHING`,
		w.ID[:], int64(w.Position), int64(w.Chain), w.From.Name(), keyColumn(w.Key), row, int64(w.Deadline))
	if err != nil {
		return err
	}
	return moveHead(conn, w.Row)
}

// moveHead marks the first of a row that is in the queue.
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
	return exec(conn, "UPDATE intents SET head = 1 WHERE intent = ?", first)
}

// laneOf names a lane among those of its chain.
func laneOf(signer chain.Address, key chain.NonceKey) []byte { return slices.Concat(signer[:], key[:]) }

// keyColumn is empty for any key.
func keyColumn(key *chain.NonceKey) []byte {
	if key == nil {
		return []byte{}
	}
	return key[:]
}

// keyOf is the way back.
func keyOf(column []byte) *chain.NonceKey {
	if len(column) == 0 {
		return nil
	}
	key := chain.NonceKey(column)
	return &key
}

// Claim gives what waits, is claimed by nobody and fits the lane to a holder, in the
// order of positions, at most c.Limit. Of a row, an intent is given only if each earlier
// one that is in the queue is in this lane: has a nonce there, or was claimed for it by
// this holder, now or before; and none, earlier or later, is in another.
func (s *Intents) Claim(ctx context.Context, c intent.Claim) ([]intent.Claimed, error) {
	return write(ctx, s.work.file, "claim intents", func(conn *sqlite.Conn) ([]intent.Claimed, error) {
		l := &intentClaim{Claim: c, conn: conn, now: s.work.now(), lane: laneOf(c.Lane.Sender, c.Lane.Key), rows: map[string]bool{}}
		return l.run()
	})
}

// intentClaim is one Claim under way.
type intentClaim struct {
	intent.Claim
	conn *sqlite.Conn
	now  time.Time
	lane []byte

	rows  map[string]bool // looked at
	found []intent.Claimed
}

func (l *intentClaim) run() ([]intent.Claimed, error) {
	// One that runs for longer than any is made for was made before the clock was set
	// back, and nobody may wait for it.
	err := exec(l.conn, `UPDATE intents SET lane = NULL, holder = NULL, claimed_until = NULL
		WHERE holder IS NOT NULL AND (claimed_until <= ? OR claimed_until > ?)`, micros(l.now), micros(l.now.Add(l.TTL+clockSlack)))
	if err != nil {
		return nil, err
	}
	heads, err := l.heads()
	if err != nil {
		return nil, err
	}
	for _, h := range heads {
		if h.Row.Order == "" {
			l.found = append(l.found, h)
		} else if err := l.follow(h.Row.Name()); err != nil {
			return nil, err
		}
	}
	mine, err := l.names("SELECT DISTINCT in_row FROM intents INDEXED BY intents_lanes WHERE chain = ? AND lane = ? AND in_row IS NOT NULL", int64(l.Lane.Chain), l.lane)
	if err != nil {
		return nil, err
	}
	for _, row := range mine {
		if err := l.follow(row); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(l.found, byPosition)
	l.found = l.found[:min(l.Limit, len(l.found))]
	for _, c := range l.found {
		err := exec(l.conn, "UPDATE intents SET lane = ?, holder = ?, claimed_until = ? WHERE intent = ?", l.lane, l.Holder, micros(l.now.Add(l.TTL)), c.ID[:])
		if err != nil {
			return nil, err
		}
	}
	return l.found, nil
}

func byPosition(a, b intent.Claimed) int { return cmp.Compare(a.Position, b.Position) }

// elsewhere holds of a row of which something is in another lane, or another holder's.
const elsewhere = `EXISTS (SELECT 1 FROM intents o INDEXED BY intents_pinned WHERE o.chain = ?1 AND o.in_row = i.in_row AND o.lane IS NOT NULL AND (o.lane <> ?2 OR o.holder <> ?3))`

// heads are what waits and fits, and follows nothing: the first of them all.
func (l *intentClaim) heads() (heads []intent.Claimed, err error) {
	for _, wants := range l.Names() {
		for _, key := range [][]byte{{}, l.Lane.Key[:]} {
			some, err := l.ask("intents_heads", `chain = ?1 AND wants = ?4 AND nonce_key = ?5 AND head = 1 AND lane IS NULL AND pos > ?7 AND (in_row IS NULL OR NOT `+elsewhere+`)
				ORDER BY pos LIMIT ?6`, int64(l.Lane.Chain), l.lane, l.Holder, wants, key, int64(l.Limit), int64(l.After))
			if err != nil {
				return nil, err
			}
			heads = append(heads, some...)
		}
	}
	slices.SortFunc(heads, byPosition)
	return heads[:min(l.Limit, len(heads))], nil
}

// follow finds what of a row may be claimed: what waits, up to the first that does not
// fit. Of one of which anything is elsewhere, nothing may.
func (l *intentClaim) follow(row string) error {
	if l.rows[row] {
		return nil
	}
	l.rows[row] = true
	waiting, err := l.ask("intents_waiting", "chain = ?1 AND in_row = ?4 AND lane IS NULL AND NOT "+elsewhere+" ORDER BY pos LIMIT ?5",
		int64(l.Lane.Chain), l.lane, l.Holder, row, int64(l.Limit))
	if err != nil {
		return err
	}
	names := l.Names()
	for _, c := range waiting {
		if c.Position <= l.After || !slices.Contains(names, c.From.Name()) || c.Key != nil && *c.Key != l.Lane.Key {
			break
		}
		l.found = append(l.found, c)
	}
	return nil
}

// behind is what stands right before an intent in its row.
const behind = `CASE WHEN head = 0 THEN (SELECT b.intent FROM intents b INDEXED BY intents_row
	WHERE b.chain = i.chain AND b.in_row = i.in_row AND b.pos < i.pos ORDER BY b.pos DESC LIMIT 1) END`

// ask reads rows by an index: the planner, which knows nothing of the numbers, would
// rather look through all that is in a lane.
func (l *intentClaim) ask(index, where string, args ...any) (found []intent.Claimed, err error) {
	var bad error
	err = query(l.conn, "SELECT intent, pos, chain, wants, nonce_key, in_row, deadline, "+behind+" FROM intents i INDEXED BY "+index+" WHERE "+where, func(s *sqlite.Stmt) bool {
		var c intent.Claimed
		s.ColumnBytes(0, c.ID[:])
		s.ColumnBytes(7, c.Behind[:])
		c.Position, c.Chain, c.Deadline = event.Position(s.ColumnInt64(1)), chain.ID(s.ColumnInt64(2)), uint64(s.ColumnInt64(6))
		c.Key, c.Row = keyOf(columnBytes(s, 4)), intent.ParseRow(c.Chain, s.ColumnText(5))
		c.From, bad = intent.ParseFrom(s.ColumnText(3))
		found = append(found, c)
		return bad == nil
	}, args...)
	return found, cmp.Or(err, bad)
}

func (l *intentClaim) names(text string, args ...any) (names []string, err error) {
	err = query(l.conn, text, func(s *sqlite.Stmt) bool {
		names = append(names, s.ColumnText(0))
		return true
	}, args...)
	return names, err
}

// Return ends a holder's claims of these intents. What it has not claimed, or what does
// not wait any more, is left alone.
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

// Demand counts a chain's rows: those that wait by whom and under which key they want to
// be carried out, those that have a nonce by their lane.
func (s *Intents) Demand(ctx context.Context, id chain.ID) (found []intent.Demand, err error) {
	var bad error
	err = s.work.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		err := query(conn, "SELECT wants, nonce_key, count(*) FROM intents WHERE chain = ? AND (lane IS NULL OR holder IS NOT NULL) GROUP BY 1, 2", func(s *sqlite.Stmt) bool {
			d := intent.Demand{Key: keyOf(columnBytes(s, 1)), Waiting: s.ColumnInt(2)}
			d.From, bad = intent.ParseFrom(s.ColumnText(0))
			found = append(found, d)
			return bad == nil
		}, int64(id))
		if err = cmp.Or(err, bad); err != nil {
			return err
		}
		return query(conn, "SELECT lane, count(*) FROM intents WHERE chain = ? AND lane IS NOT NULL AND holder IS NULL GROUP BY 1", func(s *sqlite.Stmt) bool {
			lane := columnBytes(s, 0)
			signer, key := chain.Address(lane[:20]), chain.NonceKey(lane[20:])
			found = append(found, intent.Demand{From: intent.From{Signer: &signer}, Key: &key, Assigned: s.ColumnInt(1)})
			return true
		}, int64(id))
	})
	if err != nil {
		return nil, err
	}
	return intent.Sum(found), nil
}
