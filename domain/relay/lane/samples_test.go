package lane

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
	a, b := chain.IntentID{1, 2}, chain.IntentID{3, 4}
	first, second := chain.Keccak([]byte("first")), chain.Keccak([]byte("second"))
	block := chain.Block{Number: 7, Hash: chain.Keccak([]byte("block 7")), Parent: chain.Keccak([]byte("block 6")), Time: 1_800_000_000}
	other := chain.Block{Number: 7, Hash: chain.Keccak([]byte("another block 7")), Parent: block.Parent, Time: 1_800_000_001}
	witness := Witness{Nonce: 42, Block: block, Final: true, Endpoints: []string{"one", "two"}, Needed: 2, Asked: 3}
	return []Event{
		Opened{Holder: "5f1d7c", Token: 3, At: at},
		Advanced{Token: 3, From: 40, Witness: witness, At: at},
		Reserved{Token: 3, First: 42, Intents: []chain.IntentID{a}, Reissued: []Issue{{41, b}}, At: at},
		Released{Token: 3, Nonce: 42, Intent: a, Reason: "canceled", At: at},
		Filled{Token: 3, Nonce: 42, At: at},
		Attempted{
			Token: 3, Nonce: 41, Intent: b, Hash: second, Number: 2, Replaces: first, At: at,
			Fee: chain.Fee{MaxFee: chain.PriceOf(30_000_000_000), MaxPriorityFee: chain.PriceOf(2_000_000_000)},
		},
		Landed{Token: 3, Nonce: 41, Intent: b, Hash: second, Block: block, Status: 1, Final: true, At: at},
		Unlanded{Token: 3, Nonces: []uint64{42, 41}, Was: block, Now: other, At: at},
		Lost{Token: 3, Nonce: 41, Intent: b, Rival: chain.Keccak([]byte("rival")), Witness: witness, At: at},
		Reclaimed{Token: 3, Count: 2, Witness: witness, At: at},
	}
}

// Current events encode to their frozen samples, and every name ever written still decodes.
func TestFrozenSamples(t *testing.T) { eventtest.Frozen(t, Codec(), samples(), *update) }
