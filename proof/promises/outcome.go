package promises

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Outcome is a transaction's final state, without blocks and times.
type Outcome struct {
	Status   tx.Status // as reported to its owner
	Verdict  tx.Status // of the chain; empty while there is none
	Sealed   bool
	Canceled bool
}

// Outcomes returns the outcome of every transaction in the log.
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

// Differ checks P21 or P26, as given by n: two runs with the same load have the same outcomes.
// One run lacks Redis or a correct clock.
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
