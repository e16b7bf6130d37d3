package intent

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Amount is a quantity of a chain's native unit, or of a fee per unit of gas.
type Amount = chain.Amount

// NewAmount returns n as an Amount.
func NewAmount(n uint64) Amount { return chain.NewAmount(n) }

// ParseAmount parses a decimal number below 2^256, without sign and leading zeros.
func ParseAmount(s string) (Amount, error) { return chain.ParseAmount(s) }

// Data is the input of a call. Its text form is 0x and hex digits.
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
