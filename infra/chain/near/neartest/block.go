package neartest

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/tempo-watchtower/watchtower/infra/chain/near"
)

// hash is the hash of a block, a transaction, a receipt or a chunk.
type hash = [32]byte

// block is one block of the tree of all blocks that were ever produced.
type block struct {
	height uint64
	hash   hash
	parent *block // nil for the first
	time   uint64 // nanoseconds of Unix time
	// final is the newest block that this block shows to be final, and near the newest with one block on it.
	final, near *block
	index       int    // blocks below it
	jump        *block // the ancestor whose index is the next lower multiple of jumpEvery

	chunks   []chunk // one for each shard
	state    *state  // after the block
	pending  []*receipt
	outcomes map[hash]*outcome // of transactions and receipts that ran in this block
	changes  []change
}

// jumpEvery is the distance of the blocks that searches along a branch visit.
const jumpEvery = 64

// chunk is a shard's part of a block. A block without a new chunk of a shard repeats the earlier one.
type chunk struct {
	hash         hash
	shard        int
	created      uint64 // height
	transactions []near.Signed
	receipts     []*receipt // that the chunk brought in
}

// change is one change of an access key, with its cause.
type change struct {
	account string
	key     near.PublicKey
	cause   string // transaction_processing or receipt_processing
	by      hash
	nonce   uint64
	deleted bool
}

func newBlock(parent *block, height, time uint64, salt uint64) *block {
	b := &block{height: height, parent: parent, time: time, outcomes: map[hash]*outcome{}}
	var seed [32 + 24]byte
	if parent != nil {
		copy(seed[:], parent.hash[:])
		b.index = parent.index + 1
		b.jump = parent
		if parent.index%jumpEvery != 0 {
			b.jump = parent.jump
		}
		b.final, b.near = parent.final, parent.near
		if parent.height+1 == height {
			b.near = parent
			if up := parent.parent; up != nil && up.height+2 == height {
				b.final = up
			}
		}
	}
	binary.LittleEndian.PutUint64(seed[32:], height)
	binary.LittleEndian.PutUint64(seed[40:], time)
	binary.LittleEndian.PutUint64(seed[48:], salt)
	b.hash = sha256.Sum256(seed[:])
	if b.final == nil {
		b.final, b.near = b, b // the genesis, and what stands on it, show the genesis
		if parent != nil {
			b.final, b.near = parent.final, parent.near
		}
	}
	return b
}

// at returns the block of a height on the branch that ends in b; nil if the height was skipped or lies above.
func (b *block) at(height uint64) *block {
	if found := b.below(height); found != nil && found.height == height {
		return found
	}
	return nil
}

// below returns the highest block of the branch at or below a height.
func (b *block) below(height uint64) *block {
	for b != nil && b.height > height {
		if b.jump != nil && b.jump.height >= height {
			b = b.jump
		} else {
			b = b.parent
		}
	}
	return b
}

// has reports whether a block is on the branch that ends in b.
func (b *block) has(other *block) bool { return b.at(other.height) == other }

// idOf makes ids of receipts and chunks.
func idOf(what string, from hash, number uint64) hash {
	seed := append([]byte(what), from[:]...)
	return sha256.Sum256(binary.LittleEndian.AppendUint64(seed, number))
}
