package fee_test

import (
	"errors"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
)

// Gas limit × fee stays at or below MaxPerTransaction for intents, replacements and no-ops, at
// any urgency and floor.
func TestMaxPerTransaction(t *testing.T) {
	ether := chain.NewAmount(1_000_000_000 * gwei)
	wide := policy(func(p *fee.Policy) { p.Ceiling, p.MaxPerTransaction = priced(1000), ether })
	moving := market(100, 1, 1)
	moving.Blocks[0].BaseFee = priced(99)
	for _, c := range []struct {
		name  string
		terms fee.Terms
		want  float64
		why   error
	}{
		{"little gas", fee.Terms{Gas: 21_000}, 152, nil},
		{"gas that is unknown", fee.Terms{}, 152, nil},
		{"much gas", fee.Terms{Gas: 8_000_000}, 125, nil},
		{"much gas, fast", fee.Terms{Gas: 8_000_000, Urgency: fee.Fast}, 125, nil},
		{"a floor", fee.Terms{Gas: 2_000_000, Floor: priced(900)}, 500, nil},
		{"its own ceiling", fee.Terms{Gas: 2_000_000, Floor: priced(900), MaxFee: priced(300)}, 300, nil},
		{"a no-op", fee.Terms{Gas: 8_000_000, NoOp: true, Urgency: fee.Fast}, 125, nil},
		{"a replacement", fee.Terms{Gas: 8_000_000, Replaces: &chain.Fee{MaxFee: priced(110), MaxPriorityFee: priced(1)}}, 125, nil},
		{"a replacement of the most", fee.Terms{Gas: 8_000_000, Replaces: &chain.Fee{MaxFee: priced(120), MaxPriorityFee: priced(1)}}, 0, fee.ErrCeiling},
		{"no room for the base fee", fee.Terms{Gas: 9_000_000}, 0, fee.ErrMarket},
		{"more gas than any price pays", fee.Terms{Gas: 1 << 62}, 0, fee.ErrGas},
	} {
		offer, err := wide.Offer(moving, c.terms)
		if !errors.Is(err, c.why) || offer.Fee.MaxFee != priced(c.want) {
			t.Errorf("%s: %s, %v; want %g gwei, %v", c.name, offer.Fee.MaxFee, err, c.want, c.why)
		}
	}
	for gas, want := range map[uint64]bool{0: false, 21_000: false, 1_100_000: false, 1_100_001: true, 1 << 24: true} {
		if got := wide.Bounds(gas); got != want {
			t.Errorf("a gas limit of %d is bounded: %t", gas, got)
		}
	}
	wide.MaxPerTransaction = chain.Amount{}
	if offer, err := wide.Offer(moving, fee.Terms{Gas: 1 << 24}); err != nil || offer.Fee.MaxFee != priced(152) || wide.Bounds(1<<24) {
		t.Errorf("without a limit %s is offered: %v", offer.Fee.MaxFee, err)
	}
}
