package main_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// The service works with a chain that stalls, produces blocks in bursts, or goes back in time.
func TestChainGoesAstray(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--no-mining")
		var clock backward
		w.withGates(t, map[string]*gate{"a": newGate(t, w.proxy.URL, clock.serve)}, "a")
		s := w.service(t)
		check(t, s.Start(w.ctx))
		series := uint32(9300)
		var all []rig.Payment
		// each submits some payments, disturbs the chain, and waits until they are executed.
		each := func(name string, astray func()) {
			t.Helper()
			series++
			payments, to := rig.Payments(series, 10)
			w.submit(t, s, payments, 4)
			for _, p := range payments {
				_, err := rig.Await(w.ctx, s.URL, p.Hash, func(t rig.Transaction) bool { return t.Status == "broadcasting" })
				check(t, err)
			}
			began := time.Now()
			astray()
			w.delivered(t, s.URL, payments, rig.Executed)
			t.Logf("%s: executed %s later", name, time.Since(began))
			w.paidOnce(t, to, len(payments))
			all = append(all, payments...)
		}
		each("after a stall", func() {
			stalled := time.NewTimer(4 * time.Second)
			<-stalled.C
			w.call(t, "evm_mine")
		})
		each("in a burst of 1000 blocks", func() { w.call(t, "anvil_mine", 1000) })
		each("in a block older than its parent", func() {
			var head string
			check(t, rig.Call(w.ctx, w.chain.URL(), &head, "eth_blockNumber"))
			number, err := strconv.ParseUint(strings.TrimPrefix(head, "0x"), 16, 64)
			check(t, err)
			clock.from.Store(number + 1)
			w.call(t, "evm_mine")
			w.call(t, "evm_mine")
		})
		w.call(t, "evm_setIntervalMining", 1)
		w.delivered(t, s.URL, all, rig.Sealed)
		w.trueReceipts(t, s.URL, all)
		check(t, s.Stop(w.ctx))
	})
}

// The node drops blocks, restarts with its data, and is replaced for a while by a node of a
// fresh chain. Transactions still on the chain are not un-mined, and the others are delivered
// again.
func TestNodeResets(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		kept := filepath.Join(t.TempDir(), "chain.json")
		w := newWorld(t, store, "--block-time", "1", "--state", kept)
		w.confirmations = 6
		var behind balancer
		behind.to(w.chain.URL())
		w.withGates(t, map[string]*gate{"a": newGate(t, "", behind.serve)}, "a")
		s := w.service(t)
		check(t, s.Start(w.ctx))
		first, toFirst := rig.Payments(9400, 10)
		w.submit(t, s, first, 4)
		w.delivered(t, s.URL, first, rig.Sealed)

		second, toSecond := rig.Payments(9401, 10)
		w.submit(t, s, second, 4)
		w.delivered(t, s.URL, second, rig.Executed)
		w.call(t, "anvil_rollback", 3) // without replacements yet
		w.delivered(t, s.URL, second, rig.Sealed)
		w.paidOnce(t, toFirst, len(first))
		w.paidOnce(t, toSecond, len(second))
		w.sameReceipts(t, s.URL, append(first, second...))

		check(t, w.chain.Stop())
		check(t, w.chain.Start(w.ctx))
		third, toThird := rig.Payments(9402, 10)
		w.submit(t, s, third, 4)
		w.delivered(t, s.URL, third, rig.Sealed)
		w.paidOnce(t, toThird, len(third))

		fresh, err := server.NewAnvil(testenv.Need(t, testenv.AnvilVar), append(server.TempoFlags(), "--block-time", "1")...)
		check(t, err)
		t.Cleanup(func() { check(t, fresh.Remove()) })
		check(t, fresh.Start(w.ctx))
		behind.to(fresh.URL()) // with another genesis, and without cutting our connections
		fourth, toFourth := rig.Payments(9403, 10)
		w.submit(t, s, fourth, 4)
		took := awaitEndpoint(w.ctx, t, s.URL, "a", func(e endpointHealth) bool { return e.State == "foreign" })
		t.Logf("a fresh chain was noticed after %s", took)
		w.paidOnce(t, toFourth, 0)
		behind.to(w.chain.URL())
		awaitEndpoint(w.ctx, t, s.URL, "a", func(e endpointHealth) bool { return e.Healthy })
		began := time.Now()
		w.delivered(t, s.URL, fourth, rig.Sealed)
		t.Logf("delivered %s after the chain was back", time.Since(began))
		w.paidOnce(t, toFourth, len(fourth))
		w.sameReceipts(t, s.URL, append(append(first, third...), fourth...))
		for _, p := range append(append(first, third...), fourth...) {
			for _, event := range w.names(t, s.URL, p.Hash) {
				if event == "tx.reorged.v1" || event == "tx.finality_violated.v1" {
					t.Errorf("%s: %s, though its block never left the chain", p.Hash, event)
				}
			}
		}
		check(t, s.Stop(w.ctx))
	})
}

// sameReceipts checks that the service and the node have the payments in the same blocks.
func (w *world) sameReceipts(t *testing.T, url string, payments []rig.Payment) {
	t.Helper()
	for _, p := range payments {
		var truth struct {
			BlockHash chain.Hash `json:"blockHash"`
		}
		check(t, rig.Call(w.ctx, w.chain.URL(), &truth, "eth_getTransactionReceipt", p.Hash))
		got, err := rig.Get(w.ctx, url, p.Hash)
		check(t, err)
		if got.Receipt == nil || got.Receipt.BlockHash != truth.BlockHash || got.Receipt.Status != 1 {
			t.Errorf("%s: receipt %+v, but it is in block %s", p.Hash, got.Receipt, truth.BlockHash)
		}
	}
}
