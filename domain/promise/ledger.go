package promise

import (
	"iter"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Ledger is a [Chain] that is told its blocks. It is not safe for use by several
// goroutines.
type Ledger struct {
	blocks   map[uint64]written
	receipts map[chain.Hash]chain.Receipt
	next     map[chain.Sequence]uint64
	left     map[chain.Hash]bool
	once     map[chain.Hash]bool // final blocks that left all the same
	head     uint64
	final    uint64
}

type written struct {
	chain.Block
	executed []Execution
}

// Execution is a transaction in a block. A zero Sequence is not known, as is any whose
// nonces do not count.
type Execution struct {
	Hash     chain.Hash
	Status   uint64 // 1 success, 0 reverted
	Sequence chain.Sequence
	Nonce    uint64
}

// NewLedger is a chain without blocks.
func NewLedger() *Ledger {
	return &Ledger{
		blocks: map[uint64]written{}, receipts: map[chain.Hash]chain.Receipt{},
		next: map[chain.Sequence]uint64{}, left: map[chain.Hash]bool{}, once: map[chain.Hash]bool{},
	}
}

// Add makes a block canonical. What was at its height and above leaves the chain.
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

// Rewind takes the blocks above a height out of the chain.
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

// Finalize says that no block up to a height can leave any more.
func (l *Ledger) Finalize(number uint64) { l.final = max(l.final, number) }

// Want says which nonce the chain wants next in a sequence.
func (l *Ledger) Want(s chain.Sequence, next uint64) { l.next[s] = next }

// Head is the newest block; zero when there is none.
func (l *Ledger) Head() chain.Block { return l.blocks[l.head].Block }

// At is the canonical block of a height.
func (l *Ledger) At(number uint64) (chain.Block, bool) {
	b, ok := l.blocks[number]
	return b.Block, ok
}

// Receipt is where the chain holds a transaction.
func (l *Ledger) Receipt(hash chain.Hash) (chain.Receipt, bool) {
	r, ok := l.receipts[hash]
	return r, ok
}

// Next is the nonce that the chain wants in a sequence, if it was told.
func (l *Ledger) Next(s chain.Sequence) (uint64, bool) {
	n, ok := l.next[s]
	return n, ok
}

// Final reports whether a block is final, or was.
func (l *Ledger) Final(b chain.Block) bool {
	at, ok := l.blocks[b.Number]
	return l.once[b.Hash] || ok && at.Hash == b.Hash && b.Number <= l.final
}

// Left reports whether a block left the chain, at any time.
func (l *Ledger) Left(hash chain.Hash) bool { return l.left[hash] }

// Executed yields what the chain holds, in the order of its blocks.
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
