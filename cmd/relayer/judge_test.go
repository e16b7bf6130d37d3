package main_test

import (
	"math/big"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/promises/intents"
	"github.com/tempo-watchtower/watchtower/proof/promises/lanes"
	"github.com/tempo-watchtower/watchtower/proof/promises/safeguards"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// judge checks the history against the promises and the chain. Each intent was completed by one
// transaction, at its own nonce, and paid once. Canceled intents were not paid.
func (w *world) judge(t *testing.T) {
	t.Helper()
	ledger := w.ledger(t)
	nonces, wishes := lanes.New(lanes.Settings{}), intents.New()
	kept := safeguards.New(safeguards.Settings{Grace: 5 * time.Second, Gas: fee.GasMin})
	var found []promises.Violation
	all := w.events(t)
	for _, r := range all {
		found = slices.Concat(found, nonces.Event(r), wishes.Event(r), kept.Event(r))
	}
	w.allocated(t, ledger, all)
	w.keysStayIn(t, all)
	states := statesOf(t, all)
	found = append(found, nonces.Finish(time.Now())...)
	found = append(found, wishes.Finish(func(chain.ID) promises.Chain { return ledger }, true)...)
	for _, v := range found {
		t.Error(v)
	}
	places := map[intent.Place]chain.IntentID{}
	for id, r := range w.asked {
		s, want := states[id], intent.StatusCompleted
		if w.canceled[id] {
			want = intent.StatusCanceled
		}
		if s.Status() != want {
			t.Errorf("%s (%s) is %s, not %s: %+v", id, r.Key, s.Status(), want, s.End)
			continue
		}
		if s.Place == nil { // it was canceled before it got a nonce
			continue
		}
		if other, taken := places[*s.Place]; taken {
			t.Errorf("%s and %s have the nonce %+v", id, other, *s.Place)
		}
		places[*s.Place] = id
		if receipt, in := ledger.Receipt(s.End.Hash); !in || receipt.Status != 1 {
			t.Errorf("%s is ended by %s, which the chain has not executed", id, s.End.Hash)
		}
	}
	w.inOrder(t, states)
	if got, want := w.paid(t), uint64(len(w.asked)-len(w.canceled)+w.beside); got != want {
		t.Errorf("%d payments were executed for %d intents", got, want)
	}
}

// ledger is the node's chain.
func (w *world) ledger(t *testing.T) *promises.Ledger {
	t.Helper()
	ledger := promises.NewLedger()
	check(t, rig.Observe(w.ctx, ledger, w.node.URL(), 2))
	return ledger
}

// statesOf folds the intents from their events.
func statesOf(t *testing.T, all []eventlog.Recorded) map[chain.IntentID]intent.State {
	t.Helper()
	states, codec := map[chain.IntentID]intent.State{}, intent.Codec()
	for _, r := range all {
		if id, err := intent.ParseStream(r.Stream); err == nil {
			e, err := codec.Decode(r.Name, r.Data)
			check(t, err)
			states[id] = states[id].Evolve(e)
		}
	}
	return states
}

// unbroken checks that the intents of a signer have consecutive nonces starting at from, in log
// order, and that the chain has executed exactly these.
func (w *world) unbroken(t *testing.T, signer chain.Address, from uint64) {
	t.Helper()
	states, next := statesOf(t, w.events(t)), from
	for _, id := range w.positions(t) {
		if r := w.asked[id]; r.Signer == nil || *r.Signer != signer {
			continue
		}
		if p := states[id].Place; p == nil || p.Nonce != next {
			t.Fatalf("%s has %+v, not nonce %d", id, p, next)
		}
		next++
	}
	if wants := w.wants(t, signer); wants != next {
		t.Errorf("the chain wants nonce %d of %s, not %d", wants, signer, next)
	}
}

// wants is the chain's next nonce of a signer.
func (w *world) wants(t *testing.T, signer chain.Address) uint64 {
	t.Helper()
	var answer string
	check(t, rig.Call(w.ctx, w.node.URL(), &answer, "eth_getTransactionCount", signer.String(), "latest"))
	n, err := strconv.ParseUint(answer, 0, 64)
	check(t, err)
	return n
}

// inOrder checks that intents of an ordering group have rising nonces in one lane.
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

// positions lists the intents in log order.
func (w *world) positions(t *testing.T) (ids []chain.IntentID) {
	t.Helper()
	for _, r := range w.events(t) {
		if id, err := intent.ParseStream(r.Stream); err == nil && r.Version == 1 {
			ids = append(ids, id)
		}
	}
	return ids
}

// events is the whole log, which must not be written any more.
func (w *world) events(t *testing.T) (all []eventlog.Recorded) {
	t.Helper()
	f := w.feed(t)
	head, err := f.Log.Head(w.ctx)
	check(t, err)
	for batch, err := range f.Log.Subscribe(w.ctx, 0, eventlog.Filter{}, 1000) {
		check(t, err)
		all = append(all, batch.Events...)
		if batch.Next >= head {
			return all
		}
	}
	return all
}

// paid is the number of payments that the chain has executed.
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
