package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest"
)

// A lane whose holder died with a reserved nonce is held again, though no intent asks for it:
// the nonce's intent may have been canceled since. It stays held until the nonce is given back.
func TestLeft(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		db, err := embedded.Open("", embedded.Options{Window: 16})
		must(t, err)
		defer func() { must(t, db.Close()) }()
		looksForLeft(t, db.Log(), nil)
	})
	t.Run("eventstoredb", func(t *testing.T) {
		server, err := esdbtest.New(esdbtest.Options{})
		must(t, err)
		defer server.Stop()
		log, err := eventstoredb.Open(t.Context(), server.URL(), eventstoredb.Options{})
		must(t, err)
		defer func() { must(t, log.Close(context.WithoutCancel(t.Context()))) }()
		looksForLeft(t, log, log.Ago)
	})
}

// looksForLeft leaves nonces in lanes of a log whose positions go far beyond its number of
// events.
func looksForLeft(t *testing.T, log port.Store, ago func(context.Context, int) (eventlog.Position, error)) {
	alice, bob := wallet.Dev(0).Address(), wallet.Dev(1).Address()
	lanes := worker.Lanes{Store: log, Codec: lane.Codec(), Random: rand.Reader}
	for n := range 4 {
		_, err := log.Append(t.Context(), "other", eventlog.Version(n), eventlog.Event{ID: eventlog.ID{byte(n + 1)}, Name: "other.happened.v1", Data: fmt.Appendf(nil, "%q", strings.Repeat("x", leftMax/3))})
		must(t, err)
	}
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
	reserves(alice, 0) // this lane is held anyway
	reserves(bob, 3)   // this lane is another signer's
	done := reserves(alice, 4)
	giveBack := lane.Release{Token: 1, Intents: one, Reason: "it was canceled"}
	do(done, giveBack)
	c := &served{Relayer: &worker.Relayer{Chain: onTempo, Lanes: lanes}, signers: []chain.Address{alice}}
	kept := leftovers{lanes: map[chain.Sequence]bool{}, ago: ago}
	holds := func(want ...chain.Sequence) {
		t.Helper()
		got, err := c.left(t.Context(), log, &kept, func(id chain.Sequence) bool { return id == here })
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

// Of many recently used lanes only a few are read before lanes with demand are opened; in the
// end all are read.
func TestLeftOfMany(t *testing.T) {
	alice := wallet.Dev(0).Address()
	db, err := embedded.Open("", embedded.Options{Window: 16})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	kept := leftovers{begun: true, lanes: map[chain.Sequence]bool{}}
	for n := range 2*leftLooks + 1 {
		kept.lanes[chain.Sequence{Chain: onTempo, Sender: alice, Key: chain.NonceKey{0: 1, 30: byte(n >> 8), 31: byte(n)}}] = true
	}
	c := &served{Relayer: &worker.Relayer{Chain: onTempo, Lanes: worker.Lanes{Store: db.Log(), Codec: lane.Codec(), Random: rand.Reader}}, signers: []chain.Address{alice}}
	for _, rest := range []int{leftLooks + 1, 1, 0} {
		_, err := c.left(t.Context(), db.Log(), &kept, func(chain.Sequence) bool { return false })
		must(t, err)
		if len(kept.lanes) != rest {
			t.Errorf("%d lanes are still to be read, not %d", len(kept.lanes), rest)
		}
	}
}

// handle executes commands on a lane.
func handle(t *testing.T, lanes worker.Lanes, id chain.Sequence, all ...lane.Command) {
	t.Helper()
	for _, c := range all {
		origin, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: lane.Actor})
		must(t, err)
		_, err = lanes.Handle(t.Context(), lane.Stream(id), c, origin)
		must(t, err)
	}
}
