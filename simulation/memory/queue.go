package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// change applies one change to the queue.
func (d *data) change(c tx.Change) {
	b := d.book(c.Chain)
	r := b.byHash[c.Hash]
	if c.Open != nil {
		if r == nil {
			d.admit(b, c)
		}
		return
	}
	if r == nil {
		return
	}
	switch {
	case c.Attempt != nil:
		if r.Attempts < c.Attempt.Number {
			b.update(r, func() {
				r.Attempts, r.NextAt = c.Attempt.Number, micro(c.Attempt.NextAt)
				r.SentAt, r.Note = micro(c.Attempt.At), c.Attempt.Note
			})
		}
	case c.Announce != nil:
		d.end(b, r, tx.Announced, *c.Announce)
	case c.Seal != nil:
		d.end(b, r, tx.Sealed, *c.Seal)
	case c.Reopen != nil:
		d.phase(b, r, c.Reopen.To, tx.Verdict{}, c.Reopen.Due(r.Work))
	case c.Watch:
		d.phase(b, r, tx.Watched, tx.Verdict{}, r.NextAt)
	case c.Close:
		b.leave(r)
		b.park(r.Sequence(), d.window)
		d.wake(b, r.Sequence())
	default:
		panic(fmt.Sprintf("memory: a change of nothing to %s", c.Hash))
	}
}

func (d *data) admit(b *book, c tx.Change) {
	d.lastRow++
	r := &row{Work: *c.Open, no: d.lastRow}
	r.Chain, r.Hash, r.Parked, r.HeldSince = c.Chain, c.Hash, false, time.Time{}
	r.NextAt, r.SentAt, r.WaitSince = micro(r.NextAt), micro(r.SentAt), micro(r.WaitSince)
	r.Block = named(r.Block)
	b.enter(r)
	b.park(r.Sequence(), d.window)
}

// named is what the queue keeps of a block.
func named(b chain.Block) chain.Block {
	if b.IsZero() {
		return chain.Block{}
	}
	return chain.Block{Number: b.Number, Hash: b.Hash}
}

// end gives a row a verdict, and wakes its followers: the nonce is used.
func (d *data) end(b *book, r *row, phase tx.Phase, v tx.Verdict) {
	if r.Phase == phase && r.Verdict == v.Status && r.Block == named(v.Block) {
		return
	}
	d.phase(b, r, phase, v, r.NextAt)
	d.wake(b, r.Sequence())
}

// phase puts a row into a phase. What belongs to an open row ends with it.
func (d *data) phase(b *book, r *row, phase tx.Phase, v tx.Verdict, nextAt time.Time) {
	b.update(r, func() {
		r.Phase, r.Verdict, r.Block, r.NextAt, r.Parked = phase, v.Status, named(v.Block), micro(nextAt), false
		r.holder, r.leaseUntil = "", time.Time{}
		r.WaitNonce, r.WaitSince, r.seen, r.HeldSince = 0, time.Time{}, 0, time.Time{}
	})
	b.park(r.Sequence(), d.window)
}

// wake makes due what waits for a nonce in a sequence.
func (d *data) wake(b *book, s chain.Sequence) {
	if x := b.sequences[s]; x != nil && !s.Key.IsExpiring() {
		d.hurry(b, x, func(r *row) bool { return r.WaitNonce != 0 })
	}
}

// hurry makes rows of an index due now, and counts them.
func (d *data) hurry(b *book, x *index, which func(*row) bool) (hurried int) {
	now := micro(d.now())
	for _, r := range slices.Clone(x.items) {
		if which(r) && r.NextAt.After(now) {
			b.update(r, func() { r.NextAt = now })
			hurried++
		}
	}
	return hurried
}

// nextTurn numbers the moments at which somebody looked at a waiting sequence.
func (d *data) nextTurn(now time.Time) int64 {
	d.turn = max(d.turn+1, now.UnixMicro())
	return d.turn
}

// Done ends leases with what came of them.
func (s *Store) Done(ctx context.Context, holder string, done []tx.Done) error {
	return s.enter(ctx, func() {
		now := micro(s.now())
		for _, d := range done {
			s.done(holder, now, d)
			s.noteStanding(now, d)
		}
	})
}

func (d *data) done(holder string, now time.Time, done tx.Done) {
	b := d.book(done.Chain)
	r := b.byHash[done.Hash]
	if r == nil || r.Phase != tx.Open || r.holder != "" && r.holder != holder {
		return
	}
	b.update(r, func() {
		r.holder, r.leaseUntil = "", time.Time{}
		r.Attempts, r.NextAt, r.Note = max(r.Attempts, done.Attempts), micro(done.NextAt), done.Note
		if !done.SentAt.IsZero() {
			r.SentAt = micro(done.SentAt)
		}
		turn := d.nextTurn(now)
		switch r.WaitNonce = done.WaitNonce; {
		case r.WaitNonce == 0:
			r.WaitSince, r.seen = time.Time{}, 0
		case r.WaitSince.IsZero():
			r.WaitSince = now
			fallthrough
		default:
			if r.seen == 0 {
				r.seen = turn
			}
		}
		r.HeldSince = time.Time{}
		if done.Standing == tx.Unable && done.Account != (tx.Account{}) {
			r.HeldSince = now
		}
	})
}

// Find returns the rows with these hashes.
func (s *Store) Find(ctx context.Context, id chain.ID, hashes []chain.Hash) (found []tx.Work, err error) {
	err = s.enter(ctx, func() {
		b, now := s.book(id), s.now()
		for _, hash := range hashes {
			if r := b.byHash[hash]; r != nil {
				found = append(found, b.told(r, now))
			}
		}
	})
	return found, err
}

// told is a row that says, if it is parked though it is due, what it waits for: what
// the first of its sequence waits for, or is.
func (b *book) told(r *row, now time.Time) tx.Work {
	w := r.Work
	if !r.Parked || r.WaitNonce != 0 || r.NextAt.After(now) {
		return w
	}
	for _, first := range b.sequences[r.Sequence()].items {
		if first.Phase == tx.Open {
			w.WaitSince, w.WaitNonce = w.NextAt, cmp.Or(first.WaitNonce, first.Nonce+1)
			break
		}
	}
	return w
}

// Soon returns the rows of a chain that are next to be leased, soonest first.
func (s *Store) Soon(ctx context.Context, id chain.ID, limit int) (soon []tx.Work, err error) {
	err = s.enter(ctx, func() {
		b := s.book(id)
		var open []*row
		for _, r := range b.byHash {
			if r.Phase == tx.Open && !r.Parked {
				open = append(open, r)
			}
		}
		slices.SortFunc(open, b.first.compare)
		for _, r := range open[:min(len(open), max(limit, 0))] {
			soon = append(soon, r.Work)
		}
	})
	return soon, err
}

// Depth counts the rows of a chain.
func (s *Store) Depth(ctx context.Context, id chain.ID) (d tx.Depth, err error) {
	err = s.enter(ctx, func() {
		now := micro(s.now())
		for _, r := range s.book(id).byHash {
			count(&d, r, now)
		}
	})
	return d, err
}

func count(d *tx.Depth, r *row, now time.Time) {
	switch {
	case r.Phase == tx.Watched:
		d.Watched++
	case r.Phase == tx.Announced:
		d.Announced++
	case r.Phase == tx.Sealed:
		d.Sealed++
	case r.Parked:
		d.Parked++
	default:
		d.Open++
		if r.WaitNonce != 0 {
			d.Waiting++
		}
		if late := now.Sub(r.due()); late >= 0 {
			d.Due++
			d.OldestDue = max(d.OldestDue, late)
		}
	}
}

// NextFree is the first nonce of a sequence, from the given one on, that no row has
// that is open or announced as executed.
func (s *Store) NextFree(ctx context.Context, q chain.Sequence, from uint64) (uint64, error) {
	next := from
	err := s.enter(ctx, func() {
		x := s.book(q.Chain).sequences[q]
		if x == nil {
			return
		}
		for _, r := range x.items {
			if r.Nonce == next && (r.Phase == tx.Open || r.Phase == tx.Announced && r.Verdict == tx.StatusExecuted) {
				next++
			}
		}
	})
	return next, err
}
