package chain

import (
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRevertReason(t *testing.T) {
	word := func(n string) string { return strings.Repeat("0", 64-len(n)) + n }
	text := func(length, bytes string) string { return "08c379a0" + word("20") + word(length) + bytes }
	for _, c := range []struct{ name, data, want string }{
		{"an error", text("5", "68656c6c6f"+strings.Repeat("0", 54)), "hello"},
		{"without padding", text("5", "68656c6c6f"), "hello"},
		{"control characters", text("3", "41070a"), "A??"},
		{"not UTF-8", text("3", "41ff42"), "A?B"},
		{"longer than it is", text("6", "68656c6c6f"), "0x" + text("6", "68656c6c6f")},
		{"2^255 long", text("8"+strings.Repeat("0", 63), "68"), "0x" + text("8"+strings.Repeat("0", 63), "68")},
		{"elsewhere", "08c379a0" + word("40") + word("1") + "41", "0x08c379a0" + word("40") + word("1") + "41"},
		{"cut", "08c379a0" + word("20"), "0x08c379a0" + word("20")},
		{"a panic", "4e487b71" + word("11"), "panic 0x11: arithmetic overflow"},
		{"a panic of another compiler", "4e487b71" + word("99"), "panic 0x99"},
		{"a large panic", "4e487b71" + "1" + word("11")[1:], "panic 0x1" + strings.Repeat("0", 61) + "11"},
		{"an error of its own", "deadbeef01", "0xdeadbeef01"},
		{"three bytes", "08c379", "0x08c379"},
	} {
		data, err := hex.DecodeString(c.data)
		if err != nil {
			t.Fatal(err)
		}
		if got := RevertReason(data); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	for _, r := range []struct {
		reverted Reverted
		want     string
	}{
		{Reverted{Data: []byte{1}}, "it would revert: 0x01"},
		{Reverted{Detail: "out of gas"}, "it would fail: out of gas"},
		{Reverted{}, "it would revert, without a reason"},
	} {
		if got := r.reverted.Error(); got != r.want {
			t.Errorf("%q, want %q", got, r.want)
		}
	}
}

// A reason is untrusted: for any data, the displayed reason is short and printable.
func FuzzRevertReason(f *testing.F) {
	long, err := hex.DecodeString("08c379a0" + strings.Repeat("0", 62) + "20" + strings.Repeat("0", 60) + "0fff" + strings.Repeat("c3bc", 0x1000))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(long)
	f.Add([]byte{0x4e, 0x48, 0x7b, 0x71})
	f.Fuzz(func(t *testing.T, data []byte) {
		if s := RevertReason(data); len(s) > 3*reasonMax+8 || !utf8.ValidString(s) || strings.ContainsAny(s, "\n\r\x00\x1b") {
			t.Errorf("%q", s)
		}
	})
}
