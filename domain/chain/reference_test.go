package chain

import (
	"errors"
	"strings"
	"testing"
)

func TestParseNamed(t *testing.T) {
	for text, want := range map[string]ID{"1": 1, "42431": 42431, "eip155:1": 1, "eip155:42431": 42431, "eip155:18446744073709551615": 1<<64 - 1} {
		if id, err := ParseNamed(text); err != nil || id != want {
			t.Errorf("%q is chain %d, %v", text, id, err)
		}
	}
	if got := ID(42431).Reference().String(); got != "eip155:42431" {
		t.Error(got)
	}
	for _, other := range []string{"near:testnet", "near:mainnet", "solana:4sGjMW1sUnHzSxGspuhpqLDx6wiyjNtZ", "abc:_-A"} {
		if _, err := ParseNamed(other); !errors.Is(err, ErrNoNumber) {
			t.Errorf("%q: %v", other, err)
		}
	}
	for _, bad := range []string{
		"", "0", "01", "+1", "-1", "eip155", "eip155:", ":1", "eip155:0", "eip155:01", "eip155:x", "eip155:+1", "EIP155:1", "eip155:1:2",
		"ab:1", "abcdefghi:1", "near:", "near:test net", "near:" + strings.Repeat("a", 33), "eip155:18446744073709551616", "near:a.b", " 1", "eip155 :1",
	} {
		if id, err := ParseNamed(bad); err == nil || errors.Is(err, ErrNoNumber) {
			t.Errorf("%q is chain %d, %v", bad, id, err)
		}
	}
}
