package watcher

import (
	"context"
	"slices"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// gossip is a node that misreports blocks while no other can be asked: they hold additional
// transactions, and receipts have another status. SureReceipts are true.
type gossip struct {
	Node
	held   map[chain.Hash][]chain.Hash // by block
	failed bool
}

func (g *gossip) BlockByHash(ctx context.Context, hash chain.Hash) (chain.Block, chain.Contents, error) {
	b, contents, err := g.Node.BlockByHash(ctx, hash)
	contents.Hashes = slices.Concat(contents.Hashes, g.held[hash])
	return b, contents, err
}

func (g *gossip) Receipts(ctx context.Context, b chain.Block, hashes []chain.Hash) (map[chain.Hash]chain.Receipt, error) {
	told := map[chain.Hash]chain.Receipt{}
	for _, hash := range hashes {
		if slices.Contains(g.held[b.Hash], hash) {
			told[hash] = chain.Receipt{Block: b, Status: 1}
		}
	}
	if len(told) > 0 {
		return told, nil
	}
	told, err := g.Node.Receipts(ctx, b, hashes)
	for hash, receipt := range told {
		if g.failed {
			receipt.Status = 0
			told[hash] = receipt
		}
	}
	return told, err
}

func newGossip(t *testing.T) (*world, *gossip) {
	w := newWorld(t, 3)
	g := &gossip{Node: w.Node, held: map[chain.Hash][]chain.Hash{}}
	w.Node = g
	w.step()
	return w, g
}

// news mines empty blocks and reads them.
func (w *world) news(blocks int) {
	w.t.Helper()
	for range blocks {
		w.mine()
		w.step()
		w.feed()
	}
}

// A block is reported to hold a transaction that it does not hold. The report is revoked
// and not sealed.
func TestInclusionOnOneWordIsNotSealed(t *testing.T) {
	w, g := newGossip(t)
	raw, hash := w.accept(plain(0))
	b := w.mine()
	g.held[b.Hash] = []chain.Hash{hash}
	w.step()
	w.feed()
	w.expect("accepted", "mined")
	w.news(2)
	w.expect("reorged")
	if s := w.state(hash); !s.Sendable() {
		t.Errorf("it is %s", s.Status)
	}
	w.mine(raw)
	w.step()
	w.feed()
	w.news(3)
	w.expect("mined", "finalized")
	if s := w.state(hash); !s.Sealed || s.Status != tx.StatusExecuted || s.Receipt.Block.Hash == b.Hash {
		t.Errorf("%+v", s)
	}
}

// A later block is reported to hold a transaction of an earlier block that is still
// canonical: the transaction stays where it is.
func TestInTwoBlocks(t *testing.T) {
	w, g := newGossip(t)
	raw, hash := w.accept(plain(0))
	holds := w.mine(raw)
	w.step()
	w.feed()
	b := w.mine()
	g.held[b.Hash] = []chain.Hash{hash}
	w.step()
	w.feed()
	w.expect("accepted", "mined")
	w.news(3)
	w.expect("finalized")
	if s := w.state(hash); s.Receipt == nil || s.Receipt.Block.Hash != holds.Hash {
		t.Errorf("%+v", s)
	}
}

// A transaction is reported in another block before the block that holds it: the true block
// counts as soon as it is read.
func TestInAnotherBlockBefore(t *testing.T) {
	w, g := newGossip(t)
	raw, hash := w.accept(plain(0))
	b := w.mine()
	g.held[b.Hash] = []chain.Hash{hash}
	w.step()
	w.feed()
	holds := w.mine(raw)
	w.step()
	w.feed()
	w.expect("accepted", "mined", "reorged+mined")
	w.news(3)
	w.expect("finalized")
	if s := w.state(hash); s.Receipt == nil || s.Receipt.Block.Hash != holds.Hash {
		t.Errorf("%+v", s)
	}
}

// A transaction is reported with the wrong status: the true status is sealed.
func TestStatusOnOneWordIsNotSealed(t *testing.T) {
	w, g := newGossip(t)
	g.failed = true
	raw, hash := w.accept(plain(0))
	w.mine(raw)
	w.step()
	w.feed()
	if s := w.state(hash); s.Receipt == nil || s.Receipt.Status != 0 {
		t.Fatalf("%+v", s)
	}
	w.news(3)
	w.expect("accepted", "mined", "reorged+mined+finalized")
	if s := w.state(hash); !s.Sealed || s.Receipt.Status != 1 {
		t.Errorf("%+v", s)
	}
}
