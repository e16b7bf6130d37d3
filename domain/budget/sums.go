package budget

import (
	"iter"
	"maps"
)

// sumsWide is over how many maps sums are spread. A batch changes a few accounts of
// perhaps a hundred thousand, and the state before it must stay as it was: only the maps
// that have one of them are copied.
const sumsWide = 1024

// sums is what accounts have used. It is never changed: states that grew out of one
// another share it, and its parts. Nil is nothing.
type sums [sumsWide]map[Account]Sum

// FNV-1a's numbers, for 32 bits. Source: draft-eastlake-fnv, section 5.
const (
	fnvBasis = 2166136261
	fnvPrime = 16777619
)

// place is which of the maps has an account.
func place(a Account) int {
	h := uint32(fnvBasis)
	add := func(b byte) { h = (h ^ uint32(b)) * fnvPrime }
	for _, part := range [...]string{string(a.Kind), a.Client, a.Subject} {
		for i := range len(part) {
			add(part[i])
		}
		add(0)
	}
	for _, b := range a.Signer {
		add(b)
	}
	return int(h % sumsWide)
}

// of is what an account has used.
func (s *sums) of(a Account) Sum {
	if s == nil {
		return Sum{}
	}
	return s[place(a)][a]
}

func (s *sums) all() iter.Seq2[Account, Sum] {
	return func(yield func(Account, Sum) bool) {
		if s == nil {
			return
		}
		for _, part := range s {
			for a, sum := range part {
				if !yield(a, sum) {
					return
				}
			}
		}
	}
}

// edit is sums that are being changed.
type edit struct {
	*sums
	own map[int]bool // the parts that are not shared
}

// edit begins to change a copy.
func (s *sums) edit() edit {
	grown := &sums{}
	if s != nil {
		*grown = *s
	}
	return edit{grown, map[int]bool{}}
}

// set is what an account has used now. One that has used nothing is left out.
func (e edit) set(a Account, sum Sum) {
	i := place(a)
	if !e.own[i] {
		e.own[i], e.sums[i] = true, maps.Clone(e.sums[i])
	}
	switch {
	case sum == Sum{}:
		delete(e.sums[i], a)
	case e.sums[i] == nil:
		e.sums[i] = map[Account]Sum{a: sum}
	default:
		e.sums[i][a] = sum
	}
}
