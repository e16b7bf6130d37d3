package tx

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// However many sequences there are and rows in each: no more rows are kept than the limit, a
// sequence is either kept whole or named, and each gets the same share.
func TestRivalsAreShared(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		limit := rapid.IntRange(-1, 30).Draw(r, "limit")
		has := rapid.SliceOfN(rapid.IntRange(1, 40), 0, 40).Draw(r, "rows")
		n, each := ShareRivals(limit, len(has))
		if n > len(has) || n*each > max(limit, 0) || n > 0 && each == 0 || n < len(has) && n != max(limit, 0) {
			r.Fatalf("%d of %d sequences get %d rows each, of %d", n, len(has), each, limit)
		}
		var rows []Work
		for i, count := range has[:n] {
			for range count {
				rows = append(rows, Work{Sender: chain.Address{byte(i)}})
			}
		}
		kept, unread := CutRivals(rows, each)
		got, left := map[chain.Sequence]int{}, map[chain.Sequence]int{}
		for _, row := range kept {
			got[row.Named()]++
		}
		for _, s := range unread {
			left[s]++
		}
		for i, count := range has[:n] {
			s := chain.Sequence{Sender: chain.Address{byte(i)}}
			if got[s] != min(count, each) || left[s] != map[bool]int{true: 1}[count > each] {
				r.Fatalf("of %d rows, %d each, %d are kept, and it is named %d times", count, each, got[s], left[s])
			}
		}
	})
}
