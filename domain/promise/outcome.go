package promise

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Outcome is what became of a transaction, whatever the blocks and times.
type Outcome struct {
	Status   tx.Status // as its owner is told
	Verdict  tx.Status // of the chain; absent while there is none
	Sealed   bool
	Canceled bool
}

// Outcomes is what became of every transaction that the log knows.
func (j *Judge) Outcomes() map[Key]Outcome {
	all := make(map[Key]Outcome, len(j.open)+len(j.ended))
	for key, l := range j.open {
		all[key] = Outcome{l.status, l.verdict, false, l.canceled}
	}
	for key, p := range j.ended {
		all[key] = Outcome{p.status, p.verdict, p.sealed, p.canceled}
	}
	return all
}

// Differ is P21 and P26, which n says: two runs of the same load, of which one had
// Redis or a right clock and the other had not, come to the same outcomes.
func Differ(n Number, a, b map[Key]Outcome) []Violation {
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	var found []Violation
	for _, key := range slices.SortedFunc(maps.Keys(keys), func(x, y Key) int {
		return cmp.Or(cmp.Compare(x.Chain, y.Chain), slices.Compare(x.Hash[:], y.Hash[:]))
	}) {
		one, inA := a[key]
		other, inB := b[key]
		if inA != inB || one != other {
			found = append(found, Violation{n, key.stream(), 0, fmt.Sprintf("one run came to %+v, the other to %+v", one, other)})
		}
	}
	return found
}
