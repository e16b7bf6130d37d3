package promises_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// A promise has cases exactly if an event occurred that could have broken it.
func TestCases(t *testing.T) {
	settings := promises.Settings{Decode: decode}
	usual := []promises.Number{promises.P1, promises.P2, promises.P8, promises.P9, promises.P10, promises.P11, promises.P25, promises.P29, promises.P30}
	for name, c := range map[string]struct {
		more []promises.Number
		play func(s *script)
	}{
		"nothing beside it": {nil, func(*script) {}},
		"a window":          {[]promises.Number{promises.P15}, func(s *script) { s.accept(short); s.send(short) }},
		"sent twice":        {[]promises.Number{promises.P17}, func(s *script) { s.accept(rival); s.took(rival, 1); s.took(rival, 2) }},
		"bytes are erased":  {[]promises.Number{promises.P12}, func(s *script) { s.log(alpha, tx.PayloadErased{}) }},
		"shown": {[]promises.Number{promises.P24}, func(s *script) {
			s.call(promises.Call{Kind: promises.Read, Hash: alpha.hash(), Result: promises.OK, Status: tx.StatusExecuted})
		}},
		"turned away": {[]promises.Number{promises.P27}, func(s *script) { s.call(promises.Call{Kind: promises.Submit, Overload: true, Later: true}) }},
		"another branch": {[]promises.Number{promises.P13}, func(s *script) {
			s.accept(early)
			s.log(early, minedIn(blockOf(7, "other")), tx.Reorged{Was: blockOf(7, "other"), Now: blockOf(7, "main")})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(settings)
			executed(s, alpha)
			s.finish(promises.End{Quiet: true})
			c.play(s)
			cases := s.judge.Cases()
			got := slices.Sorted(maps.Keys(cases.Judged()))
			want := slices.Sorted(slices.Values(append(slices.Clone(usual), c.more...)))
			if !slices.Equal(got, want) {
				t.Errorf("cases of %v, want %v", got, want)
			}
			s.expect(t, 0)
		})
	}
	var both promises.Cases
	for range 2 {
		both.Merge(promises.Cases{promises.P4: 3})
	}
	if got := both.Judged(); !maps.Equal(got, map[promises.Number]uint64{promises.P4: 6}) {
		t.Errorf("twice three cases are %v", got)
	}
}
