package signer

import (
	"flag"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/eventtest"
)

var update = flag.Bool("update", false, "write samples of events that have none yet")

// samples returns one event of every current shape, with every field set.
func samples() []Event {
	at := time.Date(2026, 11, 21, 3, 4, 5, 678901000, time.UTC)
	threshold, balance := chain.NewAmount(20_000_000_000_000_000), chain.NewAmount(19_999_999_999_999_999)
	return []Event{
		Registered{
			Pools:   []string{"payroll", "refunds"},
			Targets: chain.Targets{{To: &chain.Address{1, 2}, Selectors: []chain.Selector{{0xa9, 0x05, 0x9c, 0xbb}}}, {}},
			Actor:   "operator:ada", Reason: "as agreed", At: at,
		},
		Paused{"operator:ada", "the key is being moved", at},
		Draining{"operator:ada", "the key is to be retired", at},
		Drained{at},
		Resumed{"operator:ada", "moved", at},
		ThresholdSet{threshold, "operator:ada", "fees have risen", at},
		ThresholdLearned{threshold, balance, at},
		BalanceLow{balance, threshold, at},
		BalanceRestored{threshold.Plus(balance), threshold, at},
		Failed{eventlog.ID{1, 2}, NoSignature, "the signer did not answer", 2, at},
		Recovered{2, at},
		Disabled{Rejected, 5, 5, at},
	}
}

// Current events encode to their frozen samples, and every name ever written still decodes.
func TestFrozenSamples(t *testing.T) { eventtest.Frozen(t, Codec(), samples(), *update) }
