package tx

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
	hash := chain.Keccak([]byte("transaction"))
	payer, key, group := chain.Address{2}, chain.Address{3}, chain.GroupID{4}
	block := chain.Block{Number: 7, Hash: chain.Keccak([]byte("block 7")), Parent: chain.Keccak([]byte("block 6")), Time: 1_800_000_000}
	rival := chain.Block{Number: 7, Hash: chain.Keccak([]byte("rival 7")), Parent: block.Parent, Time: 1_800_000_001}
	answers := []Answer{
		{Endpoint: "node-a", Class: Taken, Took: 3 * time.Millisecond},
		{Endpoint: "node-b", Class: Retry, Cause: Funds, Code: -32003, Message: "insufficient funds", Took: time.Millisecond},
	}
	receipt := chain.Receipt{Block: block, Index: 3, Status: 1, GasUsed: 50_000, EffectiveGasPrice: "20000000000", FeePayer: &payer, FeeToken: &key}
	return []Event{
		Accepted{
			Chain: 42431, Hash: hash, Type: 0x76, Sender: chain.Address{1}, Signature: chain.Keychain, AccessKey: &key, Authorized: true,
			FeePayer: &payer, NonceKey: chain.NonceKey{31: 5}, Nonce: 9, Group: &group,
			Window: chain.Window{After: 1_800_000_000, Before: 1_800_003_600}, EligibleAt: 1_800_000_000,
			Bytes: 212, RawHash: chain.Keccak([]byte("raw")), Client: "shop", At: at,
		},
		Resubmitted{Client: "bank", Terms: &Terms{Payer: payer, AccessKey: &key, Opens: 1_800_000_000, Sealed: true}, At: at},
		Broadcast{Attempt: 1, Answers: answers, At: at},
		Rejected{Attempt: 2, Class: Permanent, Cause: Fee, Reason: "invalid", Permanent: true, Answers: answers[1:], At: at},
		Mined{Receipt: receipt, At: at},
		StaleByNonce{Block: block, Current: 10, At: at},
		Expired{Block: block, At: at},
		Reorged{Was: block, Now: rival, Unwanted: true, At: at},
		Finalized{Verdict: StatusExecuted, Block: block, By: rival, At: at},
		FinalityViolated{Verdict: StatusExecuted, Was: block, Now: rival, At: at},
		CanceledLocally{Reason: "group canceled", Verdict: StatusExecuted, At: at},
		GroupDoubted{Reason: "the access key is not known", Block: block, At: at},
		GroupConfirmed{Block: block, At: at},
		PayloadErased{At: at},
		Retired{At: at},
	}
}

// Current events encode to their frozen samples, and every name ever written still decodes.
func TestFrozenSamples(t *testing.T) { eventtest.Frozen(t, Codec(), samples(), *update) }
