package chain

import (
	"fmt"

	"github.com/holiman/uint256"
)

// Price is the price of one unit of gas, in the chain's smallest unit: wei on Ethereum,
// attodollars on Tempo.
type Price uint256.Int

// PriceOf returns n as a Price.
func PriceOf(n uint64) Price { return Price(*uint256.NewInt(n)) }

// Int returns the price as a number, which must not be changed.
func (p Price) Int() *uint256.Int { return (*uint256.Int)(&p) }

// String returns the decimal form.
func (p Price) String() string { return p.Int().Dec() }

func (p Price) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText parses decimal digits.
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

// Fee is an attempt's offer per unit of gas. A legacy transaction has its gas price in both
// fields.
type Fee struct {
	MaxFee         Price `json:"maxFee"`
	MaxPriorityFee Price `json:"maxPriorityFee"`
}

// LegacyFee returns the fee of a transaction with a gas price.
func LegacyFee(price Price) Fee { return Fee{price, price} }

// replacementPercent is the least raise of a replacement, in both fields. Source: go-ethereum
// core/txpool/legacypool, DefaultConfig.PriceBump (10) and list.Add, which wants both fields to
// be higher, and to reach old*(100+PriceBump)/100. Reth has the same default (TxPool
// PriceBumpConfig). Fractions are rounded up here, so that pools with another rounding accept it
// too.
const replacementPercent = 10

// Replacement returns the least fee that replaces f; false if none does.
func (f Fee) Replacement() (least Fee, ok bool) {
	if least.MaxFee, ok = f.MaxFee.raised(); ok {
		least.MaxPriorityFee, ok = f.MaxPriorityFee.raised()
	}
	return least, ok
}

// Replaces reports whether pools accept f as a replacement of an earlier fee.
func (f Fee) Replaces(earlier Fee) bool {
	least, ok := earlier.Replacement()
	return ok && !f.MaxFee.Int().Lt(least.MaxFee.Int()) && !f.MaxPriorityFee.Int().Lt(least.MaxPriorityFee.Int())
}

// Replaceable returns the highest fee that f replaces; false if there is none.
func (f Fee) Replaceable() (most Fee, ok bool) {
	most = Fee{f.MaxFee.lowered(), f.MaxPriorityFee.lowered()}
	return most, f.Replaces(most)
}

// lowered returns the highest price that, raised, is not above p.
func (p Price) lowered() Price {
	n, _ := new(uint256.Int).MulDivOverflow(p.Int(), uint256.NewInt(100), uint256.NewInt(100+replacementPercent))
	return Price(*n) // less than p: no overflow
}

// raised returns a price plus replacementPercent, rounded up, at least 1 more.
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
