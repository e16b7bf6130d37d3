package watcher

import (
	"context"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// forger is a node that invents blocks: a head, and the contents of blocks.
type forger struct {
	Node
	head   *chain.Block
	blocks map[chain.Hash]block
}

func (f *forger) Newest(ctx context.Context) (chain.Block, error) {
	if f.head != nil {
		return *f.head, nil
	}
	return f.Node.Newest(ctx)
}

func (f *forger) Head(ctx context.Context) (chain.Block, error) { return f.Newest(ctx) }

func (f *forger) BlockByHash(ctx context.Context, hash chain.Hash) (chain.Block, chain.Contents, error) {
	if b, ok := f.blocks[hash]; ok {
		return b.Block, b.Contents, nil
	}
	return f.Node.BlockByHash(ctx, hash)
}

func (f *forger) BlockAt(ctx context.Context, number uint64) (chain.Block, []chain.Hash, error) {
	for _, b := range f.blocks {
		if b.Number == number {
			return b.Block, b.Hashes, nil
		}
	}
	return f.Node.BlockAt(ctx, number)
}

// forge puts an invented head on top of an existing block.
func (f *forger) forge(on chain.Block, time uint64) chain.Block {
	head := chain.Block{Number: on.Number + 1, Hash: chain.Keccak(on.Hash[:], []byte("forged")), Parent: on.Hash, Time: time}
	f.head, f.blocks[head.Hash] = &head, block{Block: head}
	return head
}

func newForged(t *testing.T, confirmations uint64) (*world, *forger) {
	w := newWorld(t, confirmations)
	f := &forger{Node: w.Node, blocks: map[chain.Hash]block{}}
	w.Node = f
	w.step()
	return w, f
}

// try runs steps and ignores their errors.
func (w *world) try(steps int) {
	for range steps {
		_ = w.run.step(w.t.Context())
		w.feed()
	}
}

// A node reports that a block uses a nonce, and no other node confirms it: no transaction
// is stale.
func TestForgedUseOfANonce(t *testing.T) {
	w, f := newForged(t, 2)
	s := plain(0)
	_, hash := w.accept(s)
	rival := chain.Hash{0xee}
	b := w.mine()
	sequence := chain.Sequence{Chain: moderato, Sender: s.Sender, Key: s.NonceKey}
	f.blocks[b.Hash] = block{b, chain.Contents{Hashes: []chain.Hash{rival}, Used: map[chain.Sequence]uint64{sequence: 1}}}
	w.try(2)
	w.mine()
	w.mine()
	w.try(2)
	w.expect("accepted")
	if s := w.state(hash); s.Status != tx.StatusQueued {
		t.Errorf("it is %s", s.Status)
	}
	raw := rivalOf(s) // once another has really used it, it is stale
	w.mine(raw)
	w.try(1)
	w.expect("stale_by_nonce")
}

// A node shows a head whose time lies far ahead: no transaction expires.
func TestForgedTime(t *testing.T) {
	w, f := newForged(t, 1)
	s := plain(0)
	s.Window.Before = uint64(w.clock.now().Unix()) + 100
	_, hash := w.accept(s)
	f.forge(w.chain.Head(), s.Window.Before+1)
	w.try(3)
	_, _ = w.Look(t.Context(), w.Node, w.state(hash))
	w.expect("accepted")
	f.head = nil
	w.mine()
	w.try(2)
	w.expect()
}

// A node is on a branch of its own: no transaction is revoked, and no final one becomes
// violated.
func TestForgedFork(t *testing.T) {
	w, f := newForged(t, 3)
	base := w.chain.Head()
	raw, _ := w.accept(plain(0))
	w.mine(raw)
	w.try(1)
	for range 4 {
		w.mine()
		w.try(1)
	}
	recent, _ := w.accept(plain(1))
	w.mine(recent)
	w.try(1)
	fork := base
	for fork.Number <= w.chain.Head().Number+1 {
		fork = f.forge(fork, fork.Time+1)
	}
	w.try(3)
	w.expect("accepted", "mined", "finalized", "accepted", "mined")
	clear(f.blocks)
	f.head = nil
	for range 4 {
		w.mine()
		w.try(1)
	}
	w.expect("finalized")
}

// A node shows a head so far ahead that it meets no known block: watching begins there
// neither at the start nor later.
func TestForgedBeginning(t *testing.T) {
	w := newWorld(t, 1)
	f := &forger{Node: w.Node, blocks: map[chain.Hash]block{}}
	w.Node = f
	far := chain.Block{Number: 1 << 20, Hash: chain.Hash{0xfa}, Parent: chain.Hash{0xfb}, Time: w.chain.Head().Time + 1}
	for nonce := range uint64(2) {
		f.forge(far, far.Time+1)
		w.try(3)
		f.head = nil
		clear(f.blocks)
		raw, _ := w.accept(plain(nonce))
		w.mine(raw)
		w.try(1)
		w.mine()
		w.try(1)
		w.expect("accepted", "mined", "finalized")
	}
}

// A node calls its head final, and the others do not: nothing is sealed until they do.
func TestForgedFinality(t *testing.T) {
	w := newWorld(t, 0)
	w.step()
	raw, hash := w.accept(plain(0))
	b := w.mine(raw)
	w.lens.final = &b
	w.try(3)
	if s := w.state(hash); s.Status != tx.StatusExecuted || s.Sealed {
		t.Fatalf("it is %s, sealed %v", s.Status, s.Sealed)
	}
	w.mine() // now it is final
	w.try(1)
	w.expect("accepted", "mined", "finalized")
}

// A node denies the block of a receipt that others have: the transaction is not stale.
func TestForgedBlockInPlaceOfTheReceipts(t *testing.T) {
	w, f := newForged(t, 3)
	raw, hash := w.accept(plain(0))
	b := w.mine(raw)
	w.mine()
	other := b
	other.Hash = chain.Hash{0xee}
	f.blocks[other.Hash] = block{Block: other}
	f.Node = &bare{f.Node}
	_, _ = w.Look(t.Context(), w.Node, w.state(hash))
	w.expect("accepted")
}

// bare is a node that has no receipts of its own.
type bare struct{ Node }

func (bare) Receipts(context.Context, chain.Block, []chain.Hash) (map[chain.Hash]chain.Receipt, error) {
	return map[chain.Hash]chain.Receipt{}, nil
}

// A node shows a head on top of the true chain with a number far above it. It is rejected:
// otherwise every later true head would look like a lagging node.
func TestForgedNumber(t *testing.T) {
	w, f := newForged(t, 2)
	raw, hash := w.accept(plain(0))
	w.mine()
	w.try(1)
	before := w.run.tip()
	for _, number := range []uint64{before.Number + 2, before.Number + gapMax/2, 1 << 20} {
		head := f.forge(w.chain.Head(), uint64(time.Now().Unix()))
		forged := block{Block: head}
		forged.Number = number
		f.head, f.blocks[head.Hash] = &forged.Block, forged
		w.try(3)
		if tip := w.run.tip(); tip != before {
			t.Fatalf("took in %+v, forged as %d", tip, number)
		}
	}
	f.head = nil
	w.mine(raw)
	w.mine()
	w.mine()
	w.try(2)
	if s := w.state(hash); s.Status != tx.StatusExecuted || !s.Sealed {
		t.Errorf("afterwards: %s, sealed %v", s.Status, s.Sealed)
	}
}
