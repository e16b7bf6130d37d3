package relayer

import (
	"testing"

	"github.com/holiman/uint256"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

func feeOf(most, tip uint64) chain.Fee {
	return chain.Fee{MaxFee: chain.PriceOf(most), MaxPriorityFee: chain.PriceOf(tip)}
}

func TestAgain(t *testing.T) {
	for _, c := range []struct {
		name             string
		last, quote, top chain.Fee
		floor, percent   uint64
		want             chain.Fee
		ok               bool
	}{
		{"20 % more", feeOf(1000, 100), chain.Fee{}, chain.Fee{}, 0, 20, feeOf(1200, 120), true},
		{"never less than pools want", feeOf(1000, 100), chain.Fee{}, chain.Fee{}, 0, 3, feeOf(1100, 110), true},
		{"what is quoted, if that is more", feeOf(1000, 100), feeOf(5000, 105), chain.Fee{}, 0, 20, feeOf(5000, 120), true},
		{"what its client wants", feeOf(1000, 100), chain.Fee{}, chain.Fee{}, 1500, 20, feeOf(1500, 120), true},
		{"up to the ceiling", feeOf(1000, 100), feeOf(5000, 200), feeOf(1150, 115), 0, 20, feeOf(1150, 115), true},
		{"which may leave no room", feeOf(1000, 100), feeOf(5000, 200), feeOf(1099, 0), 0, 20, feeOf(1099, 200), false},
		{"not for the tip either", feeOf(1000, 100), feeOf(5000, 200), feeOf(0, 109), 0, 20, feeOf(5000, 109), false},
		{"no tip before", feeOf(1000, 0), chain.Fee{}, chain.Fee{}, 0, 20, feeOf(1200, 1), true},
	} {
		got, ok := bounds{intent.NewAmount(c.floor), c.top}.again(c.last, c.quote, c.percent)
		if got != c.want || ok != c.ok {
			t.Errorf("%s: %s/%s, %t", c.name, got.MaxFee, got.MaxPriorityFee, ok)
		}
	}
	highest := chain.Price(*new(uint256.Int).SetAllOne())
	if _, ok := (bounds{}).again(chain.LegacyFee(highest), chain.Fee{}, 20); ok {
		t.Error("there is more than the highest price")
	}
}

// Whatever is offered in place of another replaces it, is a fee, and costs no more than
// it may; or it is not offered.
func TestBounds(t *testing.T) {
	price := rapid.Uint64Range(0, 5000)
	draw := func(t *rapid.T, name string) chain.Fee {
		most := price.Draw(t, name)
		return feeOf(most, min(most, price.Draw(t, name+"'s tip")))
	}
	rapid.Check(t, func(t *rapid.T) {
		b := bounds{intent.NewAmount(price.Draw(t, "floor")), feeOf(price.Draw(t, "ceiling"), price.Draw(t, "the tip's"))}
		over := func(p, most chain.Price) bool { return !most.Int().IsZero() && p.Int().Gt(most.Int()) }
		last := draw(t, "last")
		again, ok := b.again(last, draw(t, "quote"), rapid.Uint64Range(0, 100).Draw(t, "percent"))
		for what, f := range map[string]chain.Fee{"first": b.within(draw(t, "first")), "again": again} {
			if over(f.MaxFee, b.ceiling.MaxFee) || over(f.MaxPriorityFee, b.ceiling.MaxPriorityFee) || f.MaxFee.Int().Lt(f.MaxPriorityFee.Int()) {
				t.Fatalf("%s: %s/%s under %s/%s", what, f.MaxFee, f.MaxPriorityFee, b.ceiling.MaxFee, b.ceiling.MaxPriorityFee)
			}
		}
		if ok && !again.Replaces(last) {
			t.Fatalf("%s/%s after %s/%s", again.MaxFee, again.MaxPriorityFee, last.MaxFee, last.MaxPriorityFee)
		}
	})
}
