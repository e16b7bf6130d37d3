package main_test

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// An owner uses nonces elsewhere, while the service cannot see the chain and is killed. The
// transactions with these nonces end stale, sealed by a final block, and none is executed.
func TestNoncesUsedElsewhere(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		var behind balancer
		behind.to(w.chain.URL())
		w.withGates(t, map[string]*gate{"a": newGate(t, "", behind.serve)}, "a")
		s := w.service(t)
		check(t, s.Start(w.ctx))
		warm, _ := rig.Payments(9950, 2)
		w.submit(t, s, warm, 1)
		w.delivered(t, s.URL, warm, rig.Executed)

		behind.to("http://127.0.0.1:9") // no listener
		ours, theirs := chain.Address{0: 0x7a, 19: 1}, chain.Address{0: 0x7a, 19: 2}
		var payments []rig.Payment
		pay := func(n int, nonce uint64, to chain.Address) rig.Payment {
			return rig.Pay(wallet.Dev(n), wallet.Tempo{
				NonceKey: chain.NonceKey{30: 9, 31: 1}, Nonce: nonce, Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, to, 1)},
			})
		}
		for n := range 4 {
			for nonce := range uint64(3) {
				payments = append(payments, pay(n, nonce, ours))
				w.call(t, "eth_sendRawTransaction", hexOf(pay(n, nonce, theirs).Raw))
			}
		}
		if acked := load(w.ctx, s, payments, 4); len(acked) != len(payments) {
			t.Fatalf("%d of %d acknowledged", len(acked), len(payments))
		}
		s.Kill()
		check(t, s.Launch()) // without a node it may not be ready
		behind.to(w.chain.URL())
		check(t, s.Ready(w.ctx))
		for _, p := range payments {
			_, err := rig.Await(w.ctx, s.URL, p.Hash, func(t rig.Transaction) bool { return t.Finalized && t.Status == "stale_by_nonce" })
			check(t, err)
		}
		w.paidOnce(t, theirs, len(payments))
		w.paidOnce(t, ours, 0)
		check(t, s.Stop(w.ctx))
	})
}
