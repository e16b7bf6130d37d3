package chain

import (
	"strings"
	"testing"
	"unicode"
)

// Every nonce key has one text, and its display is printable and parses back.
func FuzzNonceKey(f *testing.F) {
	for _, flags := range []uint16{0, 1, 4, 16, 21, 2, 64, 1 << 15} {
		k := keyOf(flags, "PAYROLL", "AB", "JAN-2026")
		f.Add(k[:])
	}
	f.Add(ExpiringKey[:])
	f.Add([]byte("NKG1\x01\x02\x00\x15, kind=\x00\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > len(NonceKey{}) {
			return
		}
		var k NonceKey
		copy(k[:], b)
		if back, err := ParseNonceKey(k.String()); err != nil || back != k {
			t.Fatalf("%x is written as %s and read as %x, %v", k, k, back, err)
		}
		e, ok := k.Explicit()
		if !ok {
			return
		}
		line := e.String()
		if strings.ContainsFunc(line, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) }) {
			t.Fatalf("%x is shown as %q", k, line)
		}
		made := append([]byte("NKG1\x01"), e.Kind, 0, byte(e.Scope.Encoding|e.Group.Encoding<<2|e.Memo.Encoding<<4))
		made = append(append(append(made, e.Scope.Bytes...), e.Group.Bytes...), e.Memo.Bytes...)
		if NonceKey(made) != k {
			t.Fatalf("%x is put together again as %x", k, made)
		}
	})
}

// An accepted text equals its value's own text, except for upper and lower case.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "0x", "0x0", "42431", "18446744073709551616", "0x" + strings.Repeat("aB", 32), "0x" + strings.Repeat("aB", 20), "0x" + strings.Repeat("aB", 16),
		"0X" + strings.Repeat("ab", 32), "0x" + strings.Repeat("٣", 32), "+1", "01",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for kind, parse := range map[string]func(string) (string, error){
			"hash":    func(s string) (string, error) { v, err := ParseHash(s); return v.String(), err },
			"address": func(s string) (string, error) { v, err := ParseAddress(s); return v.String(), err },
			"group":   func(s string) (string, error) { v, err := ParseGroupID(s); return v.String(), err },
			"chain":   func(s string) (string, error) { v, err := ParseID(s); return v.String(), err },
			"caip-2":  func(s string) (string, error) { v, err := ParseReference(s); return v.String(), err },
		} {
			if got, err := parse(text); err == nil && got != strings.ToLower(text) {
				t.Fatalf("%q is taken for the %s %s", text, kind, got)
			}
		}
		if k, err := ParseNonceKey(text); err == nil && strings.TrimLeft(strings.ToLower(text[2:]), "0") != strings.TrimLeft(k.String()[2:], "0") {
			t.Fatalf("%q is taken for the nonce key %s", text, k)
		}
	})
}
