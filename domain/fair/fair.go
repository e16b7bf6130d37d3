// Package fair shares queues, slots and lanes among clients by turns.
package fair

import (
	"cmp"
	"maps"
	"slices"
)

// Deal takes at most limit of the clients' items: one of each client before a second of any,
// beginning with the first client after turn by name. A client's items keep their order.
func Deal[T any](turn string, limit int, byClient map[string][]T) (dealt []T) {
	clients := InTurn(turn, slices.Collect(maps.Keys(byClient)))
	for place, more := 0, true; more && len(dealt) < limit; place++ {
		more = false
		for _, client := range clients {
			if items := byClient[client]; place < len(items) && len(dealt) < limit {
				dealt, more = append(dealt, items[place]), true
			}
		}
	}
	return dealt
}

// InTurn sorts clients by name, beginning with the first one after turn.
func InTurn(turn string, clients []string) []string {
	half := func(client string) int {
		if client > turn {
			return 0
		}
		return 1
	}
	return slices.SortedFunc(slices.Values(clients), func(a, b string) int {
		return cmp.Or(cmp.Compare(half(a), half(b)), cmp.Compare(a, b))
	})
}
