package main_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// names lists a transaction's events in order.
func (w *world) names(t *testing.T, url string, hash chain.Hash) []string {
	t.Helper()
	events, err := rig.Events(w.ctx, url, hash)
	check(t, err)
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = e.Name
	}
	return names
}

// call sends a request directly to the node, bypassing the proxy.
func (w *world) call(t *testing.T, method string, params ...any) {
	t.Helper()
	check(t, rig.Call(w.ctx, w.chain.URL(), nil, method, params...))
}

// A pool forgets a transaction that it accepted: the service sends the bytes again.
func TestEviction(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--no-mining")
		s := w.service(t)
		check(t, s.Start(w.ctx))
		payments, to := rig.Payments(2000, 20)
		w.submit(t, s, payments, 4)
		for _, p := range payments {
			_, err := rig.Await(w.ctx, s.URL, p.Hash, func(t rig.Transaction) bool { return t.Status == "broadcasting" })
			check(t, err)
			w.call(t, "anvil_dropTransaction", p.Hash.String())
		}
		w.call(t, "evm_mine")
		w.paidOnce(t, to, 0)
		w.call(t, "evm_setIntervalMining", 1)
		w.delivered(t, s.URL, payments, rig.Sealed)
		w.paidOnce(t, to, len(payments))
		check(t, s.Stop(w.ctx))
		var took struct{ Took time.Duration }
		if !s.Said("stopping", &took) || !s.Said("stopped", &took) || took.Took <= 0 {
			t.Errorf("it has not said that it stopped, or how long that took: %+v", took)
		}
	})
}

// Blocks are replaced, and their transactions are in no pool any more. Each is un-mined and
// delivered again, and the read model follows.
func TestReorg(t *testing.T) {
	t.Parallel()
	allEngines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		for _, depth := range []int{1, 3, 10} {
			t.Run(map[int]string{1: "1 block", 3: "3 blocks", 10: "10 blocks"}[depth], func(t *testing.T) {
				t.Parallel()
				reorg(t, newWorld(t, store, "--no-mining"), depth)
			})
		}
	})
}

func reorg(t *testing.T, w *world, depth int) {
	w.confirmations = depth + 2 // the replaced blocks are not final yet
	s := w.service(t)
	check(t, s.Start(w.ctx))
	payments, to := rig.Payments(uint32(3000+depth), 2*depth)
	for i := range depth { // two in each block to be replaced
		two := payments[2*i : 2*i+2]
		w.submit(t, s, two, 2)
		for _, p := range two {
			_, err := rig.Await(w.ctx, s.URL, p.Hash, func(t rig.Transaction) bool { return t.Status == "broadcasting" })
			check(t, err)
		}
		w.call(t, "evm_mine")
		w.delivered(t, s.URL, two, rig.Executed)
	}
	before := map[chain.Hash]chain.Hash{}
	for _, p := range payments {
		got, err := rig.Get(w.ctx, s.URL, p.Hash)
		check(t, err)
		before[p.Hash] = got.Receipt.BlockHash
	}

	w.call(t, "anvil_reorg", depth, []any{})
	w.call(t, "evm_mine")
	w.paidOnce(t, to, 0)
	w.call(t, "evm_setIntervalMining", 1)
	w.delivered(t, s.URL, payments, func(t rig.Transaction) bool {
		return rig.Sealed(t) && t.Receipt.BlockHash != before[t.TxHash]
	})
	w.paidOnce(t, to, len(payments))
	for _, p := range payments {
		names := w.names(t, s.URL, p.Hash)
		if n := count(names, "tx.reorged.v1"); n != 1 {
			t.Errorf("%s: %d Reorged in %v", p.Hash, n, names)
		}
	}
	check(t, s.Stop(w.ctx))
}

func count(names []string, name string) int {
	return len(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n != name }))
}

// The chain replaces a block that it had called final. The service records that, and leaves the
// transaction alone.
func TestReorgBelowFinality(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--no-mining")
		s := w.service(t) // two confirmations
		check(t, s.Start(w.ctx))
		for range 4 {
			w.call(t, "evm_mine") // a base for the fork
		}
		payments, _ := rig.Payments(4000, 1)
		w.submit(t, s, payments, 1)
		hash := payments[0].Hash
		_, err := rig.Await(w.ctx, s.URL, hash, func(t rig.Transaction) bool { return t.Status == "broadcasting" })
		check(t, err)
		for range 4 {
			w.call(t, "evm_mine")
		}
		_, err = rig.Await(w.ctx, s.URL, hash, rig.Sealed)
		check(t, err)
		w.observe(t)
		w.call(t, "anvil_reorg", 5, []any{})
		w.call(t, "evm_mine")
		for {
			if names := w.names(t, s.URL, hash); slices.Contains(names, "tx.finality_violated.v1") {
				break
			}
			select {
			case <-w.ctx.Done():
				t.Fatalf("no violation recorded: %v", w.names(t, s.URL, hash))
			case <-time.After(50 * time.Millisecond):
			}
		}
		check(t, s.Stop(w.ctx))
	})
}

// One transaction waits for its window, another for its predecessor.
func TestWaiting(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		s := w.service(t)
		check(t, s.Start(w.ctx))
		to := chain.Address{0: 0x42}
		call := []chain.Call{wallet.Transfer(wallet.PathUSD, to, 1)}
		opens := uint64(time.Now().Unix()) + 4
		later := rig.Pay(wallet.Dev(0), wallet.Tempo{NonceKey: chain.NonceKey{31: 1}, Window: chain.Window{After: opens}, Calls: call})
		second := rig.Pay(wallet.Dev(1), wallet.Tempo{NonceKey: chain.NonceKey{31: 1}, Nonce: 1, Calls: call})
		w.submit(t, s, []rig.Payment{later, second}, 2)

		_, err := rig.Await(w.ctx, s.URL, second.Hash, func(t rig.Transaction) bool { return t.WaitingForNonce != nil && *t.WaitingForNonce == 0 })
		check(t, err)
		first := rig.Pay(wallet.Dev(1), wallet.Tempo{NonceKey: chain.NonceKey{31: 1}, Calls: call})
		w.call(t, "eth_sendRawTransaction", hexOf(first.Raw)) // not through the service
		w.delivered(t, s.URL, []rig.Payment{later, second}, rig.Sealed)

		events, err := rig.Events(w.ctx, s.URL, later.Hash)
		check(t, err)
		for _, e := range events {
			var at struct{ At time.Time }
			check(t, json.Unmarshal(e.Data, &at))
			if e.Name == "tx.broadcast.v1" && at.At.Before(time.Unix(int64(opens), 0)) {
				t.Errorf("sent at %v, before its window opened at %d", at.At, opens)
			}
		}
		w.paidOnce(t, to, 3)
		check(t, s.Stop(w.ctx))
	})
}

// Of two transactions with one nonce one is mined, and the other ends stale. A transaction whose
// window closes before it is mined ends expired.
func TestRivalsAndExpiry(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		s := w.service(t)
		check(t, s.Start(w.ctx))
		to := chain.Address{0: 0x43}
		pay := func(key wallet.Key, t wallet.Tempo) rig.Payment {
			t.Calls = []chain.Call{wallet.Transfer(wallet.PathUSD, to, 1)}
			return rig.Pay(key, t)
		}
		closes := uint64(time.Now().Unix()) + 8
		a := pay(wallet.Dev(0), wallet.Tempo{NonceKey: chain.NonceKey{31: 1}})
		b := pay(wallet.Dev(0), wallet.Tempo{NonceKey: chain.NonceKey{31: 1}, Window: chain.Window{Before: closes + 600}})
		never := pay(wallet.Dev(1), wallet.Tempo{NonceKey: chain.NonceKey{31: 2}, Nonce: 5, Window: chain.Window{Before: closes}})
		w.submit(t, s, []rig.Payment{a, b, never}, 3)

		ended := func(t rig.Transaction) bool { return t.Finalized }
		statuses := map[string]int{}
		for _, p := range []rig.Payment{a, b} {
			got, err := rig.Await(w.ctx, s.URL, p.Hash, ended)
			check(t, err)
			statuses[got.Status]++
		}
		if statuses["executed"] != 1 || statuses["stale_by_nonce"] != 1 {
			t.Errorf("rivals ended %v", statuses)
		}
		got, err := rig.Await(w.ctx, s.URL, never.Hash, ended)
		check(t, err)
		if got.Status != "expired" {
			t.Errorf("%s, want expired", got.Status)
		}
		w.paidOnce(t, to, 1)
		check(t, s.Stop(w.ctx))
	})
}
