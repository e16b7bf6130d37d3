package tx

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Row is a row of the due queue with its lease.
type Row struct {
	Work
	Holder string    // the worker that leased it; empty: none
	Until  time.Time // end of the lease
}

// Ref identifies a row.
type Ref struct {
	Chain chain.ID
	Hash  chain.Hash
}

// Clock is the time that a fold works with.
type Clock struct {
	Now time.Time // by the store's clock
	// Ahead is how far the store's clock is ahead of the clock that computed the retry times.
	Ahead time.Duration
	// Beyond is the longest time from now at which the first attempt of an eligible row can be
	// due. A row that is due later was scheduled before a clock was set back. 0: unknown.
	Beyond time.Duration
}

// Fold applies changes to due-queue rows in memory, in order. It implements the queue's rules for
// every store and does no IO. The store loads the rows named by the changes and writes the
// result.
//
// [Edge] decides which rows are parked. A window may include rows that were not loaded, so the
// store computes the edges of the sequences in Folded.Shifted.
type Fold struct {
	clock   Clock
	rows    map[Ref]*folded
	waiting map[chain.Sequence][]*folded // loaded rows that wait for a nonce
	opened  int
	dropped []Row
	joined  []Joined
	filled  map[Ref]bool
	used    map[string]Usage
	shifted map[chain.Sequence]bool
	woken   map[chain.Sequence]bool
}

// folded is a loaded or newly opened row.
type folded struct {
	Row
	was    Work // the stored row
	opened int  // rank among the newly opened rows, from 1; 0 for a stored row
	dirty  bool // it differs from the stored row
}

// Folded lists the writes for the store.
type Folded struct {
	Insert []Row // in the order of the changes; none is parked
	Update []Row // in the order of their hashes
	Drop   []Row
	// Joined are further owners, in the order of the changes. An owner that is stored already, or is
	// the row's Client, keeps its due time.
	Joined []Joined
	// Filled are the stored rows whose further owners are known now.
	Filled []Ref
	// Shifted are the sequences whose set of open rows changed: their edge may have moved.
	Shifted []chain.Sequence
	// Woken are the sequences in which a nonce was used. Their rows that wait for a nonce are due
	// now, also the rows that were not loaded. The fold has done so for the loaded rows, and a later
	// change may have given one of them another due time: a store makes these sequences due before it
	// writes the fold's rows, or only the rows that were not loaded.
	Woken []chain.Sequence
	// Used is the change in each client's usage, as the first client of rows.
	Used map[string]Usage
}

// Joined is another owner of a row.
type Joined struct {
	Ref
	Owner
}

// NewFold returns an empty fold at the clock's time.
func NewFold(clock Clock) *Fold {
	return &Fold{
		clock: clock, rows: map[Ref]*folded{}, waiting: map[chain.Sequence][]*folded{},
		shifted: map[chain.Sequence]bool{}, woken: map[chain.Sequence]bool{}, used: map[string]Usage{},
		filled: map[Ref]bool{},
	}
}

// Refs returns the rows to load for the changes, each once.
func Refs(changes []Change) []Ref {
	seen := make(map[Ref]bool, len(changes))
	refs := make([]Ref, 0, len(changes))
	for _, c := range changes {
		if r := (Ref{c.Chain, c.Hash}); !seen[r] {
			seen[r], refs = true, append(refs, r)
		}
	}
	return refs
}

// Load adds a stored row.
func (f *Fold) Load(r Row) {
	row := &folded{Row: r, was: r.Work}
	f.rows[Ref{r.Chain, r.Hash}] = row
	if r.WaitNonce != 0 {
		f.waiting[r.Sequence()] = append(f.waiting[r.Sequence()], row)
	}
}

// Apply applies one change. It panics on an empty change, which is a broken invariant.
func (f *Fold) Apply(c Change) {
	if c == (Change{Chain: c.Chain, Hash: c.Hash}) {
		panic(fmt.Sprintf("tx: a change of nothing to %s", c.Hash))
	}
	row := f.rows[Ref{c.Chain, c.Hash}]
	switch {
	case c.Open != nil:
		if row == nil {
			f.open(c)
		}
		return
	case row == nil:
		return
	case c.Join != nil:
		f.join(row, *c.Join)
	case c.Attempt != nil:
		row.attempted(*c.Attempt, f.clock.Ahead)
	case c.Announce != nil:
		f.end(row, Announced, *c.Announce)
	case c.Seal != nil:
		f.end(row, Sealed, *c.Seal)
	case c.Reopen != nil:
		f.enter(row, c.Reopen.To, Verdict{})
		row.NextAt = c.Reopen.Due(row.Work)
		if row.Attempts > 0 {
			row.NextAt = row.NextAt.Add(f.clock.Ahead)
		}
	case c.Watch:
		f.enter(row, Watched, Verdict{})
	case c.Confirm:
		f.confirm(row)
	case c.Refill != nil:
		f.refill(row, *c.Refill)
	case c.Close:
		delete(f.rows, Ref{c.Chain, c.Hash})
		if row.opened == 0 {
			f.dropped = append(f.dropped, row.Row)
			f.used[row.was.Client] = f.used[row.was.Client].Add(row.was.usage(), -1)
		}
		f.shift(row.Work)
		f.wake(row.Work)
	}
}

func (f *Fold) open(c Change) {
	w := *c.Open
	w.Chain, w.Hash, w.Parked, w.Shared, w.HeldSince = c.Chain, c.Hash, false, false, time.Time{}
	w.Block, w.Owners = named(w.Block), nil
	w.NextAt = f.first(w, w.NextAt)
	f.opened++
	f.rows[Ref{c.Chain, c.Hash}] = &folded{Row: Row{Work: w}, opened: f.opened}
	f.shift(w)
}

// first corrects the time at which a row is first due: it may come from a clock that was set back
// since.
func (f *Fold) first(w Work, due time.Time) time.Time {
	now := f.clock.Now
	if f.clock.Beyond > 0 && w.EligibleAt <= uint64(max(now.Unix(), 0)) && due.After(now.Add(f.clock.Beyond)) {
		return now
	}
	return due
}

// named returns the block's number and hash, the parts that the queue stores.
func named(b chain.Block) chain.Block {
	if b.IsZero() {
		return chain.Block{}
	}
	return chain.Block{Number: b.Number, Hash: b.Hash}
}

func (r *folded) attempted(a Attempted, ahead time.Duration) {
	if a.Number > r.Attempts {
		r.Attempts, r.SentAt, r.NextAt, r.Note = a.Number, a.At, a.NextAt.Add(ahead), a.Note
		r.dirty = true
	}
}

// end gives a row a verdict and wakes the rows that wait in its sequence, because the nonce is
// used. A repeated verdict changes nothing.
func (f *Fold) end(row *folded, phase Phase, v Verdict) {
	if row.Phase == phase && row.Verdict == v.Status && row.Block == named(v.Block) {
		return
	}
	f.enter(row, phase, v)
	f.wake(row.Work)
}

// enter changes a row's phase and verdict. A row that leaves phase open loses its lease, parking,
// hold and nonce wait.
func (f *Fold) enter(row *folded, phase Phase, v Verdict) {
	f.shift(row.Work)
	row.Phase, row.Verdict, row.Block, row.dirty = phase, v.Status, named(v.Block), true
	f.shift(row.Work)
	if phase != Open {
		row.Holder, row.Until, row.Parked, row.HeldSince = "", time.Time{}, false, time.Time{}
		row.WaitNonce, row.WaitSince = 0, time.Time{}
	}
}

// confirm moves a row into the sequence that its bytes name, and resets its nonce wait.
func (f *Fold) confirm(row *folded) {
	if !row.Claimed {
		return
	}
	f.shift(row.Work)
	row.Claimed, row.dirty = false, true
	f.shift(row.Work)
	f.unwait(row)
}

// join adds another owner. A row that is only claimed gets a sequence of its own.
func (f *Fold) join(row *folded, o Owner) {
	if o.Client == row.Client {
		return
	}
	if o.NextAt = f.first(row.Work, o.NextAt); row.handed() && row.NextAt.After(o.NextAt) {
		o.NextAt = row.NextAt // no attempt shows the other owners that there is another one
	}
	f.joined = append(f.joined, Joined{Ref{row.Chain, row.Hash}, o})
	if row.Shared {
		return
	}
	f.shift(row.Work)
	row.Shared, row.dirty = true, true
	f.shift(row.Work)
}

// refill sets the missing fields. A row that is a claim leaves the sequence that its bytes name.
func (f *Fold) refill(row *folded, r Refill) {
	f.filled[Ref{row.Chain, row.Hash}] = true
	f.complete(row, r)
	for _, o := range r.Owners {
		f.join(row, o)
	}
}

func (f *Fold) complete(row *folded, r Refill) {
	if row.Bytes != 0 {
		return
	}
	f.shift(row.Work)
	row.Client, row.Bytes, row.Claimed, row.dirty = r.Client, r.Bytes, r.Claimed, true
	f.shift(row.Work)
	if row.Claimed {
		f.unwait(row)
	}
}

// unwait clears a row's nonce wait and makes the row due, so that the wait is determined again.
func (f *Fold) unwait(row *folded) {
	if row.WaitNonce != 0 {
		row.WaitNonce, row.WaitSince = 0, time.Time{}
		if row.NextAt.After(f.clock.Now) {
			row.NextAt = f.clock.Now
		}
	}
}

// shift records that the edge of an open row's sequence may have moved. The expiring key has no
// window, because its nonces are not a sequence.
func (f *Fold) shift(w Work) {
	if w.Phase == Open && !w.NonceKey.IsExpiring() {
		f.shifted[w.Sequence()] = true
	}
}

// wake makes due the rows that wait for a nonce in the sequence of `by`. Loaded rows are changed
// here, because later changes may change them again; the others through Folded.Woken.
func (f *Fold) wake(by Work) {
	if by.NonceKey.IsExpiring() || by.Apart() {
		return
	}
	f.woken[by.Sequence()] = true
	for _, row := range f.waiting[by.Sequence()] {
		if row.Phase == Open && row.WaitNonce != 0 && row.NextAt.After(f.clock.Now) {
			row.NextAt, row.dirty = f.clock.Now, true
		}
	}
}

// Folded returns the writes for the changes applied so far.
func (f *Fold) Folded() Folded {
	out := Folded{Drop: f.dropped, Shifted: slices.SortedFunc(maps.Keys(f.shifted), bySequence), Woken: slices.SortedFunc(maps.Keys(f.woken), bySequence)}
	used := maps.Clone(f.used)
	var opened []*folded
	for _, row := range f.rows {
		switch {
		case row.opened > 0:
			opened = append(opened, row)
			used[row.Client] = used[row.Client].Add(row.usage(), 1)
		case row.dirty:
			out.Update = append(out.Update, row.Row)
			used[row.was.Client] = used[row.was.Client].Add(row.was.usage(), -1)
			used[row.Client] = used[row.Client].Add(row.usage(), 1)
		}
	}
	for _, j := range f.joined {
		if f.rows[j.Ref] != nil { // it was not closed since
			out.Joined = append(out.Joined, j)
		}
	}
	for ref := range f.filled {
		if row := f.rows[ref]; row != nil && row.opened == 0 {
			out.Filled = append(out.Filled, ref)
		}
	}
	slices.SortFunc(out.Filled, func(a, b Ref) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	maps.DeleteFunc(used, func(_ string, u Usage) bool { return u == Usage{} })
	out.Used = used
	slices.SortFunc(opened, func(a, b *folded) int { return cmp.Compare(a.opened, b.opened) })
	for _, row := range opened {
		out.Insert = append(out.Insert, row.Row)
	}
	slices.SortFunc(out.Update, func(a, b Row) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	return out
}

// Turned returns the rows, each once, of which the usage of further owners may have changed: the
// rows have further owners, and are changed.
func (f Folded) Turned() (refs []Ref) {
	seen := map[Ref]bool{}
	add := func(ref Ref) {
		if !seen[ref] {
			seen[ref], refs = true, append(refs, ref)
		}
	}
	for _, j := range f.Joined {
		add(j.Ref)
	}
	for _, r := range f.Update {
		if r.Shared {
			add(Ref{r.Chain, r.Hash})
		}
	}
	return refs
}

func bySequence(a, b chain.Sequence) int {
	return cmp.Or(cmp.Compare(a.Chain, b.Chain), bytes.Compare(a.Sender[:], b.Sender[:]), bytes.Compare(a.Key[:], b.Key[:]))
}

// Edge is the highest nonce in a sequence's window: the nonce of the window's last open row. Open
// rows with a higher nonce are parked. A window that is not full has no edge.
type Edge struct {
	Nonce uint64
	Full  bool
}

// EdgeOf returns the edge of a sequence whose open rows have these nonces, in order.
func EdgeOf(nonces []uint64, window int) Edge {
	if len(nonces) < window {
		return Edge{}
	}
	return Edge{nonces[window-1], true}
}

// Parks reports whether an open row with this nonce is parked.
func (e Edge) Parks(nonce uint64) bool { return e.Full && nonce > e.Nonce }

// ParkFresh sorts new rows by sequence, nonce and hash, and parks them as if their sequences had
// no other rows.
func ParkFresh(fresh []Row, window int) {
	slices.SortFunc(fresh, func(a, b Row) int {
		return cmp.Or(bySequence(a.Sequence(), b.Sequence()), cmp.Compare(a.Nonce, b.Nonce), bytes.Compare(a.Hash[:], b.Hash[:]))
	})
	for from, to := 0, 0; from < len(fresh); from = to {
		var open []uint64
		for to = from; to < len(fresh) && fresh[to].Sequence() == fresh[from].Sequence(); to++ {
			if fresh[to].Phase == Open {
				open = append(open, fresh[to].Nonce)
			}
		}
		edge := EdgeOf(open, window)
		for i := from; i < to; i++ {
			r := &fresh[i]
			r.Parked = r.Phase == Open && !r.NonceKey.IsExpiring() && edge.Parks(r.Nonce)
		}
	}
}

// Horizon bounds how far ahead a Lease reports the next due row.
const Horizon = time.Minute

// StoredTime limits a time to the year 9999: chain times can exceed any calendar.
func StoredTime(t time.Time) time.Time {
	if last := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC); t.After(last) {
		return last
	}
	return t
}
