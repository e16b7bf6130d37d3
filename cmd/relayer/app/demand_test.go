package app

import (
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// A lane with a landed transaction that may still leave the chain is held again, though no
// intent asks for it: published confirmations may change.
func TestLanded(t *testing.T) {
	alice, bob := wallet.Dev(0).Address(), wallet.Dev(1).Address()
	db, err := embedded.Open("", embedded.Options{Window: 16})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	block := func(n uint64) chain.Block { return chain.Block{Number: n, Hash: chain.Hash{31: byte(n)}} }
	must(t, db.Work().Remember(t.Context(), onTempo, []chain.Block{block(50), block(51)}, 0))
	lanes := worker.Lanes{Store: db.Log(), Codec: lane.Codec(), Random: rand.Reader}
	var changes []tx.Change
	// lands makes the first nonce of a lane land. Delivery has the verdict; the lane has it
	// unless its holder died before.
	lands := func(who chain.Address, key byte, at uint64, sealed, closed, died bool) chain.Sequence {
		t.Helper()
		id := chain.Sequence{Chain: onTempo, Sender: who, Key: chain.NonceKey{31: key}}
		hash := chain.Keccak([]byte(lane.Stream(id)))
		witness := lane.Witness{Block: block(1), Endpoints: []string{"a"}, Needed: 1, Asked: 1}
		facts := []lane.Command{
			lane.Open{Holder: "one", Token: 1},
			lane.Advance{Token: 1, Witness: witness},
			lane.Reserve{Token: 1, Intents: []chain.IntentID{{1, 15: key}}, Budget: 1},
			lane.Attempt{Token: 1, Signed: []lane.Signed{{Intent: chain.IntentID{1, 15: key}, Hash: hash, Fee: chain.LegacyFee(chain.PriceOf(1))}}},
			lane.Land{Token: 1, Landings: []lane.Landing{{Hash: hash, Block: block(at), Status: 1, Final: closed}}},
		}
		if died {
			facts = facts[:4]
		}
		handle(t, lanes, id, facts...)
		verdict := &tx.Verdict{Status: tx.StatusExecuted, Block: block(at)}
		row := tx.Work{Chain: onTempo, Hash: hash, Sender: who, NonceKey: id.Key, Phase: tx.Open, NextAt: time.Now()}
		changes = append(changes, tx.Change{Chain: onTempo, Hash: hash, Open: &row})
		if sealed {
			changes = append(changes, tx.Change{Chain: onTempo, Hash: hash, Seal: verdict})
		} else {
			changes = append(changes, tx.Change{Chain: onTempo, Hash: hash, Announce: verdict})
		}
		return id
	}
	announced := lands(alice, 1, 10, false, false, false)
	told := lands(alice, 2, 50, true, false, false) // blocks reported with it are not final
	untold := lands(alice, 6, 51, true, false, true)
	lands(alice, 3, 51, true, true, false)
	lands(alice, 0, 50, false, false, false) // this lane is held anyway
	lands(bob, 4, 50, false, false, false)   // this lane is another signer's
	here := lands(alice, 5, 49, false, false, false)
	must(t, db.Work().Apply(t.Context(), "test", 0, 1, changes))
	c := &served{Relayer: &worker.Relayer{Chain: onTempo, Lanes: lanes, Blocks: db.Work()}, signers: []chain.Address{alice}}
	got, err := c.landed(t.Context(), db.Work(), func(id chain.Sequence) bool { return id == here })
	must(t, err)
	slices.SortFunc(got, inOrder)
	if diff := cmp.Diff([]chain.Sequence{announced, told, untold}, got); diff != "" {
		t.Error(diff)
	}
}
