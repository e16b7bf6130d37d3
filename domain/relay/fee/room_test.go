package fee_test

import (
	"errors"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
)

// An intent's own ceiling must leave room for a rising base fee, or the intent gets no offer. Its
// own tip ceiling must reach the tips of slow intents. The room grows each time an intent gave
// way. A constant base fee needs no room; neither do replacements and no-ops.
func TestOwnCeilingLeavesRoom(t *testing.T) {
	moving := market(100, 1, 1)
	moving.Blocks[0].BaseFee = priced(99)
	terms := func(most float64, change ...func(*fee.Terms)) fee.Terms {
		t := fee.Terms{MaxFee: priced(most)}
		for _, c := range change {
			c(&t)
		}
		return t
	}
	times := func(n int) func(*fee.Terms) { return func(t *fee.Terms) { t.GaveWay = n } }
	bump := func(t *fee.Terms) { t.Replaces = &chain.Fee{MaxFee: priced(50)} }
	unsent := func(t *fee.Terms) { t.Unsent = &chain.Fee{MaxFee: priced(50)} }
	noop := func(t *fee.Terms) { t.NoOp = true }
	tip := func(most float64) func(*fee.Terms) {
		return func(t *fee.Terms) { t.MaxPriorityFee = priced(most) }
	}
	fast := func(t *fee.Terms) { t.Urgency = fee.Fast }
	wide := policy(func(p *fee.Policy) { p.Ceiling = priced(1000) })
	for _, c := range []struct {
		name   string
		market chain.Market
		terms  fee.Terms
		offers bool
	}{
		{"just below", moving, terms(113.4), false},
		{"an eighth", moving, terms(113.5), true},
		{"none that is known", market(100), terms(113.4), false},
		{"standing still", market(100, 1, 1), terms(100.5), true},
		{"none of its own", moving, terms(0), true},
		{"gave way once", moving, terms(163.4, times(1)), false},
		{"gave way once, with room", moving, terms(163.5, times(1)), true},
		{"gave way for ever", moving, terms(300.4, times(1<<40)), false},
		{"gave way for ever, with room", moving, terms(300.5, times(1<<40)), true},
		{"too little a tip", moving, terms(400, tip(0.9)), false},
		{"too little a tip, where the base fee stands still", market(100, 1, 1), terms(0, tip(0.9)), false},
		{"too little a tip, withheld", moving, terms(400, tip(0.9), unsent), true},
		{"the least tip, of empty blocks", market(100), terms(400, tip(0.5)), true},
		{"a slow tip", moving, terms(400, tip(1)), true},
		{"a slow tip for a fast intent", moving, terms(400, tip(1), fast), true},
		{"again", moving, terms(100.5, bump), true},
		{"again, withheld", moving, terms(100.5, unsent), true},
		{"a no-op", moving, terms(100.5, noop), true},
	} {
		_, err := wide.Offer(c.market, c.terms)
		if offers := err == nil; offers != c.offers || err != nil && !errors.Is(err, fee.ErrMarket) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
