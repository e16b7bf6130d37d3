package main_test

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// A year of monthly payments, three times: paid to the end, canceled half-way by the owner's
// signature, and invalidated by the owner on the chain.
func TestSubscription(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--no-mining")
		w.broken[promises.P15] = "the chain is months ahead of the clock that sends are timed by"
		s := w.service(t)
		s.Args = append(s.Args, "--max-valid-after", "43800h") // three years of payments are signed in advance
		check(t, s.Start(w.ctx))
		became := map[any]int{}
		for _, line := range w.script(t, "subscription.mjs", s.URL, w.chain.URL()) {
			became[line["kind"]]++
		}
		if became["paid"] != 18 || became["stopped"] != 6 || became["stale"] != 12 {
			t.Errorf("payments became %v", became)
		}
		payee, err := chain.ParseAddress("0x00000000000000000000000000000000000077bb")
		check(t, err)
		w.paidOnce(t, payee, 18)
		check(t, s.Stop(w.ctx))
	})
}
