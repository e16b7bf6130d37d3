package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// change applies changes to the queue.
func (d *data) change(changes []tx.Change) {
	f := tx.NewFold(tx.Clock{Now: micro(d.now())})
	for _, ref := range tx.Refs(changes) {
		if r := d.book(ref.Chain).byHash[ref.Hash]; r != nil {
			f.Load(tx.Row{Work: r.Work, Holder: r.holder, Until: r.leaseUntil})
		}
	}
	for _, c := range changes {
		f.Apply(c)
	}
	folded := f.Folded()
	for _, s := range folded.Woken { // before the fold's rows are written, see [tx.Folded]
		d.wake(d.book(s.Chain), s)
	}
	for _, r := range folded.Drop {
		b := d.book(r.Chain)
		b.leave(b.byHash[r.Hash])
	}
	for _, r := range folded.Insert {
		d.lastRow++
		d.book(r.Chain).enter(stored(&row{no: d.lastRow}, r))
	}
	for _, r := range folded.Update {
		b := d.book(r.Chain)
		at := b.byHash[r.Hash]
		b.update(at, func() { stored(at, r) })
	}
	for _, j := range folded.Joined {
		b := d.book(j.Chain)
		r := b.byHash[j.Hash]
		b.update(r, func() { b.join(r, j.Owner) })
	}
	for client, more := range folded.Used {
		d.used[client] = d.used[client].Add(more, 1)
	}
	for _, s := range folded.Shifted {
		d.book(s.Chain).park(s, d.window)
	}
}

// stored sets a row to a fold's values, with the precision of databases.
func stored(at *row, r tx.Row) *row {
	at.Work, at.holder, at.leaseUntil = r.Work, r.Holder, micro(r.Until)
	at.NextAt, at.SentAt, at.WaitSince = micro(at.NextAt), micro(at.SentAt), micro(at.WaitSince)
	if at.WaitNonce == 0 {
		at.seen = 0
	}
	return at
}

// wake makes rows due that wait for a nonce in a sequence.
func (d *data) wake(b *book, s chain.Sequence) {
	if x := b.sequences[s]; x != nil {
		d.hurry(b, x, func(r *row) bool { return r.WaitNonce != 0 && r.Phase == tx.Open })
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

// nextTurn numbers the times at which a waiting sequence was seen.
func (d *data) nextTurn(now time.Time) int64 {
	d.turn = max(d.turn+1, now.UnixMicro())
	return d.turn
}

// Done ends leases with the outcomes of the attempts.
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
		r.Attempts, r.Note = max(r.Attempts, done.Attempts), done.Note
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
		r.done(now, done)
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

// told converts a row. If the row is parked though due, it includes the blocker: the blocker of
// the first row of its sequence, or that row.
func (b *book) told(r *row, now time.Time) tx.Work {
	w := r.Work
	w.Owners = r.owners()
	if !r.Parked || r.WaitNonce != 0 || r.NextAt.After(now) || r.Apart() {
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

// Soon returns the rows of a chain that are due next, soonest first.
func (s *Store) Soon(ctx context.Context, id chain.ID, limit int) (soon []tx.Work, err error) {
	err = s.enter(ctx, func() {
		b := s.book(id)
		var open []*row
		for _, r := range b.byHash {
			if r.Phase == tx.Open && !r.Parked {
				open = append(open, r)
			}
		}
		slices.SortFunc(open, func(a, b *row) int { return cmp.Or(a.due().Compare(b.due()), cmp.Compare(a.no, b.no)) })
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
	if r.Phase == tx.Open && r.Attempts > 0 {
		d.Sent++
	}
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

// NextFree is the first nonce of a sequence, starting at from, without a row that is open or
// announced as executed. Only rows that one of the clients submitted first count; nil counts
// all.
func (s *Store) NextFree(ctx context.Context, q chain.Sequence, from uint64, clients []string) (uint64, error) {
	next := from
	err := s.enter(ctx, func() {
		x := s.book(q.Chain).sequences[q]
		if x == nil {
			return
		}
		for _, r := range x.items {
			counts := clients == nil || slices.Contains(clients, r.Client)
			if counts && r.Nonce == next && (r.Phase == tx.Open || r.Phase == tx.Announced && r.Verdict == tx.StatusExecuted) {
				next++
			}
		}
	})
	return next, err
}

// Usage returns a client's usage of the queue, and the checkpoint of the reader that feeds it.
func (s *Store) Usage(ctx context.Context, reader, client string) (u tx.Usage, at eventlog.Position, err error) {
	err = s.enter(ctx, func() {
		u, at = s.used[client], s.checkpoints[reader]
		for _, b := range s.books {
			u = u.Add(b.turns(client), 1)
		}
	})
	return u, at, err
}

// Unfilled lists rows with Bytes 0 after a ref, by chain and hash.
func (s *Store) Unfilled(ctx context.Context, after tx.Ref, limit int) (refs []tx.Ref, err error) {
	order := func(a, b tx.Ref) int {
		return cmp.Or(cmp.Compare(a.Chain, b.Chain), bytes.Compare(a.Hash[:], b.Hash[:]))
	}
	err = s.enter(ctx, func() {
		for id, b := range s.books {
			for hash, r := range b.byHash {
				if ref := (tx.Ref{Chain: id, Hash: hash}); r.Bytes == 0 && order(ref, after) > 0 {
					refs = append(refs, ref)
				}
			}
		}
		slices.SortFunc(refs, order)
		refs = refs[:min(len(refs), limit)]
	})
	return refs, err
}
