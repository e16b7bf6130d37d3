package lane

import (
	"cmp"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Slot is a nonce that was reserved and is not closed.
type Slot struct {
	Nonce uint64
	// Intent holds the nonce; zero: none. Filled means that a no-op is to use it up instead of an
	// intent.
	Intent chain.IntentID
	Filled bool
	// Since is when it was last reserved, released, reclaimed or filled, in whole milliseconds.
	Since time.Time
	// Attempts are all attempts ever signed for the nonce, in order. Any of them may land.
	Attempts []Made
	// Landed is the attempt in a block that is not final; nil if no block contains one.
	Landed *Landing
}

// Made is one attempt.
type Made struct {
	Intent chain.IntentID // zero: a no-op
	Hash   chain.Hash
	Fee    chain.Fee
	At     time.Time // in whole milliseconds
}

// IsFree reports whether the nonce may be reserved again.
func (s Slot) IsFree() bool {
	return s.Intent.IsZero() && !s.Filled
}

// attempt returns the attempt with a hash.
func (s Slot) attempt(hash chain.Hash) (Made, bool) {
	i := slices.IndexFunc(s.Attempts, func(m Made) bool { return m.Hash == hash })
	if i < 0 {
		return Made{}, false
	}
	return s.Attempts[i], true
}

// millis rounds a time down to milliseconds, as states store it.
func millis(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }

// slots are ordered by rising nonce. They are immutable, because successive states share them.
type slots []*Slot

func (all slots) at(nonce uint64) (int, bool) {
	return slices.BinarySearchFunc(all, nonce, func(s *Slot, n uint64) int { return cmp.Compare(s.Nonce, n) })
}

// with returns a copy with slots added, each replacing a slot with the same nonce.
func (all slots) with(news ...Slot) slots {
	grown := make(slots, len(all), len(all)+len(news))
	copy(grown, all)
	for _, s := range news {
		if i, found := grown.at(s.Nonce); found {
			grown[i] = &s
		} else {
			grown = slices.Insert(grown, i, &s)
		}
	}
	return grown
}

// without returns the slots except one.
func (all slots) without(nonce uint64) slots {
	i, found := all.at(nonce)
	if !found {
		return all
	}
	return slices.Concat(all[:i], all[i+1:])
}

// Span is the range of nonces from First up to, but not including, End.
type Span struct{ First, End uint64 }

// skipped lists the spans that the cursor jumped over, in rising order with a gap between any
// two. It is immutable.
type skipped []Span

// with adds a span above all others.
func (all skipped) with(s Span) skipped {
	n := len(all)
	switch {
	case s.First >= s.End:
		return all
	case n > 0 && all[n-1].End == s.First:
		return append(slices.Clone(all[:n-1]), Span{all[n-1].First, s.End})
	}
	return append(slices.Clone(all), s)
}

// without removes the nonces of a span.
func (all skipped) without(out Span) skipped {
	var left skipped
	for _, s := range all {
		for _, part := range []Span{{s.First, min(s.End, out.First)}, {max(s.First, out.End), s.End}} {
			if part.First < part.End {
				left = append(left, part)
			}
		}
	}
	return left
}

// from returns the rest of a span from a nonce on; empty if the nonce is in no span.
func (all skipped) from(nonce uint64) Span {
	for _, s := range all {
		if s.First <= nonce && nonce < s.End {
			return Span{nonce, s.End}
		}
	}
	return Span{nonce, nonce}
}
