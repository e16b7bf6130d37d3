package intent

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/holiman/uint256"
)

// Amount is a number of the chain's smallest unit: wei on Ethereum, attodollars on
// Tempo. In text it is decimal, for a number of JSON loses digits above 2^53.
type Amount uint256.Int

// NewAmount is a small amount.
func NewAmount(n uint64) Amount { return Amount(*uint256.NewInt(n)) }

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

// Data is the input of a call. In text it is 0x and hex digits.
type Data []byte

func (d Data) String() string               { return "0x" + hex.EncodeToString(d) }
func (d Data) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d *Data) UnmarshalText(b []byte) error {
	digits, ok := strings.CutPrefix(string(b), "0x")
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil {
		return fmt.Errorf("data must be 0x and an even number of hex digits")
	}
	*d = nil
	if len(raw) > 0 {
		*d = raw
	}
	return nil
}
