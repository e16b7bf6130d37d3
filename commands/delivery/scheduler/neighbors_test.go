package scheduler_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// Two clients share a signer, as clients of a relay do. One client's transactions ask for
// more gas than the signer can pay for. They hold none of the other's, and cost one probe
// per block.
func TestUnpayableHoldsNoOtherClient(t *testing.T) {
	onBoth(t, func(t *testing.T, s stored) {
		const signer, costly = 7, 100
		d := deliver(t, s, chaintest.Rules{}, nil)
		d.chain.SetGasMax(chain.Address{signer}, 1_000_000)
		d.start()
		key := uint64(1000)
		unpayable := func(n int) (hashes []chain.Hash) {
			var all []chain.Signed
			for range n {
				key++
				one := transfer(signer, key, 0)
				one.Gas = 16_000_000
				all = append(all, one)
			}
			return d.submitted("mallory", all...)
		}
		mallorys := unpayable(costly)
		last := mallorys[costly-1]
		d.until("mallory's account is on hold", func() bool { return !d.row(last).HeldSince.IsZero() })
		d.blocks(10) // attempts in progress end
		sent := func() (n int) {
			times := d.sent()
			for _, hash := range mallorys {
				n += times[hash]
			}
			return n
		}
		before, from := sent(), d.chain.Head().Number
		var late []time.Duration
		for n := range uint64(15) {
			mallorys = append(mallorys, unpayable(20)...)
			began := time.Now()
			hash := d.submitted("wallet", transfer(signer, 1, n))[0]
			d.until("the wallet's is sent", func() bool { return d.sent()[hash] > 0 })
			late = append(late, time.Since(began))
			if w := d.row(hash); !w.HeldSince.IsZero() {
				t.Errorf("nonce %d of the wallet is on hold since %s", n, w.HeldSince)
			}
			d.blocks(1)
		}
		slices.Sort(late)
		probes, blocks := sent()-before, int(d.chain.Head().Number-from)
		t.Logf("the wallet's first attempts after p50 %s, max %s; %d probes of mallory's in %d blocks", late[len(late)/2], late[len(late)-1], probes, blocks)
		if middle, most := late[len(late)/2], late[len(late)-1]; middle > 500*time.Millisecond || most > 2*time.Second { // the machine has other work, too
			t.Errorf("the wallet's first attempts took %s, at most %s", middle, most)
		}
		if probes > blocks+20 {
			t.Errorf("%d probes in %d blocks", probes, blocks)
		}
		d.chain.SetGasMax(chain.Address{signer}, 0)
		for _, hash := range []chain.Hash{mallorys[0], last, mallorys[len(mallorys)-1]} {
			d.until("mallory's is executed once it can be paid", func() bool { return d.state(hash).Status == tx.StatusExecuted })
		}
	})
}
