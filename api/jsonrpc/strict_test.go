package jsonrpc

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/api/rest"
)

func freely(int) error { return nil }

// Attack 5: a body of half a million elements, in each place for elements, costs no allocation
// per element. A batch is refused by its count before it is decoded.
func TestManyElementsAreRefusedBeforeTheyAreDecoded(t *testing.T) {
	const size = 1 << 20
	zeros := "[" + strings.Repeat("0,", size/2-1) + "0]"
	fill := func(before, part, after string) string {
		return before + strings.Repeat(part, (size-len(before)-len(after))/len(part)) + after
	}
	members := strings.Builder{}
	for i := 0; members.Len() < size; i++ {
		fmt.Fprintf(&members, `,"%x":0`, i)
	}
	for name, test := range map[string]struct{ body, refused string }{
		"a batch":                {zeros, "batch too large: at most 100 calls"},
		"a batch with spaces":    {" \n" + zeros, "batch too large: at most 100 calls"},
		"a batch that is no end": {zeros[:size-2], "batch too large: at most 100 calls"},
		"a batch of strings":     {fill(`["`, `,\"`, `"]`), ""},
		"parameters":             {`{"jsonrpc":"2.0","id":1,"method":"eth_call","params":` + zeros + `}`, "too many arguments, want at most 16"},
		"members":                {`{"jsonrpc":"2.0"` + members.String() + `}`, "invalid request: a call has at most 64 members"},
		"a batch of a batch":     {"[" + zeros + "]", "invalid request: a call is an object"},
		"objects in a parameter": {fill(`{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[[{"a":0}`, `,{"a":0}`, `]]}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			body := []byte(test.body)
			var calls []call
			var refused *failure
			read := func() { calls, _, refused, _ = parse(body, 100, freely) }
			most := 100.0
			if name == "members" {
				most = 130_000 // their names are kept to detect repeated names
			}
			if allocs := testing.AllocsPerRun(2, read); allocs > most {
				t.Errorf("%.0f allocations", allocs)
			}
			if refused == nil && len(calls) == 1 {
				refused = calls[0].refused
			}
			if test.refused != "" && (refused == nil || refused.message != test.refused) {
				t.Errorf("refused %+v", refused)
			}
		})
	}
}

// Attack 5: a batch is charged for its calls before the first is decoded.
func TestBatchIsChargedBeforeItIsDecoded(t *testing.T) {
	body := []byte("[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"net_version"},`, 99) + "{]") // not JSON: it must not be decoded
	charged := 0
	_, _, refused, err := parse(body, 100, func(n int) error {
		charged += n
		return rest.ErrRateLimited
	})
	if charged != 100 || refused != nil || !errors.Is(err, rest.ErrRateLimited) {
		t.Errorf("%d charged, %v, %v", charged, refused, err)
	}
}

func TestRepeatedMember(t *testing.T) {
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf(`"%d":{"%d":[{}]}`, i, i))
	}
	of := func(members ...string) string { return "{" + strings.Join(members, ",") + "}" }
	for text, want := range map[string]string{
		`{}`: "", `[]`: "", `"a"`: "", `[{"a":1},{"a":2}]`: "", `{"a":{"a":{"a":1}},"b":"a"}`: "", `{"a":["a","a",{"a":"a"}]}`: "",
		`{"a":1,"a":2}`: "a", `[[{"x":{"b":1,"b":2}}]]`: "b", `{"a":1,"\u0061":2}`: "a", `{"a":[{"c":1}],"a":2}`: "a", `{"\"":1,"\u0022":2}`: `"`,
		of(many...): "", of(append(many, `"7":1`)...): "7", of(append(many, `"99":1`)...): "99", of(append(many, `"x":{"y":1,"y":2}`)...): "y",
	} {
		name, twice := repeated([]byte(text))
		if twice != (want != "") || twice && string(name) != want {
			t.Errorf("%.60s: %q %v, want %q", text, name, twice, want)
		}
	}
}
