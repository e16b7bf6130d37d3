package chain

import (
	"encoding/hex"
	"slices"
)

// Selector is the first four bytes of a call's input, which select the function of a contract
// with the Solidity ABI. Source: Solidity's ABI specification, "Function Selector".
type Selector [4]byte

func (s Selector) String() string               { return "0x" + hex.EncodeToString(s[:]) }
func (s Selector) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses 0x and 8 hex digits.
func (s *Selector) UnmarshalText(b []byte) error { return unhex(s[:], string(b), "selector") }

// Target is an allowed call target. Without To it allows contract creation. Selectors, unless
// empty, restrict the calls: an input shorter than a selector matches none.
type Target struct {
	To        *Address   `json:"to,omitempty"`
	Selectors []Selector `json:"selectors,omitempty"`
}

// Allows reports whether the target allows a call.
func (t Target) Allows(to *Address, input []byte) bool {
	switch {
	case to == nil || t.To == nil:
		return to == t.To // both are contract creation
	case *to != *t.To:
		return false
	case len(t.Selectors) == 0:
		return true
	}
	return len(input) >= len(Selector{}) && slices.Contains(t.Selectors, Selector(input[:len(Selector{})]))
}

// Targets is an allow-list. An empty one allows everything.
type Targets []Target

// Allows reports whether the list allows a call.
func (all Targets) Allows(to *Address, input []byte) bool {
	return len(all) == 0 || slices.ContainsFunc(all, func(t Target) bool { return t.Allows(to, input) })
}
