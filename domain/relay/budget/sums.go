package budget

import (
	"iter"
	"maps"
)

// sumsWide is the number of maps that sums are spread over. A batch changes a few accounts of
// perhaps a hundred thousand, and must leave the state before unchanged: only the maps with
// changed accounts are copied.
const sumsWide = 1024

// sums are the used sums of accounts; nil: nothing. They are immutable, because successive states
// share them and their parts.
type sums [sumsWide]map[Account]Sum

// Constants of 32-bit FNV-1a. Source: draft-eastlake-fnv, section 5.
const (
	fnvBasis = 2166136261
	fnvPrime = 16777619
)

// place returns the index of an account's map.
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

// of returns an account's used sum.
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

// edit is a copy of sums under change.
type edit struct {
	*sums
	own map[int]bool // maps that were copied already
}

// edit returns a copy to change.
func (s *sums) edit() edit {
	grown := &sums{}
	if s != nil {
		*grown = *s
	}
	return edit{grown, map[int]bool{}}
}

// set sets an account's used sum. A zero sum deletes the account.
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
