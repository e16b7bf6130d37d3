package lane

import (
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// end is the first number above all nonces. By EIP-2681 the highest nonce of a transaction is
// 2^64-2.
const end = 1<<64 - 1

func (s State) openFor(c Open) ([]Event, error) {
	switch {
	case c.Holder == "" || len(c.Holder) > HolderMaxBytes || c.Token == 0:
		panic(fmt.Sprintf("lane: %q opens with token %d", c.Holder, c.Token))
	case c.Token == s.Token && c.Holder == s.Holder:
		return nil, nil
	case c.Token != s.Token+1:
		return nil, ErrFenced.Because("the next token is %d, not %d", s.Token+1, c.Token)
	}
	return []Event{Opened(c)}, nil
}

func (s State) advance(c Advance) ([]Event, error) {
	switch {
	case s.Known && c.Witness.Nonce <= s.Next:
		return nil, nil // the cursor never goes back
	case !c.Witness.Holds():
		return nil, ErrWitness.Because("%d of %d endpoints must agree on nonce %d, but only %q do", c.Witness.Needed, c.Witness.Asked, c.Witness.Nonce, c.Witness.Endpoints)
	}
	return []Event{Advanced{c.Token, s.Next, c.Witness, c.At}}, nil
}

func (s State) reserve(c Reserve) ([]Event, error) {
	if len(c.Intents) == 0 || len(c.Intents) > ReserveMax {
		panic(fmt.Sprintf("lane: %d intents reserve by one command", len(c.Intents)))
	}
	held := make(map[chain.IntentID]bool, len(s.open)+len(c.Intents))
	for _, slot := range s.open {
		held[slot.Intent] = true
	}
	var wanting []chain.IntentID
	for _, id := range c.Intents {
		if id.IsZero() {
			panic("lane: an intent without an id")
		}
		if !held[id] {
			held[id], wanting = true, append(wanting, id)
		}
	}
	if len(wanting) > 0 && !s.Known {
		return nil, ErrUnlearned
	}
	wanting = wanting[:min(len(wanting), max(c.Budget-s.InFlight(), 0))]
	if len(wanting) == 0 {
		return nil, nil
	}
	e := Reserved{Token: c.Token, First: s.Next, At: c.At}
	for _, slot := range s.open {
		if slot.IsFree() && len(wanting) > 0 {
			e.Reissued, wanting = append(e.Reissued, Issue{slot.Nonce, wanting[0]}), wanting[1:]
		}
	}
	wanting = wanting[:min(len(wanting), max(OpenMax-s.Open(), 0))]
	if uint64(len(wanting)) > end-s.Next {
		return nil, ErrExhausted
	}
	if e.Intents = wanting; len(e.Intents) == 0 && len(e.Reissued) == 0 {
		return nil, nil
	}
	return []Event{e}, nil
}

func (s State) reserved(e Reserved) State {
	news := make([]Slot, 0, len(e.Reissued)+len(e.Intents))
	for _, i := range e.Reissued {
		news = append(news, Slot{Nonce: i.Nonce, Intent: i.Intent, Since: millis(e.At)})
	}
	for i, id := range e.Intents {
		news = append(news, Slot{Nonce: e.First + uint64(i), Intent: id, Since: millis(e.At)})
	}
	s.open, s.Next = s.open.with(news...), s.Next+uint64(len(e.Intents))
	return s
}

func (s State) release(c Release) ([]Event, error) {
	bounded(len(c.Intents))
	var events []Event
	met := map[chain.IntentID]bool{}
	for _, id := range c.Intents {
		slot, holds := s.Held(id)
		switch {
		case !holds || met[id]:
			continue
		case len(slot.Attempts) > 0:
			return nil, ErrAttempted.Because("%s was signed for nonce %d", slot.Attempts[0].Hash, slot.Nonce)
		}
		met[id], events = true, append(events, Released{c.Token, slot.Nonce, id, c.Reason, c.At})
	}
	return events, nil
}

// reasonFilled is the release reason of an intent that lost its nonce to a no-op.
const reasonFilled = "filled"

func (s State) fill(c Fill) ([]Event, error) {
	rising(c.Nonces, func(n uint64) uint64 { return n })
	var highest uint64 // the highest nonce with an attempt
	for _, slot := range s.open {
		if len(slot.Attempts) > 0 {
			highest = slot.Nonce
		}
	}
	var events []Event
	for _, nonce := range c.Nonces {
		slot, err := s.find(nonce)
		switch {
		case err != nil:
			return nil, err
		case slot.Filled:
			continue
		case len(slot.Attempts) > 0:
			return nil, ErrAttempted.Because("%s was signed for nonce %d", slot.Attempts[0].Hash, nonce)
		case nonce > highest:
			return nil, ErrNoHole.Because("nothing above nonce %d has an attempt", nonce)
		case !slot.Intent.IsZero():
			events = append(events, Released{c.Token, nonce, slot.Intent, reasonFilled, c.At})
		}
		events = append(events, Filled{c.Token, nonce, c.At})
	}
	return events, nil
}

func (s State) reclaim(c Reclaim) ([]Event, error) {
	if c.Count == 0 || c.Count > ReserveMax {
		panic(fmt.Sprintf("lane: %d nonces are reclaimed by one command", c.Count))
	}
	gap := s.Gap(c.Witness.Nonce)
	switch {
	case gap.First == gap.End:
		return nil, nil
	case !c.Witness.Holds():
		return nil, ErrWitness.Because("%d of %d endpoints must agree on nonce %d, but only %q do", c.Witness.Needed, c.Witness.Asked, c.Witness.Nonce, c.Witness.Endpoints)
	}
	return []Event{Reclaimed{c.Token, min(c.Count, gap.End-gap.First), c.Witness, c.At}}, nil
}

func (s State) reclaimed(e Reclaimed) State {
	first := e.Witness.Nonce
	news := make([]Slot, 0, e.Count)
	for n := first; n < first+e.Count; n++ {
		news = append(news, Slot{Nonce: n, Since: millis(e.At)})
	}
	s.open, s.skipped = s.open.with(news...), s.skipped.without(Span{first, first + e.Count})
	return s
}

// find returns the open slot of a command's nonce.
func (s State) find(nonce uint64) (Slot, error) {
	slot, open := s.Slot(nonce)
	if !open {
		return Slot{}, ErrNotOpen.Because("nonce %d, the cursor is at %d", nonce, s.Next)
	}
	return slot, nil
}

// bounded panics if a command has no nonces, or too many for one append.
func bounded(n int) {
	if n == 0 || n > BatchMax {
		panic(fmt.Sprintf("lane: a command about %d nonces", n))
	}
}

// rising panics if a command's nonces do not strictly rise, or are too many for one append.
func rising[T any](all []T, nonce func(T) uint64) {
	bounded(len(all))
	for i := range all[1:] {
		if nonce(all[i+1]) <= nonce(all[i]) {
			panic(fmt.Sprintf("lane: nonce %d after %d in one command", nonce(all[i+1]), nonce(all[i])))
		}
	}
}
