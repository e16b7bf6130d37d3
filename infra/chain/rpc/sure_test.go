package rpc

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// A lying endpoint that is alone for moments may get a receipt announced, but not sealed: when
// the others are back, they are asked for it.
func TestNoSealOnOneWord(t *testing.T) {
	raw, hash := plain(alice, key5, 0)
	clock := newTimer()
	c := newCourt(t, 2, func(c *Config) { c.Now = clock.now })
	b := mine(t, c.Chain, raw)
	hashes := []chain.Hash{hash}
	c.liar.replace(t, "eth_getTransactionReceipt", `"result":`+receiptText(hash, b, 0))
	c.nodes[1].Set(chaintest.Faults{Down: true})
	for range 3 {
		c.pool.blame(c.pool.endpoints[1], errors.New("down"))
	}
	r := c.pool.Reader()
	if _, err := r.Receipts(t.Context(), b, hashes); !errors.Is(err, errAlone) {
		t.Fatalf("at once: %v", err)
	}
	clock.advance(missedBrief)
	if got, err := r.Receipts(t.Context(), b, hashes); err != nil || got[hash].Status != 0 {
		t.Fatalf("%+v, %v: the lie is not even announced", got, err)
	}
	if got, err := r.SureReceipts(t.Context(), b, hashes); !errors.Is(err, errAlone) {
		t.Errorf("to be sealed: %+v, %v", got, err)
	}
	c.nodes[1].Set(chaintest.Faults{})
	c.pool.moveTo(c.pool.reader(), c.pool.endpoints[1])
	c.pool.endpoints[1].succeeded(time.Millisecond)
	got, err := r.SureReceipts(t.Context(), b, hashes)
	if err == nil && got[hash].Status != 1 {
		t.Errorf("sealed: %+v", got)
	}
}

// A receipt that was confirmed when announced, or that comes from the only endpoint, is sealed
// without another call.
func TestSealingAsksNobodyAgain(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c := newCourt(t, n, nil)
			raw, hash := plain(alice, key5, 0)
			other, otherHash := plain(bob, key5, 0)
			b := mine(t, c.Chain, raw, other)
			hashes := []chain.Hash{hash, otherHash}
			if _, err := c.pool.Reader().Receipts(t.Context(), b, hashes); err != nil {
				t.Fatal(err)
			}
			asked := c.calls()
			got, err := c.pool.Reader().SureReceipts(t.Context(), b, hashes)
			if err != nil || len(got) != 2 {
				t.Fatalf("%+v, %v", got, err)
			}
			if now := c.calls(); now != asked {
				t.Errorf("%d calls more", now-asked)
			}
			elsewhere := b
			elsewhere.Hash = chain.Hash{0xee}
			if got, open := c.pool.sure.find(elsewhere, hashes); len(got) > 0 || len(open) != 2 {
				t.Errorf("known of another block: %+v", got)
			}
		})
	}
}

// calls is the number of receipt questions to all nodes.
func (c court) calls() (n int) {
	for _, node := range c.nodes {
		n += node.Calls()["eth_getBlockReceipts"] + node.Calls()["eth_getTransactionReceipt"]
	}
	return n
}

// The number of remembered receipts is bounded, and the oldest is dropped first.
func TestSureIsBounded(t *testing.T) {
	var s sure
	b := chain.Block{Number: 1, Hash: chain.Hash{1}}
	hash := func(i int) chain.Hash { return chain.Hash{byte(i), byte(i >> 8), byte(i >> 16)} }
	for i := range sureMax + 2 {
		s.add(map[chain.Hash]chain.Receipt{hash(i): {Block: b}})
	}
	if len(s.receipts) != sureMax || len(s.order) != sureMax {
		t.Errorf("%d receipts, %d in order", len(s.receipts), len(s.order))
	}
	if found, _ := s.find(b, []chain.Hash{hash(0), hash(1), hash(2)}); len(found) != 1 {
		t.Errorf("%+v", found)
	}
}
