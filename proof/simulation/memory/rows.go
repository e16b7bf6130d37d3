package memory

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// row is a row of the due queue.
type row struct {
	tx.Work
	no         int64
	holder     string
	leaseUntil time.Time
	seen       int64 // when the watcher last saw its waiting sequence, in turns
	turns      []*turn
}

// due is when the row may be leased next: a current lease hides it.
func (r *row) due() time.Time {
	if r.leaseUntil.After(r.NextAt) {
		return r.leaseUntil
	}
	return r.NextAt
}

// index is a set of rows in an order.
type index struct {
	items   []*row
	compare func(a, b *row) int
}

func (x *index) find(r *row) int {
	at, _ := slices.BinarySearchFunc(x.items, r, x.compare)
	return at
}

func (x *index) add(r *row)    { x.items = slices.Insert(x.items, x.find(r), r) }
func (x *index) remove(r *row) { at := x.find(r); x.items = slices.Delete(x.items, at, at+1) }

// by creates an index ordered by a key and, within it, by age.
func by(key func(a, b *row) int) *index {
	return &index{compare: func(a, b *row) int { return cmp.Or(key(a, b), cmp.Compare(a.no, b.no)) }}
}

// book is the due queue of one chain. Only update changes a row, so that the indexes stay
// correct.
type book struct {
	byHash    map[chain.Hash]*row
	sequences map[chain.Sequence]*index // by nonce
	named     map[chain.Sequence]*index // rows that name another sequence than their own, by that: by nonce
	first     map[string]*index         // leasable and never attempted, by client: by due time
	again     map[string]*index         // leasable and attempted before, by client: by due time
	unsent    *index                    // open and never attempted: by eligibility
	expiring  map[tx.Phase]*index       // by expiry
	verdicts  map[tx.Phase]*index       // by block and hash
	waiting   *index                    // by the time when they were seen
	held      map[tx.Account]map[*row]bool
	shared    map[*row]bool // rows with further owners
}

func (d *data) book(id chain.ID) *book {
	if b := d.books[id]; b != nil {
		return b
	}
	expires := func(a, b *row) int { return cmp.Compare(a.ExpiresAt, b.ExpiresAt) }
	verdict := func(a, b *row) int {
		return cmp.Or(cmp.Compare(a.Block.Number, b.Block.Number), bytes.Compare(a.Hash[:], b.Hash[:]))
	}
	b := &book{
		byHash: map[chain.Hash]*row{}, sequences: map[chain.Sequence]*index{}, named: map[chain.Sequence]*index{},
		first: map[string]*index{}, again: map[string]*index{},
		unsent:   by(func(a, b *row) int { return cmp.Compare(a.EligibleAt, b.EligibleAt) }),
		expiring: map[tx.Phase]*index{tx.Open: by(expires), tx.Watched: by(expires)},
		verdicts: map[tx.Phase]*index{},
		waiting:  by(func(a, b *row) int { return cmp.Compare(a.seen, b.seen) }),
		held:     map[tx.Account]map[*row]bool{}, shared: map[*row]bool{},
	}
	for _, phase := range []tx.Phase{tx.Open, tx.Announced, tx.Watched, tx.Sealed} {
		b.verdicts[phase] = by(verdict)
	}
	d.books[id] = b
	return b
}

// indexes lists the indexes that contain a row in its present state.
func (b *book) indexes(r *row) []*index {
	in := make([]*index, 0, 6)
	if r.Phase == tx.Open {
		if !r.Parked && r.HeldSince.IsZero() {
			if r.Attempts == 0 {
				in = append(in, byDue(b.first, r.Client))
			} else {
				in = append(in, byDue(b.again, r.Client))
			}
		}
		if r.Attempts == 0 {
			in = append(in, b.unsent)
		}
	}
	if x := b.expiring[r.Phase]; x != nil && r.ExpiresAt != 0 {
		in = append(in, x)
	}
	if !r.Block.IsZero() {
		in = append(in, b.verdicts[r.Phase])
	}
	if r.WaitNonce != 0 && !r.Apart() {
		in = append(in, b.waiting)
	}
	if r.Apart() {
		in = append(in, byNonce(b.named, r.Named()))
	}
	return append(in, byNonce(b.sequences, r.Sequence()))
}

func byDue(all map[string]*index, client string) *index {
	x := all[client]
	if x == nil {
		x = by(func(a, b *row) int { return a.due().Compare(b.due()) })
		all[client] = x
	}
	return x
}

func byNonce(all map[chain.Sequence]*index, s chain.Sequence) *index {
	x := all[s]
	if x == nil {
		x = by(func(a, b *row) int { return cmp.Compare(a.Nonce, b.Nonce) })
		all[s] = x
	}
	return x
}

func (b *book) enter(r *row) {
	b.byHash[r.Hash] = r
	if len(r.turns) > 0 {
		b.shared[r] = true
	}
	for _, x := range b.indexes(r) {
		x.add(r)
	}
	if !r.HeldSince.IsZero() {
		if b.held[r.Account] == nil {
			b.held[r.Account] = map[*row]bool{}
		}
		b.held[r.Account][r] = true
	}
}

func (b *book) leave(r *row) {
	for _, x := range b.indexes(r) {
		x.remove(r)
	}
	if delete(b.held[r.Account], r); len(b.held[r.Account]) == 0 {
		delete(b.held, r.Account)
	}
	delete(b.byHash, r.Hash)
	delete(b.shared, r)
	if x := b.sequences[r.Sequence()]; len(x.items) == 0 {
		delete(b.sequences, r.Sequence())
	}
	if x := b.named[r.Named()]; x != nil && len(x.items) == 0 {
		delete(b.named, r.Named())
	}
}

func (b *book) update(r *row, change func()) {
	b.leave(r)
	phase, nextAt := r.Phase, r.NextAt
	change()
	r.follow(phase, nextAt)
	b.enter(r)
}

// park parks the rows behind a full window of open rows, and releases the others.
func (b *book) park(s chain.Sequence, window int) {
	x := b.sequences[s]
	if x == nil || s.Key.IsExpiring() {
		return
	}
	var open []uint64
	for _, r := range x.items {
		if r.Phase == tx.Open {
			open = append(open, r.Nonce)
		}
	}
	edge := tx.EdgeOf(open, window)
	for _, r := range slices.Clone(x.items) {
		if parked := r.Phase == tx.Open && edge.Parks(r.Nonce); parked != r.Parked {
			b.update(r, func() { r.Parked = parked })
		}
	}
}
