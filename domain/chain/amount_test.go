package chain

import (
	"math/big"
	"strings"
	"testing"

	"github.com/holiman/uint256"
	"pgregory.net/rapid"
)

func TestAmountText(t *testing.T) {
	most := strings.Repeat("9", 77)
	for text, ok := range map[string]bool{
		"0": true, "7": true, most: true, "": false, "07": false, "-1": false, "+1": false, "1e3": false, "1" + most + "9": false,
		new(uint256.Int).SetAllOne().Dec(): true,
	} {
		a, err := ParseAmount(text)
		if (err == nil) != ok || ok && a.String() != text {
			t.Errorf("%q: %s, %v", text, a, err)
		}
	}
	if AmountOf(nil) != NewAmount(0) || AmountOf(uint256.NewInt(3)) != NewAmount(3) {
		t.Error("a number is another amount")
	}
}

// Amount arithmetic equals unbounded arithmetic, limited to the range of amounts.
func TestAmountReckons(t *testing.T) {
	most := new(uint256.Int).SetAllOne().ToBig()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) Amount {
			var word [32]byte
			copy(word[:], rapid.SliceOfN(rapid.SampledFrom([]byte{0, 0, 1, 128, 255}), 32, 32).Draw(t, name))
			return Amount(*new(uint256.Int).SetBytes32(word[:]))
		}
		a, b := draw("a"), draw("b")
		x, y := a.Int().ToBig(), b.Int().ToBig()
		n := rapid.Uint64().Draw(t, "n")
		for name, c := range map[string]struct {
			got  Amount
			want *big.Int
		}{
			"plus":  {a.Plus(b), new(big.Int).Add(x, y)},
			"minus": {a.Minus(b), new(big.Int).Sub(x, y)},
			"times": {a.Times(n), new(big.Int).Mul(x, new(big.Int).SetUint64(n))},
		} {
			want := c.want
			if want.Sign() < 0 {
				want = new(big.Int)
			}
			if want.Cmp(most) > 0 {
				want = most
			}
			if c.got.Int().ToBig().Cmp(want) != 0 {
				t.Fatalf("%s: %s, not %s", name, c.got, want)
			}
		}
		if m := a.Max(b); m.Cmp(a) < 0 || m.Cmp(b) < 0 || m != a && m != b {
			t.Fatalf("the larger of %s and %s is %s", a, b, m)
		}
	})
}

func TestTargets(t *testing.T) {
	a, b := Address{1}, Address{2}
	transfer, other := Selector{0xa9, 0x05, 0x9c, 0xbb}, []byte{1, 2, 3, 4, 5}
	list := Targets{{To: &a, Selectors: []Selector{transfer}}, {To: &b}}
	for name, c := range map[string]struct {
		list  Targets
		to    *Address
		input []byte
		want  bool
	}{
		"no list":                    {nil, &a, other, true},
		"no list, a contract":        {nil, nil, other, true},
		"its selector":               {list, &a, append(transfer[:], 9), true},
		"its selector alone":         {list, &a, transfer[:], true},
		"another selector":           {list, &a, other, false},
		"too short for a selector":   {list, &a, transfer[:3], false},
		"no input":                   {list, &a, nil, false},
		"any selector":               {list, &b, other, true},
		"any selector, no input":     {list, &b, nil, true},
		"another target":             {list, &Address{3}, transfer[:], false},
		"a contract, not listed":     {list, nil, other, false},
		"a contract, listed":         {append(list, Target{}), nil, other, true},
		"a target, contracts listed": {Targets{{}}, &a, other, false},
	} {
		if got := c.list.Allows(c.to, c.input); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	var s Selector
	if err := s.UnmarshalText([]byte("0xA9059cbb")); err != nil || s != transfer || s.String() != "0xa9059cbb" {
		t.Errorf("%s, %v", s, err)
	}
	if s.UnmarshalText([]byte("a9059cbb")) == nil {
		t.Error("a selector without 0x is read")
	}
}
