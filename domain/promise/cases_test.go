package promise_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/promise"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// A promise has cases exactly if an event occurred that could have broken it.
func TestCases(t *testing.T) {
	settings := promise.Settings{Decode: decode}
	usual := []promise.Number{promise.P1, promise.P2, promise.P8, promise.P9, promise.P10, promise.P11, promise.P25, promise.P29, promise.P30}
	for name, c := range map[string]struct {
		more []promise.Number
		play func(s *script)
	}{
		"nothing beside it": {nil, func(*script) {}},
		"a window":          {[]promise.Number{promise.P15}, func(s *script) { s.accept(short); s.send(short) }},
		"sent twice":        {[]promise.Number{promise.P17}, func(s *script) { s.accept(rival); s.took(rival, 1); s.took(rival, 2) }},
		"bytes are erased":  {[]promise.Number{promise.P12}, func(s *script) { s.log(alpha, tx.PayloadErased{}) }},
		"shown": {[]promise.Number{promise.P24}, func(s *script) {
			s.call(promise.Call{Kind: promise.Read, Hash: alpha.hash(), Result: promise.OK, Status: tx.StatusExecuted})
		}},
		"turned away": {[]promise.Number{promise.P27}, func(s *script) { s.call(promise.Call{Kind: promise.Submit, Overload: true, Later: true}) }},
		"another branch": {[]promise.Number{promise.P13}, func(s *script) {
			s.accept(early)
			s.log(early, minedIn(blockOf(7, "other")), tx.Reorged{Was: blockOf(7, "other"), Now: blockOf(7, "main")})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(settings)
			executed(s, alpha)
			s.finish(promise.End{Quiet: true})
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
	var both promise.Cases
	for range 2 {
		both.Merge(promise.Cases{promise.P4: 3})
	}
	if got := both.Judged(); !maps.Equal(got, map[promise.Number]uint64{promise.P4: 6}) {
		t.Errorf("twice three cases are %v", got)
	}
}
