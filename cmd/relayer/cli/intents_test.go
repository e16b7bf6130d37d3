package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// The printed intent shows whether the mined transaction is the requested one.
func TestTellLanded(t *testing.T) {
	const shown = `{"id": "0x0102030405060708090a0b0c0d0e0f10", "status": "canceling", "chainId": 1, "pool": "hot",
	  "attempts": [{"kind": "first", "txHash": "0x%064d"}, {"kind": "no-op", "txHash": "0x%064d"}],
	  "txHash": "0x%064d", "receipt": {"block": {"number": 7}, "status": %d}}`
	for name, c := range map[string]struct {
		hash, status int
		want         string
	}{
		"the payment": {1, 1, "in block 7, 0 confirmations$"},
		"it reverted": {1, 0, "in block 7, 0 confirmations: reverted$"},
		"its no-op":   {2, 1, "in block 7, 0 confirmations: the no-op, not the intent's calls$"},
	} {
		var i intentShown
		if err := json.Unmarshal(fmt.Appendf(nil, shown, 1, 2, c.hash, c.status), &i); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := tellIntent(&out, i); err != nil || !regexp.MustCompile("(?m)^mined .*"+c.want).MatchString(out.String()) {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
}
