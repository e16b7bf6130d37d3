package safeguards_test

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// A stop is a case once it has lasted so long that a violation would have been seen.
func TestCases(t *testing.T) {
	all := safeguard.Scope{Kind: safeguard.Deployment}
	for name, c := range map[string]struct {
		of   promises.Number
		want uint64
		play func(s *script)
	}{
		"halted for a moment": {promises.P32, 0, func(s *script) { s.switches(halted(all), goesOn(all)) }},
		"halted":              {promises.P32, 1, func(s *script) { s.switches(halted(all)); s.wait(); s.switches(goesOn(all)) }},
		"halted still":        {promises.P32, 0, func(s *script) { s.switches(halted(all)); s.wait() }},
		"paused for a moment": {promises.P34, 0, func(s *script) { s.signer(registered(), signer.Paused{Actor: "ada"}, signer.Resumed{Actor: "ada"}) }},
		"paused": {promises.P34, 1, func(s *script) {
			s.signer(registered(), signer.Paused{Actor: "ada"})
			s.wait()
			s.signer(signer.Resumed{Actor: "ada"})
		}},
		"serving": {promises.P34, 0, func(s *script) { s.signer(registered()); s.wait(); s.signer(signer.Resumed{Actor: "ada"}) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			c.play(s)
			cases := s.judge.Cases()
			if got := cases.Judged()[c.of]; got != c.want || len(s.found) > 0 {
				t.Errorf("%d cases of %s, want %d; found %v", got, c.of, c.want, s.found)
			}
		})
	}
}
