package chain

import (
	"fmt"

	"github.com/holiman/uint256"
)

// Price is what is paid for one unit of gas, in the chain's smallest unit: wei on
// Ethereum, attodollars on Tempo.
type Price uint256.Int

// PriceOf is a price that fits 64 bits.
func PriceOf(n uint64) Price { return Price(*uint256.NewInt(n)) }

// Int is the price as a number, to be read only.
func (p Price) Int() *uint256.Int { return (*uint256.Int)(&p) }

// String is the decimal form.
func (p Price) String() string { return p.Int().Dec() }

func (p Price) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads decimal digits.
func (p *Price) UnmarshalText(b []byte) error {
	for _, c := range b {
		if c < '0' || c > '9' {
			return fmt.Errorf("price %q is not a decimal number", b)
		}
	}
	n, err := uint256.FromDecimal(string(b))
	if err != nil {
		return fmt.Errorf("price %q: %w", b, err)
	}
	*p = Price(*n)
	return nil
}

// Fee is what an attempt offers. A legacy transaction's gas price is both of them.
type Fee struct {
	MaxFee         Price `json:"maxFee"`
	MaxPriorityFee Price `json:"maxPriorityFee"`
}

// LegacyFee is what a transaction with a gas price offers.
func LegacyFee(price Price) Fee { return Fee{price, price} }

// replacementPercent is how much more a replacement offers at least, in both fields.
// Source: go-ethereum core/txpool/legacypool, DefaultConfig.PriceBump (10) and
// list.Add, which wants both fields to be higher, and to reach old*(100+PriceBump)/100;
// reth has the same default (TxPool PriceBumpConfig). Fractions are rounded up
// here, so that a pool that rounds otherwise is content too.
const replacementPercent = 10

// Replacement is the least that replaces what offered the fee; false if nothing does.
func (f Fee) Replacement() (least Fee, ok bool) {
	if least.MaxFee, ok = f.MaxFee.raised(); ok {
		least.MaxPriorityFee, ok = f.MaxPriorityFee.raised()
	}
	return least, ok
}

// Replaces reports whether pools take an attempt in place of an earlier one.
func (f Fee) Replaces(earlier Fee) bool {
	least, ok := earlier.Replacement()
	return ok && !f.MaxFee.Int().Lt(least.MaxFee.Int()) && !f.MaxPriorityFee.Int().Lt(least.MaxPriorityFee.Int())
}

// Replaceable is the most that what offers the fee replaces; false if it replaces nothing.
func (f Fee) Replaceable() (most Fee, ok bool) {
	most = Fee{f.MaxFee.lowered(), f.MaxPriorityFee.lowered()}
	return most, f.Replaces(most)
}

// lowered is the highest price that, raised, is not above this one.
func (p Price) lowered() Price {
	n, _ := new(uint256.Int).MulDivOverflow(p.Int(), uint256.NewInt(100), uint256.NewInt(100+replacementPercent))
	return Price(*n) // less than it was: there is no overflow
}

// raised is a price and replacementPercent of it, rounded up, and at least one more.
func (p Price) raised() (Price, bool) {
	hundred, rest := uint256.NewInt(100), new(uint256.Int)
	whole, _ := new(uint256.Int).DivMod(p.Int(), hundred, rest)
	// p·percent/100 = whole·percent + rest·percent/100, which cannot overflow.
	more := new(uint256.Int).Mul(whole, uint256.NewInt(replacementPercent))
	more.AddUint64(more, (rest.Uint64()*replacementPercent+99)/100)
	if more.IsZero() {
		more.SetOne()
	}
	sum, overflow := new(uint256.Int).AddOverflow(p.Int(), more)
	return Price(*sum), !overflow
}
