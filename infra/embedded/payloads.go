package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/payload"
)

// Payloads stores sealed payloads: rows in events.db, wrapped data keys in keys.db.
//
// A row names its key by a tag, because the two files are not written in one transaction. If
// one payload is sealed several times, each time with its own key, the first row stays, and
// only its own key may be stored with it.
type Payloads struct {
	rows  *file
	keys  *file
	now   func() time.Time
	crash func(point string)
}

func openPayloads(path string, c care, rows *file, o Options) (*Payloads, error) {
	keys, err := openFile(path, c, tables("keys"), keyReaders, hooks{})
	if err != nil {
		return nil, err
	}
	return &Payloads{rows: rows, keys: keys, now: o.Now, crash: o.Crash}, nil
}

// tag names a data key by its wrapped form.
func tag(s payload.Sealed) int64 {
	digest := sha256.Sum256(s.Wrapped)
	return int64(binary.BigEndian.Uint64(digest[:8]))
}

// Put stores rows. An existing row stays unchanged, and counts as kept now. Keys are written
// first: a key without a row is harmless, but a row without a key would look like a payload and
// be none.
func (p *Payloads) Put(ctx context.Context, rows []payload.Sealed) error {
	if len(rows) == 0 {
		return nil
	}
	if err := p.putKeys(ctx, rows); err != nil {
		return err
	}
	p.crash(keysKept)
	known, err := p.putRows(ctx, rows)
	if err != nil {
		return err
	}
	for _, row := range known {
		if err := p.reconcile(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

func (p *Payloads) putKeys(ctx context.Context, rows []payload.Sealed) error {
	err := p.keys.writer.do(ctx, &job{bytes: len(rows) * rowBytes, do: func(conn *sqlite.Conn) error {
		for _, row := range rows {
			slot, err := fillSlot(conn, row.Wrapped)
			if err != nil {
				return err
			}
			// The same seal again: its key is stored already.
			err = exec(conn, "INSERT INTO keys (chain, hash, tag, master, slot, size) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
				int64(row.Chain), row.Hash[:], tag(row), int64(row.KeyID), slot, int64(len(row.Wrapped)))
			if err == nil && conn.Changes() == 0 {
				err = clearSlot(conn, slot)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		return fmt.Errorf("keep %d data keys: %w", len(rows), err)
	}
	return nil
}

// putRows returns the rows that existed already.
func (p *Payloads) putRows(ctx context.Context, rows []payload.Sealed) ([]payload.Sealed, error) {
	answer := struct{ known []payload.Sealed }{}
	size := 0
	for _, row := range rows {
		size += len(row.Bytes) + rowBytes
	}
	err := p.rows.writer.do(ctx, &job{bytes: size, do: func(conn *sqlite.Conn) error {
		answer.known = nil
		now := p.now().UnixMicro()
		for _, row := range rows {
			_, found, err := tagOf(conn, row.Ref)
			if err == nil && !found {
				err = insertPayload(conn, row, now)
			}
			if err != nil {
				return err
			}
			if found {
				answer.known = append(answer.known, row)
				if err := exec(conn, "UPDATE payloads SET at = ? WHERE chain = ? AND hash = ?", now, int64(row.Chain), row.Hash[:]); err != nil {
					return err
				}
			}
		}
		return nil
	}})
	if err != nil {
		return nil, fmt.Errorf("keep %d payloads: %w", len(rows), err)
	}
	return answer.known, nil
}

func insertPayload(conn *sqlite.Conn, row payload.Sealed, now int64) error {
	slot, err := fillSlot(conn, row.Bytes)
	if err != nil {
		return err
	}
	return exec(conn, "INSERT INTO payloads (chain, hash, tag, at, slot, size) VALUES (?, ?, ?, ?, ?, ?)",
		int64(row.Chain), row.Hash[:], tag(row), now, slot, int64(len(row.Bytes)))
}

func tagOf(conn *sqlite.Conn, ref payload.Ref) (tag int64, found bool, err error) {
	err = query(conn, "SELECT tag FROM payloads WHERE chain = ? AND hash = ?", func(s *sqlite.Stmt) bool {
		tag, found = s.ColumnInt64(0), true
		return false
	}, int64(ref.Chain), ref.Hash[:])
	return tag, found, err
}

// reconcile handles a row that existed already. Usually it stays, and the key just added is
// removed. But if the row's own key is missing, because an erasure was interrupted, the new row
// replaces it.
func (p *Payloads) reconcile(ctx context.Context, row payload.Sealed) error {
	var standing int64
	var found bool
	err := p.rows.readers.read(ctx, func(conn *sqlite.Conn) (err error) {
		standing, found, err = tagOf(conn, row.Ref)
		return err
	})
	if err != nil || found && standing == tag(row) { // the same seal again
		return err
	}
	if found {
		switch _, err := p.key(ctx, row.Ref, standing); {
		case err == nil:
			return p.dropKey(ctx, row)
		case !errors.Is(err, payload.ErrGone):
			return err
		}
	}
	err = p.rows.writer.do(ctx, &job{bytes: len(row.Bytes), scrub: found, do: func(conn *sqlite.Conn) error {
		now, found, err := tagOf(conn, row.Ref)
		if err != nil || found && now != standing { // another call has replaced it
			return err
		}
		if err := erasePayload(conn, row.Ref); err != nil {
			return err
		}
		return insertPayload(conn, row, p.now().UnixMicro())
	}})
	if err != nil {
		return fmt.Errorf("keep payload %s again: %w", row.Hash, err)
	}
	return nil
}

func (p *Payloads) dropKey(ctx context.Context, row payload.Sealed) error {
	return p.keys.writer.do(ctx, &job{do: func(conn *sqlite.Conn) error {
		return eraseKeys(conn, "chain = ? AND hash = ? AND tag = ?", int64(row.Chain), row.Hash[:], tag(row))
	}})
}

// key finds a data key.
func (p *Payloads) key(ctx context.Context, ref payload.Ref, tag int64) (s payload.Sealed, err error) {
	err = p.keys.readers.read(ctx, func(conn *sqlite.Conn) error {
		return one(conn, `SELECT k.size, s.bytes, k.master FROM keys k JOIN slots s ON s.no = k.slot
			WHERE k.chain = ? AND k.hash = ? AND k.tag = ?`, func(q *sqlite.Stmt) {
			s = payload.Sealed{Ref: ref, Wrapped: slotContent(q), KeyID: uint32(q.ColumnInt64(2))}
		}, int64(ref.Chain), ref.Hash[:], tag)
	})
	return s, err
}

// Get finds a payload with its key.
func (p *Payloads) Get(ctx context.Context, id chain.ID, hash chain.Hash) (payload.Sealed, error) {
	var bytes []byte
	var tag int64
	err := p.rows.readers.read(ctx, func(conn *sqlite.Conn) error {
		return one(conn, `SELECT p.size, s.bytes, p.tag FROM payloads p JOIN slots s ON s.no = p.slot
			WHERE p.chain = ? AND p.hash = ?`, func(q *sqlite.Stmt) {
			bytes, tag = slotContent(q), q.ColumnInt64(2)
		}, int64(id), hash[:])
	})
	if err != nil {
		return payload.Sealed{}, err
	}
	s, err := p.key(ctx, payload.Ref{Chain: id, Hash: hash}, tag)
	if err != nil {
		return payload.Sealed{}, err
	}
	s.Bytes = bytes
	return s, nil
}

// one runs a query for a single row, and returns payload.ErrGone if it is missing.
func one(conn *sqlite.Conn, text string, row func(*sqlite.Stmt), args ...any) error {
	found := false
	err := query(conn, text, func(s *sqlite.Stmt) bool {
		row(s)
		found = true
		return false
	}, args...)
	if err == nil && !found {
		return payload.ErrGone
	}
	return err
}

// Erase removes keys, then rows, and their remains in the write-ahead logs. Concurrent calls
// share the last step.
func (p *Payloads) Erase(ctx context.Context, id chain.ID, hashes []chain.Hash) error {
	if len(hashes) == 0 {
		return nil
	}
	erase := func(f *file, erase func(*sqlite.Conn, payload.Ref) error) error {
		return f.writer.do(ctx, &job{bytes: len(hashes) * rowBytes, scrub: true, do: func(conn *sqlite.Conn) error {
			for _, hash := range hashes {
				if err := erase(conn, payload.Ref{Chain: id, Hash: hash}); err != nil {
					return err
				}
			}
			return nil
		}})
	}
	err := erase(p.keys, func(conn *sqlite.Conn, ref payload.Ref) error {
		return eraseKeys(conn, "chain = ? AND hash = ?", int64(ref.Chain), ref.Hash[:])
	})
	if err != nil {
		return fmt.Errorf("erase %d data keys: %w", len(hashes), err)
	}
	if err := erase(p.rows, erasePayload); err != nil {
		return fmt.Errorf("erase %d payloads: %w", len(hashes), err)
	}
	return nil
}

// EraseOrphan is Erase of one row, unless it was kept since before. The row goes first, with
// the check, and then the key that it names: a payload stored meanwhile has its own key.
func (p *Payloads) EraseOrphan(ctx context.Context, ref payload.Ref, before time.Time) error {
	gone := new(struct { // not on the stack: a caller that has gone must not see it written
		tag   int64
		found bool
	})
	err := p.rows.writer.do(ctx, &job{bytes: rowBytes, scrub: true, do: func(conn *sqlite.Conn) error {
		gone.found = false
		err := query(conn, "SELECT tag FROM payloads WHERE chain = ? AND hash = ? AND at < ?", func(s *sqlite.Stmt) bool {
			gone.tag, gone.found = s.ColumnInt64(0), true
			return false
		}, int64(ref.Chain), ref.Hash[:], before.UnixMicro())
		if err != nil || !gone.found {
			return err
		}
		return erasePayload(conn, ref)
	}})
	if err != nil {
		return fmt.Errorf("erase orphaned payload %s: %w", ref.Hash, err)
	}
	if !gone.found {
		return nil
	}
	err = p.keys.writer.do(ctx, &job{bytes: rowBytes, scrub: true, do: func(conn *sqlite.Conn) error {
		return eraseKeys(conn, "chain = ? AND hash = ? AND tag = ?", int64(ref.Chain), ref.Hash[:], gone.tag)
	}})
	if err != nil {
		return fmt.Errorf("erase data key of orphaned payload %s: %w", ref.Hash, err)
	}
	return nil
}

func eraseKeys(conn *sqlite.Conn, where string, args ...any) error {
	if err := clearSlots(conn, "SELECT slot FROM keys WHERE "+where, args...); err != nil {
		return err
	}
	return exec(conn, "DELETE FROM keys WHERE "+where, args...)
}

func erasePayload(conn *sqlite.Conn, ref payload.Ref) error {
	const where = " FROM payloads WHERE chain = ? AND hash = ?"
	if err := clearSlots(conn, "SELECT slot"+where, int64(ref.Chain), ref.Hash[:]); err != nil {
		return err
	}
	return exec(conn, "DELETE"+where, int64(ref.Chain), ref.Hash[:])
}

// Orphans lists payloads kept before a time, ordered by (chain, hash), so that paging does not
// depend on erasures in between.
func (p *Payloads) Orphans(ctx context.Context, before time.Time, after payload.Ref, limit int) (refs []payload.Ref, err error) {
	err = p.rows.readers.read(ctx, func(conn *sqlite.Conn) error {
		refs = nil
		return query(conn, `SELECT chain, hash FROM payloads WHERE (chain, hash) > (?, ?) AND at < ?
			ORDER BY chain, hash LIMIT ?`,
			func(s *sqlite.Stmt) bool {
				ref := payload.Ref{Chain: chain.ID(s.ColumnInt64(0))}
				s.ColumnBytes(1, ref.Hash[:])
				refs = append(refs, ref)
				return true
			}, int64(after.Chain), after.Hash[:], before.UnixMicro(), int64(limit))
	})
	return refs, err
}
