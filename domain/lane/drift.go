package lane

// Drift is how far the nonce that the chain wants next, as endpoints have just said, lies
// from what is recorded here. Above 0 it is how many nonces the chain has used that
// nothing recorded here has: somebody else uses the key, or the news are late. Below 0 it
// is how many are used here, by blocks up to the one that the endpoints spoke of, and not
// on the chain: they speak of another chain, or of one that has lost its blocks. A lane
// that does not know yet where it begins has none.
func (s State) Drift(w Witness) int64 {
	if !s.Known {
		return 0
	}
	first, ahead := s.Next, uint64(0) // the first nonce that is not used
	if w.Nonce > s.Next {
		ahead = w.Nonce - s.Next
	}
	for _, slot := range s.open {
		used := slot.Landed != nil && slot.Landed.Block.Number <= w.Block.Number
		if !used {
			first = min(first, slot.Nonce)
		}
		if slot.Nonce < w.Nonce && slot.Landed == nil {
			ahead++
		}
	}
	if w.Nonce < first {
		return -int64(min(first-w.Nonce, 1<<62)) //nolint:gosec // bounded
	}
	return int64(min(ahead, 1<<62)) //nolint:gosec // bounded
}

// Front is the first nonce that was signed for and that no block has used; false if there
// is none.
func (s State) Front() (Slot, bool) {
	for _, slot := range s.open {
		if len(slot.Attempts) > 0 && slot.Landed == nil {
			return *slot, true
		}
	}
	return Slot{}, false
}
