package chain

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// NonceKey is Tempo's 32-byte big-endian selector of an independent nonce
// sequence. On Ethereum, and for Tempo's protocol nonce, it is zero.
type NonceKey [32]byte

// ExpiringKey (2^256-1) selects no sequence: the transaction's short validity window prevents its
// replay (TIP-1009).
var ExpiringKey = NonceKey(bytes.Repeat([]byte{0xff}, 32))

// String returns minimal hex, as in the chain's RPC quantities: 0x0, 0x1, 0x4e4b….
func (k NonceKey) String() string {
	digits := strings.TrimLeft(hex.EncodeToString(k[:]), "0")
	if digits == "" {
		digits = "0"
	}
	return "0x" + digits
}

func (k NonceKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText parses 0x and 1 to 64 hex digits, leading zeros allowed.
func (k *NonceKey) UnmarshalText(b []byte) error {
	digits, ok := strings.CutPrefix(string(b), "0x")
	if !ok || digits == "" || len(digits) > 64 {
		return fmt.Errorf("nonce key must be 0x and 1 to 64 hex digits")
	}
	return unhex(k[:], "0x"+strings.Repeat("0", 64-len(digits))+digits, "nonce key")
}

// ParseNonceKey parses 0x and 1 to 64 hex digits.
func ParseNonceKey(s string) (k NonceKey, err error) { return k, k.UnmarshalText([]byte(s)) }

// IsZero reports whether the key selects the account's protocol nonce.
func (k NonceKey) IsZero() bool { return k == NonceKey{} }

// IsExpiring reports whether the key is [ExpiringKey].
func (k NonceKey) IsExpiring() bool { return k == ExpiringKey }

// Group returns the group of transactions with this key: the first 16 bytes of keccak256 of the
// 32-byte big-endian key. A setting and [NonceKey.Explicit] decide whether the key has a group at
// all.
func (k NonceKey) Group() GroupID {
	h := Keccak(k[:])
	return GroupID(h[:16])
}

// The explicit grouping format, NKG1 (big-endian):
//
//	0..3 magic "NKG1" · 4 version 0x01 · 5 kind · 6..7 flags
//	8..15 scope · 16..19 group · 20..31 memo
//
// Flags hold two bits of encoding for each of scope (0..1), group (2..3) and
// memo (4..5): 00 numeric, 01 ASCII, 10 and 11 reserved. Bits 6..15 must be 0.
const (
	nkg1Magic   = 0x4e4b4731
	nkg1Version = 0x01
)

// Encoding is the display form of one field of an NKG1 key.
type Encoding uint8

const (
	Numeric Encoding = 0
	ASCII   Encoding = 1
)

// Explicit holds the parsed fields of an NKG1 key.
type Explicit struct {
	Kind  uint8
	Scope Field
	Group Field
	Memo  Field
}

// Field is one part of an NKG1 key.
type Field struct {
	Encoding Encoding
	Bytes    []byte
}

// Explicit parses an NKG1 key; ok is false for every other key. A field that is flagged ASCII but
// not printable does not invalidate the key: the field is shown in hex.
func (k NonceKey) Explicit() (e Explicit, ok bool) {
	flags := binary.BigEndian.Uint16(k[6:8])
	scope, group, memo := Encoding(flags&3), Encoding(flags>>2&3), Encoding(flags>>4&3)
	if binary.BigEndian.Uint32(k[:4]) != nkg1Magic || k[4] != nkg1Version || flags>>6 != 0 ||
		scope > ASCII || group > ASCII || memo > ASCII {
		return Explicit{}, false
	}
	return Explicit{
		Kind:  k[5],
		Scope: Field{scope, bytes.Clone(k[8:16])},
		Group: Field{group, bytes.Clone(k[16:20])},
		Memo:  Field{memo, bytes.Clone(k[20:32])},
	}, true
}

// String returns the one-line display: kind=0x02, scope=PAYROLL, group=3906, memo=JAN-2026.
func (e Explicit) String() string {
	return fmt.Sprintf("kind=0x%02x, scope=%s, group=%s, memo=%s",
		e.Kind, e.Scope.Number(), e.Group.Number(), e.Memo.Text())
}

// Number returns the field as a decimal number, or as text if flagged ASCII.
func (f Field) Number() string {
	if f.Encoding == ASCII {
		return f.Text()
	}
	var n uint64
	for _, b := range f.Bytes {
		n = n<<8 | uint64(b)
	}
	return strconv.FormatUint(n, 10)
}

// Text returns the field's trimmed text if it is flagged ASCII and printable, else the whole
// field in hex.
func (f Field) Text() string {
	trimmed := bytes.TrimRight(f.Bytes, "\x00")
	if f.Encoding == ASCII && printable(trimmed) {
		return string(trimmed)
	}
	return "0x" + hex.EncodeToString(f.Bytes)
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c > 0x7e {
			return false
		}
	}
	return true
}
