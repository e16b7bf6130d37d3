package intent

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/fair"
)

// Entry is a row of the work queue.
type Entry struct {
	Waiting
	// Lane is where the intent has a nonce, or for which Holder has claimed it; nil means
	// that it can be claimed.
	Lane   *chain.Sequence
	Holder string    // of the claim; empty means that there is none
	Until  time.Time // the claim lapses; zero without one
	// Behind is the row right before this one in its ordering group, as looked up by a store
	// that does not load it; zero otherwise.
	Behind chain.IntentID
}

// Release ends the row's claim, or takes its nonce away: the intent waits again.
func (e *Entry) Release() { e.Lane, e.Holder, e.Until = nil, "", time.Time{} }

// isIn reports whether the intent has a nonce in the claimant's lane, or is claimed for that
// lane by the same holder.
func (e *Entry) isIn(c Claim) bool {
	return e.Lane != nil && *e.Lane == c.Lane && (e.Holder == "" || e.Holder == c.Holder)
}

// TakesKey reports whether a lane of a nonce key takes an intent that asks for a key, or with
// nil for none. See [Claim.OnlyAsked].
func TakesKey(lane chain.NonceKey, onlyAsked bool, asked *chain.NonceKey) bool {
	if asked == nil {
		return !onlyAsked
	}
	return *asked == lane
}

// Keys lists the nonce keys that the claimed intents may ask for; nil is none.
func (c Claim) Keys() []*chain.NonceKey {
	if c.OnlyAsked {
		return []*chain.NonceKey{&c.Lane.Key}
	}
	return []*chain.NonceKey{nil, &c.Lane.Key}
}

// Fits reports whether the claimant's lane can carry the intent out: the chain, the signer or
// its pool and the nonce key match, and it stands behind [Claim.After].
func (c Claim) Fits(w Waiting) bool {
	signs := slices.Contains(c.Pools, w.From.Pool)
	if w.From.Signer != nil {
		signs = *w.From.Signer == c.Lane.Sender
	}
	return signs && w.Chain == c.Lane.Chain && TakesKey(c.Lane.Key, c.OnlyAsked, w.Key) && w.Position > c.After
}

// Fold applies changes to rows of the queue. A store loads the rows of all changes, applies
// the changes in order, and writes each [Folded].
type Fold struct{ rows map[chain.IntentID]*Folded }

// Folded is a row before and after the changes.
type Folded struct {
	Was, Is *Entry // nil means that there is no row
	// Opened means that Is was opened by the changes: the store inserts it, in the place of
	// Was if there was a row.
	Opened bool
	// Moved means that the changes have set lane or claim of a row that they did not open.
	Moved bool
}

// NewFold begins with the rows that are in the store.
func NewFold(stored []Entry) *Fold {
	f := &Fold{map[chain.IntentID]*Folded{}}
	for _, e := range stored {
		is := e
		f.rows[e.ID] = &Folded{Was: &e, Is: &is}
	}
	return f
}

// Apply makes one change. Of an intent without a row only Open does anything.
func (f *Fold) Apply(c Change) {
	r := f.rows[c.ID]
	if r == nil {
		r = &Folded{}
		f.rows[c.ID] = r
	}
	switch {
	case c.Open != nil:
		if r.Is == nil {
			r.Is, r.Opened = &Entry{Waiting: *c.Open}, true
		}
	case r.Is == nil:
	case c.Place != nil:
		r.Is.Release()
		r.Is.Lane = &chain.Sequence{Chain: r.Is.Chain, Sender: c.Place.Signer, Key: c.Place.NonceKey}
		r.Moved = !r.Opened
	case c.Requeue:
		if r.Is.Holder == "" {
			r.Is.Release()
			r.Moved = !r.Opened
		}
	case c.Close:
		r.Is, r.Opened, r.Moved = nil, false, false
	default:
		panic(fmt.Sprintf("intent: a change of nothing to %s", c.ID))
	}
}

// Rows lists the rows that the changes concern, ordered by intent.
func (f *Fold) Rows() []Folded {
	var all []Folded
	for _, r := range f.rows {
		if r.Was != nil || r.Is != nil {
			all = append(all, *r)
		}
	}
	id := func(r Folded) chain.IntentID {
		if r.Is != nil {
			return r.Is.ID
		}
		return r.Was.ID
	}
	slices.SortFunc(all, func(a, b Folded) int {
		x, y := id(a), id(b)
		return slices.Compare(x[:], y[:])
	})
	return all
}

// Choose picks the rows that a claim is given, of those that a store found.
//
// Clients take turns, beginning with the first one behind [Claim.Turn] in the order of their
// names: each gets one intent before any gets a second. A client's intents go in the order of
// their positions. In an ordering group an intent is given only if every earlier row of the
// group is in the claimant's lane, or is given before it; and none is in another lane.
//
// Found has, of each client, at least the first Limit rows that can be given. Of an ordering
// group it has the waiting rows from the first one on; a store leaves out groups of which a
// row is in another lane.
func (c Claim) Choose(found []Entry) []Claimed {
	blocked := map[Row]bool{}
	for _, e := range found {
		if e.Row.Order != "" && e.Lane != nil && !e.isIn(c) {
			blocked[e.Row] = true
		}
	}
	byClient, last := map[string][]Claimed{}, map[Row]chain.IntentID{}
	for _, e := range slices.SortedFunc(slices.Values(found), byPosition) {
		grouped := e.Row.Order != ""
		switch {
		case e.Lane != nil:
			if grouped {
				last[e.Row] = e.ID
			}
			continue
		case blocked[e.Row]:
			continue
		case !c.Fits(e.Waiting):
			blocked[e.Row] = grouped
			continue
		}
		given := Claimed{Waiting: e.Waiting}
		if grouped {
			if given.Behind = e.Behind; given.Behind.IsZero() {
				given.Behind = last[e.Row]
			}
			last[e.Row] = e.ID
		}
		byClient[e.Client] = append(byClient[e.Client], given)
	}
	return fair.Deal(c.Turn, c.Limit, byClient)
}

func byPosition(a, b Entry) int { return cmp.Compare(a.Position, b.Position) }
