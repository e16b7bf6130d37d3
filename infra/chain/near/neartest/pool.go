package neartest

import (
	"cmp"
	"slices"

	"github.com/tempo-watchtower/watchtower/infra/chain/near"
)

// pool is one chunk producer's transactions.
type pool struct {
	waiting []near.Signed
}

// poolMax is how many transactions a pool holds; a full pool drops what comes.
const poolMax = 100_000

// add keeps a transaction, unless the pool has its hash.
func (p *pool) add(s near.Signed) {
	id := s.Hash()
	if len(p.waiting) >= poolMax || slices.ContainsFunc(p.waiting, func(w near.Signed) bool { return w.Hash() == id }) {
		return
	}
	p.waiting = append(p.waiting, s)
}

// pooled hands a transaction to the producers of the next chunks of the signer's shard, as a node does.
func (c *Chain) pooled(s near.Signed) {
	shard := c.shardOf(s.Signer)
	seen := map[int]bool{}
	for _, ahead := range []uint64{2, 3, 4, 8} {
		producer := c.producer(c.head.height + ahead)
		if !seen[producer] {
			seen[producer] = true
			c.pools[shard][producer].add(s)
		}
	}
}

func (c *Chain) producer(height uint64) int { return int(height % uint64(c.options.Producers)) }

// sequence is what a nonce belongs to.
type sequence struct {
	account string
	key     near.PublicKey
	index   int // -1 for keys that are no gas keys
}

func sequenceOf(s near.Signed) sequence {
	q := sequence{s.Signer, s.Key, -1}
	if s.Nonce.Index != nil {
		q.index = int(*s.Nonce.Index)
	}
	return q
}

// draw takes the transactions of a chunk out of its producer's pool: one of each sequence in a round, by
// rising nonce.
func (c *Chain) draw(shard int, height uint64) (drawn []near.Signed) {
	p := c.pools[shard][c.producer(height)]
	groups := map[sequence][]near.Signed{}
	var order []sequence
	for _, s := range p.waiting {
		q := sequenceOf(s)
		if groups[q] == nil {
			order = append(order, q)
		}
		groups[q] = append(groups[q], s)
	}
	for _, group := range groups {
		slices.SortStableFunc(group, func(a, b near.Signed) int { return cmp.Compare(a.Nonce.Value, b.Nonce.Value) })
	}
	for len(order) > 0 && len(drawn) < c.options.ChunkMax {
		var left []sequence
		for _, q := range order {
			if len(drawn) == c.options.ChunkMax {
				left = append(left, q)
				continue
			}
			drawn = append(drawn, groups[q][0])
			if groups[q] = groups[q][1:]; len(groups[q]) > 0 {
				left = append(left, q)
			}
		}
		order = left
	}
	p.waiting = p.waiting[:0]
	for _, q := range order {
		p.waiting = append(p.waiting, groups[q]...)
	}
	return drawn
}

// putBack returns strict transactions whose turn has not come to the pool (nearcore keeps them for 64 blocks).
func (c *Chain) putBack(shard int, height uint64, s near.Signed) {
	p := c.pools[shard][c.producer(height)]
	p.waiting = append(p.waiting, s)
}

// DropAll empties every pool, without a word to anybody, and returns how many transactions were in them.
func (c *Chain) DropAll() (dropped int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, producers := range c.pools {
		for _, p := range producers {
			dropped += len(p.waiting)
			p.waiting = nil
		}
	}
	return dropped
}
