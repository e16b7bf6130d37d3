package lanes_test

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// A lane with a single holder has no case of fencing; from the second holder on, each event is a
// case. A nonce that follows others is a case of the cursor.
func TestCases(t *testing.T) {
	s := newScript(t)
	cases := func() map[promises.Number]uint64 {
		all := s.judge.Cases()
		return all.Judged()
	}
	s.log(opened(1), advanced(0, 5), reserved(5, 1))
	if got := cases(); got[promises.P7] != 0 || got[promises.P4] != 1 || got[promises.P6] != 2 {
		t.Errorf("with one holder there are the cases %v", got)
	}
	s.log(opened(2), lane.Reserved{Token: 2, First: 6})
	if got := cases(); got[promises.P7] != 2 {
		t.Errorf("with two holders there are the cases %v", got)
	}
	if len(s.found) > 0 {
		t.Errorf("found %v", s.found)
	}
}
