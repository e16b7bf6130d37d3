package intents_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
)

// Waiting returns a chain's oldest intents without a nonce, for any of the given signers and
// pools. An intent whose nonce was taken back keeps its place.
func TestWaiting(t *testing.T) {
	engines(t, func(t *testing.T, e engine) {
		h := newHistory(t)
		for n := range lives {
			h.live(t, n)
		}
		back := 9 // has a nonce, and gives it back
		h.command(t, back, intent.Requeue{Assignment: 1, Token: 1, Evidence: intent.Evidence{Kind: intent.Released}, At: epoch})
		h.project(t, e.live)
		expect := func(on chain.ID, from []string, limit int) (want []chain.IntentID) {
			for n := range lives {
				r := asked(n)
				named := false
				for _, name := range from {
					named = named || name == r.From.Name()
				}
				if (n%8 == 0 || n == back) && r.Chain == on && named && len(want) < limit {
					want = append(want, r.ID())
				}
			}
			return want
		}
		pool, account := asked(0).From.Name(), asked(back).From.Name()
		met := 0
		for _, c := range []struct {
			on    chain.ID
			from  []string
			limit int
		}{
			{1, []string{pool}, 10}, {1, []string{pool}, 2}, {2, []string{account}, 10}, {1, []string{account, pool}, 10},
			{2, []string{pool}, 10}, {3, []string{pool, account}, 10}, {1, []string{"pool:cold"}, 10},
		} {
			rows, err := intents.Waiting(t.Context(), e.live, c.on, c.from, c.limit)
			check(t, err)
			var got []chain.IntentID
			for _, row := range rows {
				got = append(got, row.State.Requested.ID)
			}
			if d := cmp.Diff(expect(c.on, c.from, c.limit), got); d != "" {
				t.Errorf("on %s for %q (-want +got):\n%s", c.on, c.from, d)
			}
			met += len(got)
		}
		if met < 9 {
			t.Errorf("only %d were met", met)
		}
	})
}
