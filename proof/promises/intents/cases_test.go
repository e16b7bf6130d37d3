package intents_test

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// The first intent of an ordering group is no case of P35: only the later ones are.
func TestCases(t *testing.T) {
	s := newScript()
	ids := s.inRow("row", 3)
	for i, want := range []uint64{0, 1, 3} {
		s.log(ids[i], assigned(1, 1, uint64(i)))
		cases := s.judge.Cases()
		if got := cases.Judged()[promises.P35]; got != want {
			t.Errorf("with %d in a row there are %d cases, want %d", i+1, got, want)
		}
	}
	s.expect(t, 0)
}
