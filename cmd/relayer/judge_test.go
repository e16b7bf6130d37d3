package main_test

import (
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/cmd/internal/rig"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/promise"
	"github.com/tempo-watchtower/watchtower/domain/promise/intents"
	"github.com/tempo-watchtower/watchtower/domain/promise/lanes"
)

// judge holds the history against what is promised, and against the chain: each intent
// was completed by one transaction, at a nonce of its own, and paid once.
func (w *world) judge(t *testing.T) {
	t.Helper()
	ledger := promise.NewLedger()
	check(t, rig.Observe(w.ctx, ledger, w.node.URL(), 2))
	nonces, wishes := lanes.New(lanes.Settings{}), intents.New()
	var found []promise.Violation
	states := map[chain.IntentID]intent.State{}
	codec := intent.Codec()
	for _, r := range w.events(t) {
		found = slices.Concat(found, nonces.Event(r), wishes.Event(r))
		if id, err := intent.ParseStream(r.Stream); err == nil {
			e, err := codec.Decode(r.Name, r.Data)
			check(t, err)
			states[id] = states[id].Evolve(e)
		}
	}
	found = append(found, nonces.Finish(time.Now())...)
	found = append(found, wishes.Finish(func(chain.ID) promise.Chain { return ledger }, true)...)
	for _, v := range found {
		t.Error(v)
	}
	places := map[intent.Place]chain.IntentID{}
	for id, r := range w.asked {
		s := states[id]
		if s.Status() != intent.StatusCompleted {
			t.Errorf("%s (%s) is %s: %+v", id, r.Key, s.Status(), s.End)
			continue
		}
		if other, taken := places[*s.Place]; taken {
			t.Errorf("%s and %s have the nonce %+v", id, other, *s.Place)
		}
		places[*s.Place] = id
		if receipt, in := ledger.Receipt(s.End.Hash); !in || receipt.Status != 1 {
			t.Errorf("%s is completed by %s, which the chain has not executed", id, s.End.Hash)
		}
	}
	w.inOrder(t, states)
	if got := w.paid(t); got != uint64(len(w.asked)) {
		t.Errorf("%d payments were executed for %d intents", got, len(w.asked))
	}
}

// inOrder checks that intents of a row have rising nonces in one lane.
func (w *world) inOrder(t *testing.T, states map[chain.IntentID]intent.State) {
	t.Helper()
	last := map[string]intent.State{}
	for _, id := range w.positions(t) {
		r, s := w.asked[id], states[id]
		if r.Order == "" || s.Place == nil {
			continue
		}
		if before, ok := last[r.Order]; ok {
			if was := before.Place; was.Signer != s.Place.Signer || was.NonceKey != s.Place.NonceKey || was.Nonce >= s.Place.Nonce {
				t.Errorf("row %s: %+v comes after %+v", r.Order, *s.Place, *was)
			}
		}
		last[r.Order] = s
	}
}

// positions are the intents in the order of asking.
func (w *world) positions(t *testing.T) (ids []chain.IntentID) {
	t.Helper()
	for _, r := range w.events(t) {
		if id, err := intent.ParseStream(r.Stream); err == nil && r.Version == 1 {
			ids = append(ids, id)
		}
	}
	return ids
}

// events is the whole log. Nobody writes to it any more.
func (w *world) events(t *testing.T) (all []event.Recorded) {
	t.Helper()
	f := w.feed(t)
	head, err := f.Log.Head(w.ctx)
	check(t, err)
	for batch, err := range f.Log.Subscribe(w.ctx, 0, event.Filter{}, 1000) {
		check(t, err)
		all = append(all, batch.Events...)
		if batch.Next >= head {
			return all
		}
	}
	return all
}

// paid is how many payments the chain has executed.
func (w *world) paid(t *testing.T) uint64 {
	t.Helper()
	if w.name == "tempo" {
		units, err := rig.Balance(w.ctx, w.node.URL(), wallet.PathUSD, to)
		check(t, err)
		return units
	}
	var answer string
	check(t, rig.Call(w.ctx, w.node.URL(), &answer, "eth_getBalance", to.String(), "latest"))
	n, ok := new(big.Int).SetString(answer, 0)
	if !ok || !n.IsUint64() {
		t.Fatalf("the balance is %s", answer)
	}
	return n.Uint64()
}
