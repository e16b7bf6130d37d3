package chain

import (
	"fmt"
	"strings"

	"github.com/holiman/uint256"
)

// Amount is a number of the chain's smallest unit: wei on Ethereum, attodollars on
// Tempo. In text it is decimal, for a number of JSON loses digits above 2^53. What is
// reckoned with it stays between 0 and 2^256-1 and never wraps.
type Amount uint256.Int

// NewAmount is a small amount.
func NewAmount(n uint64) Amount { return Amount(*uint256.NewInt(n)) }

// AmountOf is a number as an amount; nil is 0.
func AmountOf(n *uint256.Int) Amount {
	if n == nil {
		return Amount{}
	}
	return Amount(*n)
}

// digitsMax is how many digits 2^256-1 has.
const digitsMax = 78

// ParseAmount reads a decimal number below 2^256, without sign and leading zeros.
func ParseAmount(s string) (a Amount, err error) { return a, a.UnmarshalText([]byte(s)) }

// Int is the amount to reckon with; changing it does not change the amount.
func (a Amount) Int() *uint256.Int { i := uint256.Int(a); return &i }

// IsZero reports whether the amount is 0.
func (a Amount) IsZero() bool { return a == Amount{} }

// Cmp is -1, 0 or 1 when the amount is less than, equal to or more than another.
func (a Amount) Cmp(b Amount) int { return a.Int().Cmp(b.Int()) }

// Plus is the sum, at most 2^256-1.
func (a Amount) Plus(b Amount) Amount {
	sum, over := new(uint256.Int).AddOverflow(a.Int(), b.Int())
	if over {
		sum.SetAllOne()
	}
	return Amount(*sum)
}

// Minus is the difference, at least 0.
func (a Amount) Minus(b Amount) Amount {
	if a.Cmp(b) <= 0 {
		return Amount{}
	}
	return Amount(*new(uint256.Int).Sub(a.Int(), b.Int()))
}

// Times is the product, at most 2^256-1.
func (a Amount) Times(n uint64) Amount {
	product, over := new(uint256.Int).MulOverflow(a.Int(), uint256.NewInt(n))
	if over {
		product.SetAllOne()
	}
	return Amount(*product)
}

// Max is the larger of two.
func (a Amount) Max(b Amount) Amount {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}

func (a Amount) String() string               { return a.Int().Dec() }
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

func (a *Amount) UnmarshalText(b []byte) error {
	s := string(b)
	var n uint256.Int
	if s == "" || len(s) > digitsMax || s != "0" && s[0] == '0' || strings.Trim(s, "0123456789") != "" || n.SetFromDecimal(s) != nil {
		return fmt.Errorf("an amount is a decimal number below 2^256")
	}
	*a = Amount(n)
	return nil
}
