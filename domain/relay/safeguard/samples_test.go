package safeguard

import (
	"flag"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog/eventtest"
)

var update = flag.Bool("update", false, "write samples of events that have none yet")

// samples returns one event of every current shape, with every field set.
func samples() []Event {
	at := time.Date(2026, 11, 21, 3, 4, 5, 678901000, time.UTC)
	payroll := Scope{OfClient, 42431, "payroll"}
	return []Event{
		Halted{payroll, "operator:ada", "its key has leaked", at},
		Resumed{payroll, "operator:ada", "it has another key", at},
		TargetsSet{payroll, chain.Targets{{To: &chain.Address{1, 2}, Selectors: []chain.Selector{{0xa9, 0x05, 0x9c, 0xbb}}}}, "operator:ada", "transfers only", at},
		RateSet{Scope{Kind: EachClient}, &Rate{10, 100}, "operator:ada", "as it was agreed", at},
	}
}

// Current events encode to their frozen samples, and every name ever written still decodes.
func TestFrozenSamples(t *testing.T) { eventtest.Frozen(t, Codec(), samples(), *update) }
