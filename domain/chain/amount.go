package chain

import (
	"fmt"
	"strings"

	"github.com/holiman/uint256"
)

// Amount is a number of the chain's smallest unit: wei on Ethereum, attodollars on Tempo. Its
// text form is decimal, because JSON numbers lose digits above 2^53. Arithmetic saturates at 0
// and 2^256-1.
type Amount uint256.Int

// NewAmount returns n as an Amount.
func NewAmount(n uint64) Amount { return Amount(*uint256.NewInt(n)) }

// AmountOf returns a number as an Amount; nil is 0.
func AmountOf(n *uint256.Int) Amount {
	if n == nil {
		return Amount{}
	}
	return Amount(*n)
}

// digitsMax is the number of decimal digits of 2^256-1.
const digitsMax = 78

// ParseAmount parses a decimal number below 2^256, without sign and leading zeros.
func ParseAmount(s string) (a Amount, err error) { return a, a.UnmarshalText([]byte(s)) }

// Int returns a copy of the amount as a number.
func (a Amount) Int() *uint256.Int { i := uint256.Int(a); return &i }

// IsZero reports whether the amount is 0.
func (a Amount) IsZero() bool { return a == Amount{} }

// Cmp returns -1, 0 or 1 if the amount is less than, equal to or more than b.
func (a Amount) Cmp(b Amount) int { return a.Int().Cmp(b.Int()) }

// Plus returns the sum, at most 2^256-1.
func (a Amount) Plus(b Amount) Amount {
	sum, over := new(uint256.Int).AddOverflow(a.Int(), b.Int())
	if over {
		sum.SetAllOne()
	}
	return Amount(*sum)
}

// Minus returns the difference, at least 0.
func (a Amount) Minus(b Amount) Amount {
	if a.Cmp(b) <= 0 {
		return Amount{}
	}
	return Amount(*new(uint256.Int).Sub(a.Int(), b.Int()))
}

// Times returns the product, at most 2^256-1.
func (a Amount) Times(n uint64) Amount {
	product, over := new(uint256.Int).MulOverflow(a.Int(), uint256.NewInt(n))
	if over {
		product.SetAllOne()
	}
	return Amount(*product)
}

// Max returns the larger amount.
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
