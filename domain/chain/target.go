package chain

import (
	"encoding/hex"
	"slices"
)

// Selector is the first four bytes of a call's input, which say to a contract made by
// the Solidity ABI what it is to do. Source: Solidity's ABI specification, "Function
// Selector".
type Selector [4]byte

func (s Selector) String() string               { return "0x" + hex.EncodeToString(s[:]) }
func (s Selector) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads 0x and 8 hex digits.
func (s *Selector) UnmarshalText(b []byte) error { return unhex(s[:], string(b), "selector") }

// Target is what may be called. Without To it is the making of a contract. Selectors,
// if there are any, are the only ones allowed: a call with less input than a selector
// has is none of them.
type Target struct {
	To        *Address   `json:"to,omitempty"`
	Selectors []Selector `json:"selectors,omitempty"`
}

// Allows reports whether a call is one that may be made.
func (t Target) Allows(to *Address, input []byte) bool {
	switch {
	case to == nil || t.To == nil:
		return to == t.To // a contract is made, and that is what is allowed
	case *to != *t.To:
		return false
	case len(t.Selectors) == 0:
		return true
	}
	return len(input) >= len(Selector{}) && slices.Contains(t.Selectors, Selector(input[:len(Selector{})]))
}

// Targets is an allow-list. An empty one allows everything.
type Targets []Target

// Allows reports whether a call is one that may be made.
func (all Targets) Allows(to *Address, input []byte) bool {
	return len(all) == 0 || slices.ContainsFunc(all, func(t Target) bool { return t.Allows(to, input) })
}
