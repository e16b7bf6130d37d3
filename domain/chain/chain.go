// Package chain defines the values shared by all chains: identifiers, addresses, hashes, nonces,
// blocks and receipts, and the fields decoded from signed bytes. It imports nothing of ours.
package chain

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/crypto/sha3"
)

// ID is a chain's EIP-155 number. Zero: no chain.
type ID uint64

// String returns the decimal form.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 10) }

// ParseID parses a decimal chain id. It refuses zero, signs and leading zeros.
func ParseID(s string) (ID, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 || s[0] == '0' || s[0] == '+' {
		return 0, fmt.Errorf("chain id %q is not a positive decimal number", s)
	}
	return ID(n), nil
}

// Hash is a 32-byte Keccak-256 digest: of a transaction or of a block.
type Hash [32]byte

// Address is an account: the last 20 bytes of the Keccak-256 of its public key.
type Address [20]byte

// GroupID identifies a group of one sender's transactions; see [NonceKey.Group].
type GroupID [16]byte

// IntentID identifies an intent of a relay client. It is derived from the client, the signer or
// pool, and the idempotency key, so that every requester derives the same id.
type IntentID [16]byte

func (h Hash) String() string     { return "0x" + hex.EncodeToString(h[:]) }
func (a Address) String() string  { return "0x" + hex.EncodeToString(a[:]) }
func (g GroupID) String() string  { return "0x" + hex.EncodeToString(g[:]) }
func (i IntentID) String() string { return "0x" + hex.EncodeToString(i[:]) }

// IsZero reports whether the hash is unset.
func (h Hash) IsZero() bool { return h == Hash{} }

// IsZero reports whether the id is unset.
func (i IntentID) IsZero() bool { return i == IntentID{} }

func (h Hash) MarshalText() ([]byte, error)     { return []byte(h.String()), nil }
func (a Address) MarshalText() ([]byte, error)  { return []byte(a.String()), nil }
func (g GroupID) MarshalText() ([]byte, error)  { return []byte(g.String()), nil }
func (i IntentID) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

func (h *Hash) UnmarshalText(b []byte) error     { return unhex(h[:], string(b), "hash") }
func (a *Address) UnmarshalText(b []byte) error  { return unhex(a[:], string(b), "address") }
func (g *GroupID) UnmarshalText(b []byte) error  { return unhex(g[:], string(b), "group id") }
func (i *IntentID) UnmarshalText(b []byte) error { return unhex(i[:], string(b), "intent id") }

// ParseHash parses 0x and 64 hex digits of either case.
func ParseHash(s string) (h Hash, err error) { return h, unhex(h[:], s, "hash") }

// ParseAddress parses an address written by people: 0x and 40 hex digits, in one case or in both
// with the checksum of EIP-55, which detects nearly every copying mistake.
func ParseAddress(s string) (a Address, err error) {
	if err := unhex(a[:], s, "address"); err != nil {
		return Address{}, err
	}
	digits := s[2:]
	if digits != strings.ToLower(digits) && digits != strings.ToUpper(digits) && digits != a.checksummed() {
		return Address{}, fmt.Errorf("address %s has a wrong checksum (EIP-55): correct it, or write it in lower case", s)
	}
	return a, nil
}

// checksummed returns 40 hex digits. A letter is upper-case if the hash of the lower-case digits
// has a high bit at its place. Source: EIP-55.
func (a Address) checksummed() string {
	digits := []byte(hex.EncodeToString(a[:]))
	hash := Keccak(digits)
	for i, d := range digits {
		nibble := hash[i/2] >> (4 * (1 - i%2)) & 0xf
		if d >= 'a' && nibble >= 8 {
			digits[i] = d - 'a' + 'A'
		}
	}
	return string(digits)
}

// ParseGroupID parses 0x and 32 hex digits of either case.
func ParseGroupID(s string) (g GroupID, err error) { return g, unhex(g[:], s, "group id") }

// ParseIntentID parses 0x and 32 hex digits of either case.
func ParseIntentID(s string) (i IntentID, err error) { return i, unhex(i[:], s, "intent id") }

// unhex decodes 0x-prefixed hex of exactly dst's length.
func unhex(dst []byte, s, what string) error {
	digits, ok := strings.CutPrefix(s, "0x")
	if !ok || len(digits) != 2*len(dst) {
		return fmt.Errorf("%s must be 0x and %d hex digits", what, 2*len(dst))
	}
	if _, err := hex.Decode(dst, []byte(digits)); err != nil {
		return fmt.Errorf("%s must be 0x and %d hex digits", what, 2*len(dst))
	}
	return nil
}

// Keccak returns the Keccak-256 that Ethereum uses (before NIST changed the padding).
func Keccak(parts ...[]byte) (h Hash) {
	k := sha3.NewLegacyKeccak256()
	for _, p := range parts {
		k.Write(p)
	}
	k.Sum(h[:0])
	return h
}
