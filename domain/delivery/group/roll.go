package group

import (
	"bytes"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// roll is a list of member runs, each sorted by hash and longer than the next. It is immutable,
// because successive states share their runs.
type roll [][]Member

func byHash(a, b Member) int { return bytes.Compare(a.Hash[:], b.Hash[:]) }

// with returns the roll with one more member. It merges runs that are not longer than the run
// after them, so that each member is copied once per doubling.
func (r roll) with(m Member) roll {
	run, n := []Member{m}, len(r)
	for ; n > 0 && len(r[n-1]) <= len(run); n-- {
		run = merge(r[n-1], run)
	}
	return append(r[:n:n], run)
}

func merge(a, b []Member) []Member {
	merged := make([]Member, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if byHash(a[0], b[0]) < 0 {
			merged, a = append(merged, a[0]), a[1:]
		} else {
			merged, b = append(merged, b[0]), b[1:]
		}
	}
	return append(append(merged, a...), b...)
}

func (r roll) find(hash chain.Hash) (Member, bool) {
	for _, run := range r {
		if i, found := slices.BinarySearchFunc(run, Member{Hash: hash}, byHash); found {
			return run[i], true
		}
	}
	return Member{}, false
}
