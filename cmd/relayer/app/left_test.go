package app

import (
	"crypto/rand"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/relayer"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/lane"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// A lane whose holder died with a nonce handed out is held again, though no intent asks for
// it: the one that was to have the nonce may have been canceled since. So it is until the nonce
// is given back.
func TestLeft(t *testing.T) {
	alice, bob := wallet.Dev(0).Address(), wallet.Dev(1).Address()
	db, err := embedded.Open("", embedded.Options{Window: 16})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	lanes := relayer.Lanes{Store: db.Log(), Codec: lane.Codec()}
	do := func(id chain.Sequence, all ...lane.Command) {
		t.Helper()
		handle(t, lanes, id, all...)
	}
	one := []chain.IntentID{{1}}
	reserves := func(who chain.Address, key byte) chain.Sequence {
		t.Helper()
		id := chain.Sequence{Chain: onTempo, Sender: who, Key: chain.NonceKey{31: key}}
		do(id, lane.Open{Holder: "one", Token: 1},
			lane.Advance{Token: 1, Witness: lane.Witness{Block: chain.Block{Number: 1, Hash: chain.Hash{1}}, Endpoints: []string{"a"}, Needed: 1, Asked: 1}},
			lane.Reserve{Token: 1, Intents: one, Budget: 1})
		return id
	}
	left := reserves(alice, 1)
	here := reserves(alice, 2)
	reserves(alice, 0) // is held anyway
	reserves(bob, 3)   // is another's
	done := reserves(alice, 4)
	giveBack := lane.Release{Token: 1, Intents: one, Reason: "it was canceled"}
	do(done, giveBack)
	c := &served{Relayer: &relayer.Relayer{Chain: onTempo, Lanes: lanes}, signers: []chain.Address{alice}}
	kept := leftovers{lanes: map[chain.Sequence]bool{}}
	holds := func(want ...chain.Sequence) {
		t.Helper()
		got, err := c.left(t.Context(), db.Log(), &kept, func(id chain.Sequence) bool { return id == here })
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	holds(left)
	do(left, giveBack)
	late := reserves(alice, 5)
	holds(late)
	do(late, giveBack)
	holds()
	if len(kept.lanes) != 1 || !kept.lanes[here] {
		t.Errorf("%v are kept in mind", kept.lanes)
	}
}

// handle has a lane carry out commands.
func handle(t *testing.T, lanes relayer.Lanes, id chain.Sequence, all ...lane.Command) {
	t.Helper()
	for _, c := range all {
		origin, err := commands.Begin(rand.Reader, event.Meta{Actor: lane.Actor})
		must(t, err)
		_, err = lanes.Handle(t.Context(), lane.Stream(id), c, origin)
		must(t, err)
	}
}
