package chain

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"github.com/holiman/uint256"
)

// Reverted reports that calls, simulated on the state of a block, would fail. On another block's
// state they may succeed.
type Reverted struct {
	Block Block
	// Data is the contract's revert data; empty if none.
	Data []byte
	// Detail is the node's error message.
	Detail string
}

func (r *Reverted) Error() string {
	switch {
	case len(r.Data) > 0:
		return "it would revert: " + RevertReason(r.Data)
	case r.Detail != "":
		return "it would fail: " + r.Detail
	}
	return "it would revert, without a reason"
}

// Selectors of revert reasons. Source: Solidity's documentation, "Panic via assert and Error via
// require": Error(string) and Panic(uint256).
var (
	errorSelector = [4]byte{0x08, 0xc3, 0x79, 0xa0}
	panicSelector = [4]byte{0x4e, 0x48, 0x7b, 0x71}
)

// reasonMax bounds the displayed part of a reason, because it is untrusted text.
const reasonMax = 256 // bytes

// panics are the panic codes of Solidity's compiler.
var panics = map[uint64]string{
	0x00: "unspecified", 0x01: "assertion failed", 0x11: "arithmetic overflow", 0x12: "division by zero",
	0x21: "not a value of the enum", 0x22: "broken storage bytes", 0x31: "pop of an empty array",
	0x32: "index out of bounds", 0x41: "out of memory", 0x51: "call of an unset function",
}

// RevertReason returns a contract's reason: the text of Error(string), the meaning of
// Panic(uint256), or the first bytes of any other data.
func RevertReason(data []byte) string {
	selector, rest := data[:min(4, len(data))], data[min(4, len(data)):]
	switch {
	case bytes.Equal(selector, errorSelector[:]):
		if text, ok := abiText(rest); ok {
			return text
		}
	case bytes.Equal(selector, panicSelector[:]) && len(rest) == 32:
		code := new(uint256.Int).SetBytes32(rest)
		if meaning, known := panics[code.Uint64()]; known && code.IsUint64() {
			return fmt.Sprintf("panic 0x%02x: %s", code.Uint64(), meaning)
		}
		return "panic " + code.Hex()
	}
	if len(data) > reasonMax/2 {
		return "0x" + hex.EncodeToString(data[:reasonMax/2]) + "…"
	}
	return "0x" + hex.EncodeToString(data)
}

// abiText decodes one ABI-encoded string and makes it displayable.
func abiText(data []byte) (string, bool) {
	if len(data) < 64 {
		return "", false
	}
	offset, length := new(uint256.Int).SetBytes32(data[:32]), new(uint256.Int).SetBytes32(data[32:64])
	if !offset.Eq(uint256.NewInt(32)) || length.GtUint64(uint64(len(data)-64)) {
		return "", false
	}
	return shown(string(data[64 : 64+length.Uint64()])), true
}

// shown makes untrusted text displayable: it replaces unprintable characters and cuts long text.
func shown(s string) string {
	cut := len(s) > reasonMax
	s = strings.ToValidUTF8(s[:min(len(s), reasonMax)], "?")
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	if cut {
		s += "…"
	}
	return s
}
