package promises

import (
	"iter"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Ledger is a [Chain] built from blocks added by its user. It is not safe for concurrent use.
type Ledger struct {
	blocks   map[uint64]written
	receipts map[chain.Hash]chain.Receipt
	next     map[chain.Sequence]uint64
	left     map[chain.Hash]bool
	once     map[chain.Hash]bool // final blocks that left the chain
	head     uint64
	final    uint64
}

type written struct {
	chain.Block
	executed []Execution
}

// Execution is a transaction in a block. A zero Sequence is unknown, or has no order of nonces.
type Execution struct {
	Hash     chain.Hash
	Status   uint64 // 1 success, 0 reverted
	Sequence chain.Sequence
	Nonce    uint64
}

// NewLedger returns a chain without blocks.
func NewLedger() *Ledger {
	return &Ledger{
		blocks: map[uint64]written{}, receipts: map[chain.Hash]chain.Receipt{},
		next: map[chain.Sequence]uint64{}, left: map[chain.Hash]bool{}, once: map[chain.Hash]bool{},
	}
}

// Add makes a block canonical. Blocks at its height and above leave the chain.
func (l *Ledger) Add(b chain.Block, executed ...Execution) {
	if _, taken := l.blocks[b.Number]; taken {
		l.Rewind(b.Number - 1)
	}
	l.blocks[b.Number] = written{b, executed}
	l.head = max(l.head, b.Number)
	for i, e := range executed {
		l.receipts[e.Hash] = chain.Receipt{Block: b, Index: uint64(i), Status: e.Status}
		if e.Sequence != (chain.Sequence{}) {
			l.next[e.Sequence] = e.Nonce + 1
		}
	}
}

// Rewind removes the blocks above a height from the chain.
func (l *Ledger) Rewind(to uint64) {
	for n := l.head; n > to; n-- {
		b, ok := l.blocks[n]
		if !ok {
			continue
		}
		delete(l.blocks, n)
		l.left[b.Hash] = true
		if n <= l.final {
			l.once[b.Hash] = true
		}
		for _, e := range b.executed {
			delete(l.receipts, e.Hash)
			if e.Sequence != (chain.Sequence{}) {
				l.next[e.Sequence] = min(l.next[e.Sequence], e.Nonce)
			}
		}
	}
	l.head = min(l.head, to)
}

// Finalize makes all blocks up to a height final.
func (l *Ledger) Finalize(number uint64) { l.final = max(l.final, number) }

// Want sets the chain's next nonce in a sequence.
func (l *Ledger) Want(s chain.Sequence, next uint64) { l.next[s] = next }

// Head returns the newest block; zero if there is none.
func (l *Ledger) Head() chain.Block { return l.blocks[l.head].Block }

// At returns the canonical block of a height.
func (l *Ledger) At(number uint64) (chain.Block, bool) {
	b, ok := l.blocks[number]
	return b.Block, ok
}

// Receipt returns a transaction's receipt.
func (l *Ledger) Receipt(hash chain.Hash) (chain.Receipt, bool) {
	r, ok := l.receipts[hash]
	return r, ok
}

// Next returns the chain's next nonce in a sequence, if it was set.
func (l *Ledger) Next(s chain.Sequence) (uint64, bool) {
	n, ok := l.next[s]
	return n, ok
}

// Final reports whether a block is or was final.
func (l *Ledger) Final(b chain.Block) bool {
	at, ok := l.blocks[b.Number]
	return l.once[b.Hash] || ok && at.Hash == b.Hash && b.Number <= l.final
}

// Left reports whether a block ever left the chain.
func (l *Ledger) Left(hash chain.Hash) bool { return l.left[hash] }

// Executed yields the chain's transactions in the order of its blocks.
func (l *Ledger) Executed() iter.Seq2[chain.Hash, chain.Receipt] {
	return func(yield func(chain.Hash, chain.Receipt) bool) {
		for n := range l.head + 1 {
			for _, e := range l.blocks[n].executed {
				if !yield(e.Hash, l.receipts[e.Hash]) {
					return
				}
			}
		}
	}
}
