package chain

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// keyOf returns an NKG1 key of kind 2.
func keyOf(flags uint16, scope, group, memo string) (k NonceKey) {
	copy(k[:], fmt.Sprintf("NKG1\x01\x02%c%c", 0, 0))
	k[6], k[7] = byte(flags>>8), byte(flags)
	copy(k[8:16], scope)
	copy(k[16:20], group)
	copy(k[20:], memo)
	return k
}

// All combinations of the three encodings, and edge cases of ASCII.
func TestDisplayRules(t *testing.T) {
	const scope, group, memo = 1 << 0, 1 << 2, 1 << 4
	for _, tt := range []struct {
		name               string
		flags              uint16
		scope, group, memo string // as bytes
		want               [3]string
	}{
		{"all raw", 0, "PAYROLL", "AB", "JAN-2026", [3]string{"5783001606573018112", "1094844416", "0x4a414e2d3230323600000000"}},
		{"scope", scope, "PAYROLL", "AB", "JAN-2026", [3]string{"PAYROLL", "1094844416", "0x4a414e2d3230323600000000"}},
		{"group", group, "PAYROLL", "AB", "JAN-2026", [3]string{"5783001606573018112", "AB", "0x4a414e2d3230323600000000"}},
		{"memo", memo, "PAYROLL", "AB", "JAN-2026", [3]string{"5783001606573018112", "1094844416", "JAN-2026"}},
		{"scope and group", scope | group, "PAYROLL", "AB", "JAN-2026", [3]string{"PAYROLL", "AB", "0x4a414e2d3230323600000000"}},
		{"scope and memo", scope | memo, "PAYROLL", "AB", "JAN-2026", [3]string{"PAYROLL", "1094844416", "JAN-2026"}},
		{"group and memo", group | memo, "PAYROLL", "AB", "JAN-2026", [3]string{"5783001606573018112", "AB", "JAN-2026"}},
		{"all text", scope | group | memo, "PAYROLL", "AB", "JAN-2026", [3]string{"PAYROLL", "AB", "JAN-2026"}},

		{"whole fields, nothing to trim", scope | group | memo, "12345678", "ABCD", "abcdefghijkl", [3]string{"12345678", "ABCD", "abcdefghijkl"}},
		{"the first and the last that can be printed", scope | group | memo, " ~", "~", " ", [3]string{" ~", "~", " "}},
		{"just outside", scope | group | memo, "a\x1f", "a\x7f", "a\x80", [3]string{"0x611f000000000000", "0x617f0000", "0x618000000000000000000000"}},
		{"a zero within is no trailing one", scope | group | memo, "a\x00b", "\x00a", "a\x00\x00b", [3]string{"0x6100620000000000", "0x00610000", "0x610000620000000000000000"}},
		{"nothing", scope | group | memo, "", "", "", [3]string{"", "", ""}},
		{"the largest numbers", 0, strings.Repeat("\xff", 8), strings.Repeat("\xff", 4), strings.Repeat("\xff", 12),
			[3]string{"18446744073709551615", "4294967295", "0xffffffffffffffffffffffff"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, ok := keyOf(tt.flags, tt.scope, tt.group, tt.memo).Explicit()
			if got := [3]string{e.Scope.Number(), e.Group.Number(), e.Memo.Text()}; !ok || got != tt.want {
				t.Errorf("%v %q, want %q", ok, got, tt.want)
			}
		})
	}
}

// Of the 65,536 values of the flags, only the eight defined by the format make a group's key.
func TestReservedFlags(t *testing.T) {
	var taken []uint16
	for flags := range 1 << 16 {
		if _, ok := keyOf(uint16(flags), "", "", "").Explicit(); ok { //nolint:gosec // 16 bits
			taken = append(taken, uint16(flags)) //nolint:gosec // 16 bits
		}
	}
	if got := fmt.Sprintf("%#x", taken); got != "[0x0 0x1 0x4 0x5 0x10 0x11 0x14 0x15]" {
		t.Errorf("taken: %s", got)
	}
}

// A group's id is the beginning of a hash of the key's 32 bytes, for every key.
func TestGroupID(t *testing.T) {
	// The hash of 32 zero bytes is the storage slot at which Solidity stores the elements of an
	// array in slot 0; the hash of 0…01 is the same for slot 1 (docs.soliditylang.org, layout of
	// state variables in storage).
	for key, want := range map[NonceKey]string{
		{}:      "0x290decd9548b62a8d60345a988386fc8",
		{31: 1}: "0xb10e2d527612073b26eecdfd717e6a32",
	} {
		if got := key.Group().String(); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		key := NonceKey(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key"))
		back, err := ParseNonceKey(key.String())
		if err != nil || back.Group() != key.Group() {
			t.Fatalf("%s is read as the key of another group: %v", key, err)
		}
		whole, group := Keccak(key[:]), key.Group()
		if !bytes.HasPrefix(whole[:], group[:]) {
			t.Fatalf("group %s of %s", group, hex.EncodeToString(whole[:]))
		}
	})
}
