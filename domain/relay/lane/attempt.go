package lane

import (
	"fmt"
	"slices"
)

// AttemptsMax bounds the attempts at one nonce: 64 attempts, each 10 % above the one before,
// reach 400 times the first fee. BumpsMax bounds an intent's attempts. The rest is reserved for
// no-ops, so that a cancel is always possible.
const (
	AttemptsMax = 64
	BumpsMax    = AttemptsMax - 8
)

func (s State) attempt(c Attempt) ([]Event, error) {
	rising(c.Signed, func(s Signed) uint64 { return s.Nonce })
	var events []Event
	for _, signed := range c.Signed {
		if signed.Hash.IsZero() || signed.Fee.MaxFee.Int().Lt(signed.Fee.MaxPriorityFee.Int()) {
			panic(fmt.Sprintf("lane: %+v cannot be an attempt", signed))
		}
		slot, err := s.find(signed.Nonce)
		if err != nil {
			return nil, err
		}
		if _, known := slot.attempt(signed.Hash); known {
			continue
		}
		if err := slot.admits(signed); err != nil {
			return nil, err
		}
		e := Attempted{
			Token: c.Token, Nonce: signed.Nonce, Intent: signed.Intent, Hash: signed.Hash, Fee: signed.Fee,
			Number: len(slot.Attempts) + 1, At: c.At,
		}
		if n := len(slot.Attempts); n > 0 {
			e.Replaces = slot.Attempts[n-1].Hash
		}
		events = append(events, e)
	}
	return events, nil
}

// admits refuses an attempt that may not be the slot's next.
func (s Slot) admits(signed Signed) error {
	n := len(s.Attempts)
	noop := signed.Intent.IsZero()
	switch {
	case s.Landed != nil:
		return ErrLanded.Because("%s is in block %d", s.Landed.Hash, s.Landed.Block.Number)
	case n >= AttemptsMax, !noop && n >= BumpsMax:
		return ErrAttempts.Because("nonce %d already has %d attempts", s.Nonce, n)
	case !noop && signed.Intent != s.Intent:
		return ErrIntent.Because("%s does not hold nonce %d", signed.Intent, s.Nonce)
	case noop && n == 0 && !s.Filled:
		return ErrIntent.Because("nonce %d was not filled with a no-op", s.Nonce)
	case n == 0:
		return nil
	}
	last := s.Attempts[n-1]
	if !noop && last.Intent.IsZero() {
		return ErrIntent.Because("a no-op already replaces the intent at nonce %d", s.Nonce)
	}
	for _, made := range s.Attempts {
		if !signed.Fee.Replaces(made.Fee) && !slices.Contains(signed.Unsent, made.Hash) {
			return ErrUnderpriced.Because("%s and %s do not replace %s and %s", signed.Fee.MaxFee, signed.Fee.MaxPriorityFee, made.Fee.MaxFee, made.Fee.MaxPriorityFee)
		}
	}
	return nil
}

func (s State) land(c Land) ([]Event, error) {
	rising(c.Landings, func(l Landing) uint64 { return l.Nonce })
	var events []Event
	for _, l := range c.Landings {
		if l.Block.IsZero() {
			panic(fmt.Sprintf("lane: nonce %d landed in no block", l.Nonce))
		}
		slot, open := s.Slot(l.Nonce)
		if !open && l.Nonce < s.Next {
			continue // closed: late news
		}
		made, ours := slot.attempt(l.Hash)
		if !ours {
			return nil, ErrHash.Because("%s is not an attempt at nonce %d", l.Hash, l.Nonce)
		}
		was := slot.Landed
		moved := was != nil && (was.Hash != l.Hash || was.Block.Hash != l.Block.Hash)
		switch {
		case was != nil && !moved && !l.Final:
			continue
		case moved && was.Block.Hash == l.Block.Hash:
			return nil, ErrLanded.Because("block %s contains %s at nonce %d, so it cannot contain %s", l.Block.Hash, was.Hash, l.Nonce, l.Hash)
		case moved:
			events = append(events, Unlanded{c.Token, []uint64{l.Nonce}, was.Block, l.Block, c.At})
		}
		events = append(events, Landed{c.Token, l.Nonce, made.Intent, l.Hash, l.Block, l.Status, l.Final, c.At})
	}
	return events, nil
}

func (s State) landed(e Landed) State {
	if e.Final {
		return s.closed(e.Nonce, e.Nonce+1)
	}
	slot, _ := s.Slot(e.Nonce)
	slot.Nonce = e.Nonce
	slot.Landed = &Landing{e.Nonce, e.Hash, e.Block, e.Status, false}
	s.open = s.open.with(slot)
	return s
}

func (s State) unland(c Unland) ([]Event, error) {
	if c.Was.IsZero() || c.Now.IsZero() || c.Was.Hash == c.Now.Hash {
		panic(fmt.Sprintf("lane: block %s does not contradict %s", c.Now.Hash, c.Was.Hash))
	}
	var nonces []uint64
	for _, slot := range slices.Backward(s.open) {
		if slot.Landed != nil && slot.Landed.Block.Hash == c.Was.Hash {
			nonces = append(nonces, slot.Nonce)
		}
	}
	if len(nonces) == 0 {
		return nil, nil
	}
	return []Event{Unlanded{c.Token, nonces, c.Was, c.Now, c.At}}, nil
}

func (s State) unlanded(e Unlanded) State {
	var news []Slot
	for _, nonce := range e.Nonces {
		if slot, open := s.Slot(nonce); open {
			slot.Landed = nil
			news = append(news, slot)
		}
	}
	s.open = s.open.with(news...)
	return s
}

func (s State) lose(c Lose) ([]Event, error) {
	rising(c.Losses, func(l Loss) uint64 { return l.Nonce })
	var events []Event
	for _, l := range c.Losses {
		slot, open := s.Slot(l.Nonce)
		switch {
		case !open && l.Nonce < s.Next:
			continue // closed: late news
		case !open:
			return nil, ErrNotOpen.Because("nonce %d, the cursor is at %d", l.Nonce, s.Next)
		case slot.Landed != nil:
			return nil, ErrLanded.Because("%s is in block %d", slot.Landed.Hash, slot.Landed.Block.Number)
		case !c.Witness.Final || !c.Witness.Holds() || c.Witness.Nonce <= l.Nonce:
			return nil, ErrWitness.Because("%d of %d endpoints must confirm for a final block that nonce %d is used; %q report %d", l.Nonce, c.Witness.Needed, c.Witness.Asked, c.Witness.Endpoints, c.Witness.Nonce)
		}
		for _, made := range slot.Attempts {
			if !slices.Contains(l.Absent, made.Hash) {
				return nil, ErrUnchecked.Because("%s was not looked up", made.Hash)
			}
		}
		if _, ours := slot.attempt(l.Rival); ours { // one endpoint has it, and another has not
			return nil, ErrWitness.Because("%s, reported as external use of nonce %d, is the lane's own attempt", l.Rival, l.Nonce)
		}
		events = append(events, Lost{c.Token, l.Nonce, slot.Intent, l.Rival, c.Witness, c.At})
	}
	return events, nil
}
