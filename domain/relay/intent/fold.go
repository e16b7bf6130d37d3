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
	// Lane is the lane in which the intent has a nonce, or for which Holder has claimed it; nil
	// if the intent can be claimed.
	Lane   *chain.Sequence
	Holder string    // the claim's holder; empty without a claim
	Until  time.Time // end of the claim; zero without a claim
	// Asleep: the row's NotBefore was still to come at the last claim. Its ordering group waits for it.
	Asleep bool
	// Behind is the row right before this row in its ordering group, as looked up by a store that
	// does not load that row; zero otherwise.
	Behind chain.IntentID
}

// Release ends the row's claim or takes its nonce away, so that the intent waits again.
func (e *Entry) Release() { e.Lane, e.Holder, e.Until = nil, "", time.Time{} }

// isIn reports whether the intent has a nonce in the claim's lane, or is claimed for that lane by
// the same holder.
func (e *Entry) isIn(c Claim) bool {
	return e.Lane != nil && *e.Lane == c.Lane && (e.Holder == "" || e.Holder == c.Holder)
}

// TakesKey reports whether a lane of a nonce key accepts an intent that asks for key `asked`, nil
// for none. See [Claim.OnlyAsked].
func TakesKey(lane chain.NonceKey, onlyAsked bool, asked *chain.NonceKey) bool {
	if asked == nil {
		return !onlyAsked
	}
	return *asked == lane
}

// Keys returns the nonce keys that claimed intents may ask for; nil stands for no key.
func (c Claim) Keys() []*chain.NonceKey {
	if c.OnlyAsked {
		return []*chain.NonceKey{&c.Lane.Key}
	}
	return []*chain.NonceKey{nil, &c.Lane.Key}
}

// Fits reports whether the claim's lane can carry the intent out: chain, signer or pool, and
// nonce key match, and its position is after [Claim.After].
func (c Claim) Fits(w Waiting) bool {
	signs := slices.Contains(c.Pools, w.From.Pool)
	if w.From.Signer != nil {
		signs = *w.From.Signer == c.Lane.Sender
	}
	return signs && w.Chain == c.Lane.Chain && TakesKey(c.Lane.Key, c.OnlyAsked, w.Key) && w.Position > c.After
}

// Followers returns how many waiting rows of an ordering group a store looks up, if the first
// waiting row of so many other groups of the client has a lower position and fits. These rows are
// given before any row of the group, so that the later rows of the group are beyond the limit. One
// client's groups add up to Limit*(Limit+1)/2 rows at most, however many groups it has.
func (c Claim) Followers(ahead int) int { return max(c.Limit-ahead, 0) }

// Fold applies changes to rows of the queue. A store loads the rows of all changes, applies
// the changes in order, and writes each [Folded].
type Fold struct{ rows map[chain.IntentID]*Folded }

// Folded is a row before and after the changes.
type Folded struct {
	Was, Is *Entry // nil: no row
	// Opened means that the changes opened Is: the store inserts it, in place of Was if there was
	// a row.
	Opened bool
	// Moved means that the changes set the lane or claim of a row that they did not open.
	Moved bool
}

// NewFold returns a fold of the stored rows.
func NewFold(stored []Entry) *Fold {
	f := &Fold{map[chain.IntentID]*Folded{}}
	for _, e := range stored {
		is := e
		f.rows[e.ID] = &Folded{Was: &e, Is: &is}
	}
	return f
}

// Apply applies one change. Without a row, only Open has an effect.
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

// Rows returns the rows that the changes touch, ordered by intent.
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

// Choose picks the rows for a claim from the rows that a store found.
//
// Clients take turns, beginning with the first name after [Claim.Turn]: each gets one intent
// before any gets a second. A client's intents are given in the order of their positions. An
// intent in an ordering group is given only if every earlier row of the group is in the claim's
// lane or is given before it, and no row of the group is in another lane.
//
// Found must contain, for each client, at least the first Limit rows that can be given. For an
// ordering group it contains the waiting rows from the first one on. A store leaves out groups
// that have a row in another lane, or whose first waiting row sleeps or does not fit, and rows beyond
// [Claim.Followers].
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
		case e.Asleep, !c.Fits(e.Waiting):
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
