package fee_test

import (
	"errors"
	"math"
	"testing"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

func TestPolicyCheck(t *testing.T) {
	if err := fee.Default().Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*fee.Policy){
		"a percentile below 0":        func(p *fee.Policy) { p.Slow.Percentile = -1 },
		"a percentile above 100":      func(p *fee.Policy) { p.Fast.Percentile = 101 },
		"a percentile of NaN":         func(p *fee.Policy) { p.Normal.Percentile = math.NaN() },
		"percentiles that are equal":  func(p *fee.Policy) { p.Normal.Percentile = p.Slow.Percentile },
		"headroom that falls":         func(p *fee.Policy) { p.Fast.Headroom = 0 },
		"premium that falls":          func(p *fee.Policy) { p.Fast.Premium = 0 },
		"too much headroom":           func(p *fee.Policy) { p.Fast.Headroom = 1001 },
		"no history":                  func(p *fee.Policy) { p.History = 0 },
		"a history without end":       func(p *fee.Policy) { p.History = math.MaxInt },
		"no ceiling":                  func(p *fee.Policy) { p.Ceiling = chain.Price{} },
		"a ceiling of 2^256-1":        func(p *fee.Policy) { p.Ceiling = highest },
		"a tip's above the fee's":     func(p *fee.Policy) { p.TipCeiling = chain.PriceOf(math.MaxUint64) },
		"the least above the ceiling": func(p *fee.Policy) { p.MinFee = chain.PriceOf(math.MaxUint64) },
		"no room above the least":     func(p *fee.Policy) { p.MinFee = p.Ceiling },
		"no room above the least tip": func(p *fee.Policy) { p.TipCeiling = p.MinTip },
		"the least tip above it":      func(p *fee.Policy) { p.TipCeiling = chain.PriceOf(1) },
		"a bump of 9 %":               func(p *fee.Policy) { p.Bump = 9 },
		"a bump without end":          func(p *fee.Policy) { p.Bump = math.MaxUint64 },
		"a margin without end":        func(p *fee.Policy) { p.GasMargin = math.MaxUint64 },
		"no gas":                      func(p *fee.Policy) { p.GasCeiling = 0 },
		"gas without end":             func(p *fee.Policy) { p.GasCeiling = math.MaxUint64 },
	} {
		p := fee.Default()
		if change(&p); p.Check() == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestGasLimit(t *testing.T) {
	p := policy(func(p *fee.Policy) { p.GasMargin, p.GasCeiling = 20, 1_000_000 })
	for _, c := range []struct{ asked, estimate, want uint64 }{
		{0, 100_000, 120_000},
		{0, 100_001, 120_002},
		{50_000, 0, 50_000},
		{0, 900_000, 1_000_000},
		{0, 1_000_000, 1_000_000},
		{1_000_000, 0, 1_000_000},
		{0, 1_000_001, 0},
		{1_000_001, 0, 0},
		{0, math.MaxUint64, 0},
	} {
		got, err := p.GasLimit(c.asked, c.estimate)
		if got != c.want || (c.want == 0) != errors.Is(err, fee.ErrGas) {
			t.Errorf("%d of %d: %d, %v", c.asked, c.estimate, got, err)
		}
	}
}

func TestPayment(t *testing.T) {
	usd, eur, payer, sender := chain.Address{1}, chain.Address{2}, chain.Address{3}, chain.Address{4}
	p := policy(func(p *fee.Policy) { p.Tokens, p.Sponsor = []chain.Address{usd}, &payer })
	if o, err := p.Offer(market(1, 1), fee.Terms{Sender: sender}); err != nil || o.Token == nil || *o.Token != usd || o.Payer != nil {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := p.Offer(market(1, 1), fee.Terms{Sender: sender, Token: &usd, Sponsored: true}); err != nil || *o.Token != usd || o.Payer == nil || *o.Payer != payer {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := policy().Offer(market(1, 1), fee.Terms{Sender: sender}); err != nil || o.Token != nil || o.Payer != nil {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := p.Offer(market(1, 1), fee.Terms{Sender: payer, Sponsored: true}); err != nil || o.Payer != nil {
		t.Errorf("who pays for others does not pay for itself: %+v, %v", o, err)
	}
	for name, c := range map[string]struct {
		policy fee.Policy
		terms  fee.Terms
		want   eventlog.Refusal
	}{
		"another token": {p, fee.Terms{Sender: sender, Token: &eur}, fee.ErrToken},
		"any token":     {policy(), fee.Terms{Sender: sender, Token: &usd}, fee.ErrToken},
		"nobody pays":   {policy(), fee.Terms{Sender: sender, Sponsored: true}, fee.ErrSponsor},
	} {
		if o, err := c.policy.Offer(market(1, 1), c.terms); !errors.Is(err, c.want) || o != (fee.Offer{}) {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
}

func TestPut(t *testing.T) {
	legacy, dynamic := chain.Unsigned{}, chain.Unsigned{Type: 0x76}
	fee.Offer{Fee: offered(5, 5)}.Put(&legacy)
	fee.Offer{Fee: offered(5, 2), Token: &chain.Address{1}, Payer: &chain.Address{2}}.Put(&dynamic)
	if legacy.GasPrice.Uint64() != 5*gwei || legacy.MaxFee != nil || legacy.MaxPriorityFee != nil || legacy.Sponsored {
		t.Errorf("%+v", legacy)
	}
	if dynamic.GasPrice != nil || dynamic.MaxFee.Uint64() != 5*gwei || dynamic.MaxPriorityFee.Uint64() != 2*gwei || !dynamic.Sponsored || *dynamic.FeeToken != (chain.Address{1}) {
		t.Errorf("%+v", dynamic)
	}
}

func TestCost(t *testing.T) {
	if got := fee.Cost(21_000, offered(20, 1)); !got.Eq(uint256.NewInt(420_000 * gwei)) {
		t.Errorf("%s", got)
	}
	if got := fee.Cost(2, chain.LegacyFee(highest)); !got.Eq(highest.Int()) {
		t.Errorf("%s", got)
	}
	for _, c := range []struct{ cost, units uint64 }{
		{0, 0}, {1, 1}, {1_000_000_000_000, 1}, {1_000_000_000_001, 2}, {420_000 * gwei, 420},
	} {
		if got := fee.TokenCost(uint256.NewInt(c.cost)); !got.Eq(uint256.NewInt(c.units)) {
			t.Errorf("%d attodollars are %s units", c.cost, got)
		}
	}
}
