package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// Intents is the work queue of intents; see commands/relayer.Queue for what it promises.
type Intents struct{ *Store }

// Intents is the work queue of intents.
func (s *Store) Intents() Intents { return Intents{s} }

// wanted is an intent in its queue.
type wanted struct {
	intent.Waiting
	lane   *chain.Sequence // that it has a nonce in, or that has claimed it; nil: it waits
	holder string          // of the claim; empty: there is none
	until  time.Time       // the claim runs
}

// drop has it wait again.
func (w *wanted) drop() { w.lane, w.holder, w.until = nil, "", time.Time{} }

// Apply makes changes, in order, and moves the reader's checkpoint, together.
func (s Intents) Apply(ctx context.Context, reader string, from, to event.Position, changes []intent.Change) error {
	return s.applied(ctx, reader, from, to, func() {
		for _, c := range changes {
			s.changeIntent(c)
		}
	})
}

func (d *data) changeIntent(c intent.Change) {
	at := slices.IndexFunc(d.intents, func(w *wanted) bool { return w.ID == c.ID })
	switch {
	case c.Open != nil:
		if at >= 0 {
			return
		}
		at, _ = slices.BinarySearchFunc(d.intents, c.Open.Position, func(w *wanted, p event.Position) int { return cmp.Compare(w.Position, p) })
		d.intents = slices.Insert(d.intents, at, &wanted{Waiting: *c.Open})
	case at < 0:
	case c.Place != nil:
		w := d.intents[at]
		w.drop()
		w.lane = &chain.Sequence{Chain: w.Chain, Sender: c.Place.Signer, Key: c.Place.NonceKey}
	case c.Requeue:
		if w := d.intents[at]; w.holder == "" {
			w.drop()
		}
	case c.Close:
		d.intents = slices.Delete(d.intents, at, at+1)
	default:
		panic(fmt.Sprintf("memory: a change of nothing to %s", c.ID))
	}
}

// Claim gives what waits and fits the lane to a holder, the earliest first.
func (s Intents) Claim(ctx context.Context, c intent.Claim) (claimed []intent.Claimed, err error) {
	err = s.enter(ctx, func() {
		now := micro(s.now())
		for _, w := range s.intents {
			if w.holder != "" && !w.until.After(now) {
				w.drop()
			}
		}
		for _, w := range s.intents {
			if len(claimed) == c.Limit {
				return
			}
			if w.lane != nil || !fits(w, c) {
				continue
			}
			if behind, turn := s.turnOf(w, c); turn {
				w.lane, w.holder, w.until = &c.Lane, c.Holder, micro(now.Add(c.TTL))
				claimed = append(claimed, intent.Claimed{Waiting: w.Waiting, Behind: behind})
			}
		}
	})
	return claimed, err
}

// fits reports whether an intent may be carried out in the lane that claims.
func fits(w *wanted, c intent.Claim) bool {
	by := slices.Contains(c.Pools, w.From.Pool)
	if w.From.Signer != nil {
		by = *w.From.Signer == c.Lane.Sender
	}
	return by && w.Chain == c.Lane.Chain && (w.Key == nil || *w.Key == c.Lane.Key) && w.Position > c.After
}

// turnOf reports whether an intent is not kept waiting by others of its row, and what
// stands right before it: each before it has to be in this lane, with a nonce or claimed
// by this holder, and none behind it may be in another.
func (d *data) turnOf(w *wanted, c intent.Claim) (behind chain.IntentID, turn bool) {
	if w.Row.Order == "" {
		return behind, true
	}
	for _, o := range d.intents {
		if o == w || o.Row != w.Row {
			continue
		}
		here := o.lane != nil && *o.lane == c.Lane && (o.holder == "" || o.holder == c.Holder)
		if before := o.Position < w.Position; !here && (before || o.lane != nil) {
			return behind, false
		} else if before {
			behind = o.ID // they are by position
		}
	}
	return behind, true
}

// Return ends a holder's claims of these intents.
func (s Intents) Return(ctx context.Context, holder string, ids []chain.IntentID) error {
	return s.enter(ctx, func() {
		for _, w := range s.intents {
			if w.holder != "" && w.holder == holder && slices.Contains(ids, w.ID) {
				w.drop()
			}
		}
	})
}

// Demand counts a chain's rows: those that wait by whom and under which key they want to
// be carried out, those that have a nonce by their lane.
func (s Intents) Demand(ctx context.Context, id chain.ID) (all []intent.Demand, err error) {
	err = s.enter(ctx, func() {
		for _, w := range s.intents {
			switch {
			case w.Chain != id:
			case w.lane != nil && w.holder == "":
				all = append(all, intent.Demand{From: intent.From{Signer: &w.lane.Sender}, Key: &w.lane.Key, Assigned: 1})
			default:
				all = append(all, intent.Demand{From: w.From, Key: w.Key, Waiting: 1})
			}
		}
	})
	return intent.Sum(all), err
}
