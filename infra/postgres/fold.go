package postgres

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// fold carries out changes in memory, one after the other, and knows in the end
// which rows to write. It does no IO; the rows concerned were read and locked.
type fold struct {
	now     time.Time     // by the server's clock
	ahead   time.Duration // of it, before that of whoever says when rows are due
	beyond  time.Duration // away is only what was told its time by a clock that was set back
	rows    map[rowRef]*workRow
	waiting map[chain.Sequence][]*workRow // those of rows that wait for a nonce

	dropped []rowRef                // stored rows that go
	shifted map[chain.Sequence]bool // whose open rows are others now
	woken   map[chain.Sequence]bool // whose waiting rows are due now
}

// rowRef names a row.
type rowRef struct {
	chain chain.ID
	hash  chain.Hash
}

// workRow is a row with what only the queue knows.
type workRow struct {
	tx.Work
	holder pgtype.Text
	until  pgtype.Timestamptz
	stored bool // it stands in the table
	dirty  bool // and is to be written
}

func newFold() *fold {
	return &fold{
		rows: map[rowRef]*workRow{}, waiting: map[chain.Sequence][]*workRow{},
		shifted: map[chain.Sequence]bool{}, woken: map[chain.Sequence]bool{},
	}
}

// have takes in a row that stands in the table.
func (f *fold) have(row *workRow) {
	row.stored = true
	f.rows[rowRef{row.Chain, row.Hash}] = row
	if row.WaitNonce != 0 {
		f.waiting[row.Sequence()] = append(f.waiting[row.Sequence()], row)
	}
}

func (f *fold) apply(c tx.Change) {
	ref := rowRef{c.Chain, c.Hash}
	row := f.rows[ref]
	if row == nil {
		if c.Open != nil {
			w := *c.Open
			w.Chain, w.Hash = c.Chain, c.Hash
			if w.EligibleAt <= uint64(max(f.now.Unix(), 0)) && w.NextAt.After(f.now.Add(f.beyond)) {
				w.NextAt = f.now // it was there by a clock that has been set back since
			}
			f.rows[ref] = &workRow{Work: w}
			f.shift(w)
		}
		return
	}
	row.dirty = true
	switch {
	case c.Open != nil: // it is there already
	case c.Attempt != nil:
		row.attempted(*c.Attempt, f.ahead)
	case c.Announce != nil:
		f.end(row, tx.Announced, *c.Announce)
	case c.Seal != nil:
		f.end(row, tx.Sealed, *c.Seal)
	case c.Reopen != nil:
		f.enter(row, c.Reopen.To)
		row.Verdict, row.Block, row.NextAt = "", chain.Block{}, c.Reopen.Due(row.Work)
		if row.Attempts > 0 {
			row.NextAt = row.NextAt.Add(f.ahead)
		}
	case c.Watch:
		f.enter(row, tx.Watched)
		row.Verdict, row.Block = "", chain.Block{}
	case c.Close:
		delete(f.rows, ref)
		if row.stored {
			f.dropped = append(f.dropped, ref)
		}
		f.shift(row.Work)
		f.wake(row.Work)
	}
}

func (row *workRow) attempted(a tx.Attempted, ahead time.Duration) {
	if a.Number > row.Attempts {
		row.Attempts, row.SentAt, row.NextAt, row.Note = a.Number, a.At, a.NextAt.Add(ahead), a.Note
	}
}

func (f *fold) end(row *workRow, phase tx.Phase, v tx.Verdict) {
	f.enter(row, phase)
	row.Verdict, row.Block = v.Status, v.Block
	f.wake(row.Work)
}

// enter changes a row's phase. Outside of open a row is not leased, parked or set aside.
func (f *fold) enter(row *workRow, phase tx.Phase) {
	if row.Phase == tx.Open || phase == tx.Open {
		f.shift(row.Work)
	}
	row.Phase = phase
	if phase != tx.Open {
		row.holder, row.until, row.Parked = pgtype.Text{}, pgtype.Timestamptz{}, false
		row.HeldSince = time.Time{}
	}
}

// shift notes that the window of a row's sequence may have moved. The expiring key
// has no window: nonces mean nothing to it.
func (f *fold) shift(w tx.Work) {
	if !w.NonceKey.IsExpiring() {
		f.shifted[w.Sequence()] = true
	}
}

// wake makes due who waits for a nonce in the row's sequence: here the rows at hand,
// as later changes may move them on again, and by f.woken the others.
func (f *fold) wake(by tx.Work) {
	if by.NonceKey.IsExpiring() {
		return
	}
	f.woken[by.Sequence()] = true
	for _, row := range f.waiting[by.Sequence()] {
		if row.Phase == tx.Open && row.NextAt.After(f.now) {
			row.NextAt, row.dirty = f.now, true
		}
	}
}

// fresh are the rows to insert, parked as far as one can tell from them alone.
func (f *fold) fresh(window int) (fresh []*workRow) {
	for _, row := range f.rows {
		if !row.stored {
			fresh = append(fresh, row)
		}
	}
	slices.SortFunc(fresh, func(a, b *workRow) int {
		return cmp.Or(cmp.Compare(a.Chain, b.Chain), bytes.Compare(a.Sender[:], b.Sender[:]),
			bytes.Compare(a.NonceKey[:], b.NonceKey[:]), cmp.Compare(a.Nonce, b.Nonce), bytes.Compare(a.Hash[:], b.Hash[:]))
	})
	before, same := 0, 0 // open rows with a lower nonce, and with the same
	for i, row := range fresh {
		switch {
		case i == 0 || row.Sequence() != fresh[i-1].Sequence():
			before, same = 0, 0
		case row.Nonce != fresh[i-1].Nonce:
			before, same = before+same, 0
		}
		if row.Phase == tx.Open {
			same++
			row.Parked = !row.NonceKey.IsExpiring() && before >= window
		}
	}
	return fresh
}

// changed are the stored rows to write.
func (f *fold) changed() (changed []*workRow) {
	for _, row := range f.rows {
		if row.stored && row.dirty {
			changed = append(changed, row)
		}
	}
	slices.SortFunc(changed, func(a, b *workRow) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	return changed
}

// ids are the short names of sequences, in a set order.
func ids(sequences map[chain.Sequence]bool) []pgtype.UUID {
	all := make([]pgtype.UUID, 0, len(sequences))
	for s := range sequences {
		all = append(all, sequenceID(s))
	}
	slices.SortFunc(all, func(a, b pgtype.UUID) int { return bytes.Compare(a.Bytes[:], b.Bytes[:]) })
	return all
}
