package request

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseKeyHeader(t *testing.T) {
	most := strings.Repeat("k", KeyMax)
	for value, want := range map[string]string{
		"a": "a", "Az09._:-": "Az09._:-", "!~": "!~", "a,b": "a,b", `a"b\c`: `a"b\c`, most: most,
		`"a"`: "a", `"a\"b\\c"`: `a"b\c`, `"\""`: `"`, `"` + most + `"`: most,
		"": "", `"`: "", `""`: "", `"a`: "", `"a"b`: "", `"a\b"`: "", `"a\"`: "", "a b": "", `"a b"`: "",
		"a\x7f": "", "a\x00": "", "a\t": "", "ä": "", "a\u200bb": "", most + "k": "", `"` + most + `k"`: "", "\xff": "",
	} {
		key, ok := ParseKeyHeader(value)
		if ok != (want != "") || ok && key != want {
			t.Errorf("%q is read as %q, %v; want %q", value, key, ok, want)
		}
	}
}

// Every key can be sent in quotes, and every key that begins with no quote as it is.
func TestEveryKeyCanBeSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[!-~]{1,256}`).Draw(t, "key")
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if got, ok := ParseKeyHeader(quoted); !ok || got != key {
			t.Fatalf("%q in quotes is read as %q, %v", key, got, ok)
		}
		if got, ok := ParseKeyHeader(key); !strings.HasPrefix(key, `"`) && (!ok || got != key) {
			t.Fatalf("%q is read as %q, %v", key, got, ok)
		}
	})
}
