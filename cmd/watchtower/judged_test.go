package main_test

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

func decodeTempo(raw []byte) (chain.Signed, error) { return app.Decode(raw) }

// settle ends all faults, waits until everything has ended, and judges the campaign.
func (c *campaign) settle(t *testing.T) {
	t.Helper()
	for _, l := range c.leaks {
		l.calm.Store(true)
	}
	for _, r := range c.replicas {
		r.Env = nil
		check(t, r.Start(c.ctx))
	}
	s := c.replicas[0]
	lost := 0
	for hash, acked := range c.acked {
		if _, err := rig.Get(c.ctx, s.URL, hash); acked && err != nil {
			lost++
			t.Errorf("acknowledged and lost: %v", err)
		}
	}
	for _, i := range c.items {
		if !c.acked[i.Hash] {
			c.post(i, s.URL)
		}
	}
	c.cancelLate(t) // members that joined after the first cancel wait for canceled ones
	for _, i := range c.items {
		if !c.acked[i.Hash] {
			continue // it was refused: its window had closed
		}
		if _, err := rig.Await(c.ctx, s.URL, i.Hash, over); err != nil {
			t.Fatalf("%s: %v", i.kind, err)
		}
	}
	// Pools may still hold canceled payments. If one was mined while the queue was down, the
	// rounds of lookups 5 and 15 seconds after the start find it.
	c.wait(16 * time.Second)
	c.call(t, "evm_setIntervalMining", 0)
	c.wait(3 * time.Second) // until the last block has been read
	executed := 0
	for _, i := range c.items {
		if c.acked[i.Hash] && c.ended(t, s.URL, i) {
			executed++
		}
	}
	paid := uint64(0)
	for _, to := range c.tos {
		n, err := rig.Balance(c.ctx, c.chain.URL(), wallet.PathUSD, to)
		check(t, err)
		paid += n
	}
	doubled := int(paid) - executed
	if doubled != 0 {
		t.Errorf("%d payments were made by %d transactions", paid, executed)
	}
	for _, r := range c.replicas {
		check(t, r.Stop(c.ctx))
	}
	c.quiet = true
	t.Log(c.told(lost, doubled, c.judge(t)))
}

func over(t rig.Transaction) bool {
	return t.Finalized || canceled(t) || t.Canceled && t.Status == "executed"
}

// ended checks a transaction's reported end against the chain.
func (c *campaign) ended(t *testing.T, url string, i item) (executed bool) {
	t.Helper()
	got, err := rig.Get(c.ctx, url, i.Hash)
	check(t, err)
	var receipt *struct {
		BlockHash chain.Hash `json:"blockHash"`
	}
	check(t, rig.Call(c.ctx, c.chain.URL(), &receipt, "eth_getTransactionReceipt", i.Hash))
	switch {
	case got.Status == "executed" && (receipt == nil || receipt.BlockHash != got.Receipt.BlockHash):
		t.Errorf("%s %s is said to be executed", i.kind, i.Hash)
	case got.Status != "executed" && receipt != nil && !got.Canceled:
		t.Errorf("%s %s is executed, and said to be %s", i.kind, i.Hash, got.Status)
	case got.Status != "executed" && (i.kind == "alone" || i.kind == "sequence"):
		t.Errorf("%s %s ended %s", i.kind, i.Hash, got.Status)
	}
	return receipt != nil
}
