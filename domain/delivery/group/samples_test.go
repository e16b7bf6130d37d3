package group

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
	key := chain.NonceKey{31: 5}
	block := chain.Block{Number: 7, Hash: chain.Keccak([]byte("block 7")), Parent: chain.Keccak([]byte("block 6")), Time: 1_800_000_000}
	return []Event{
		Joined{
			Chain: 42431, Sender: chain.Address{1}, Group: key.Group(), Hash: chain.Keccak([]byte("transaction")),
			NonceKey: key, Nonce: 9, EligibleAt: 1_800_000_000, ExpiresAt: 1_800_003_600,
			AccessKey: &chain.Address{3}, Confirmed: &block, At: at,
		},
		Canceled{
			Members: 12, At: at,
			By: Authority{Form: FormTyped, Signature: chain.P256, Digest: chain.Keccak([]byte("typed data")), Expires: 1_800_000_600},
		},
	}
}

// Current events encode to their frozen samples, and every name ever written still decodes.
func TestFrozenSamples(t *testing.T) { eventtest.Frozen(t, Codec(), samples(), *update) }
