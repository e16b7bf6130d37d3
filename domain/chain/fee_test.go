package chain

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holiman/uint256"
	"pgregory.net/rapid"
)

var highest = Price(*new(uint256.Int).SetAllOne())

func TestReplacementFee(t *testing.T) {
	fee := func(most, tip uint64) Fee { return Fee{PriceOf(most), PriceOf(tip)} }
	for _, c := range []struct {
		name        string
		earlier, by Fee
		taken       bool
	}{
		{"10 % in both", fee(1000, 100), fee(1100, 110), true},
		{"one short of it in the fee", fee(1000, 100), fee(1099, 110), false},
		{"one short of it in the tip", fee(1000, 100), fee(1100, 109), false},
		{"only the fee", fee(1000, 100), fee(5000, 100), false},
		{"only the tip", fee(1000, 100), fee(1000, 1000), false},
		{"fractions are rounded up", fee(1001, 101), fee(1101, 111), false},
		{"and one more is enough", fee(1001, 101), fee(1102, 112), true},
		{"less than ten", fee(5, 1), fee(6, 2), true},
		{"no tip needs one", fee(1000, 0), fee(1100, 0), false},
		{"which may be the smallest", fee(1000, 0), fee(1100, 1), true},
		{"nothing", fee(0, 0), fee(1, 1), true},
		{"a legacy price", LegacyFee(PriceOf(1000)), LegacyFee(PriceOf(1100)), true},
		{"a legacy price one short", LegacyFee(PriceOf(1000)), LegacyFee(PriceOf(1099)), false},
		{"a tip below the price it replaces", LegacyFee(PriceOf(1000)), fee(1100, 1099), false},
		{"nothing replaces the highest", LegacyFee(highest), LegacyFee(highest), false},
	} {
		if got := c.by.Replaces(c.earlier); got != c.taken {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// The least replacement is accepted by go-ethereum's rule, computed here without overflow; one
// less is refused by our rule.
func TestLeastReplacement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := rapid.Uint64Range(0, 1<<60).Draw(t, "price")
		least, ok := PriceOf(old).raised()
		if n := least.Int().Uint64(); !ok || n <= old || n < old*110/100 || 100*(n-1) >= 110*old && n-1 > old {
			t.Fatalf("%d is replaced by %d", old, n)
		}
	})
}

// A fee replaces its Replaceable fee, but not a fee that is one higher in either field.
func TestMostReplaceable(t *testing.T) {
	prices := rapid.Custom(func(t *rapid.T) Price {
		return Price(*new(uint256.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "price")))
	})
	rapid.Check(t, func(t *rapid.T) {
		f := Fee{prices.Draw(t, "fee"), prices.Draw(t, "tip")}
		most, ok := f.Replaceable()
		if ok != (!f.MaxFee.Int().IsZero() && !f.MaxPriorityFee.Int().IsZero()) || ok != f.Replaces(most) {
			t.Fatalf("%+v replaces %+v: %t", f, most, ok)
		}
		for _, more := range []Fee{{next(most.MaxFee), most.MaxPriorityFee}, {most.MaxFee, next(most.MaxPriorityFee)}} {
			if f.Replaces(more) {
				t.Fatalf("%+v replaces %+v, which is more than %+v", f, more, most)
			}
		}
	})
}

func next(p Price) Price { return Price(*new(uint256.Int).AddUint64(p.Int(), 1)) }

func TestPriceText(t *testing.T) {
	for _, p := range []Price{{}, PriceOf(7), highest} {
		data, err := json.Marshal(LegacyFee(p))
		if err != nil {
			t.Fatal(err)
		}
		var back Fee
		if err := json.Unmarshal(data, &back); err != nil || back != LegacyFee(p) {
			t.Errorf("%s comes back as %+v: %v", data, back, err)
		}
	}
	for _, bad := range []string{"", "-1", "+1", "0x1", "1e3", " 1", "1" + strings.Repeat("0", 78)} {
		var p Price
		if err := p.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was read as %s", bad, p)
		}
	}
}
