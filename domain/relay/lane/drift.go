package lane

// Drift returns the difference between the chain's next nonce, by the endpoints' latest answers,
// and the recorded one.
//
// Above 0 it is the number of nonces that the chain has used without a recorded landing: another
// sender uses the key, or the record is late. Below 0 it is the number of nonces recorded as
// used, in blocks up to the witness's block, that the chain has not used: the endpoints serve
// another chain, or have lost those blocks. It is 0 while the lane's first nonce is unknown.
func (s State) Drift(w Witness) int64 {
	if !s.Known {
		return 0
	}
	first, ahead := s.Next, uint64(0) // first is the lowest unused nonce
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

// Front returns the lowest nonce that is signed and not in a block; false if there is none.
func (s State) Front() (Slot, bool) {
	for _, slot := range s.open {
		if len(slot.Attempts) > 0 && slot.Landed == nil {
			return *slot, true
		}
	}
	return Slot{}, false
}
