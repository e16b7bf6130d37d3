package tempo_test

import (
	"bytes"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

// The sums are those at which a node begins to mine: see TestAnvilLeastGas of commands/relay/worker.
func TestLeastGas(t *testing.T) {
	to := &chain.Address{1}
	for name, c := range map[string]struct {
		calls []chain.Call
		want  uint64
	}{
		"no data":       {[]chain.Call{{To: to}}, 21_000},
		"two calls":     {[]chain.Call{{To: to}, {To: to}}, 23_600},
		"zeros":         {[]chain.Call{{To: to, Input: make([]byte, 5000)}}, 71_000},
		"others":        {[]chain.Call{{To: to, Input: bytes.Repeat([]byte{0xff}, 5000)}}, 221_000},
		"of both calls": {[]chain.Call{{To: to, Input: bytes.Repeat([]byte{1}, 1000)}, {To: to, Input: bytes.Repeat([]byte{1}, 1000)}}, 101_000},
		"a creation":    {[]chain.Call{{Input: make([]byte, 1000)}}, 525_064},
		"none":          {nil, 21_000},
	} {
		if got := tempo.LeastGas(c.calls); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
