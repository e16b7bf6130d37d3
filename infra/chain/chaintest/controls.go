package chaintest

import (
	"errors"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Drop removes a transaction from the pool. It reports whether it was there.
func (c *Chain) Drop(hash chain.Hash) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pool.remove(hash)
}

// DropAll empties the pool and returns the number of removed transactions.
func (c *Chain) DropAll() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	dropped := len(c.pool.byHash)
	arrived := c.pool.arrived
	c.pool = newPool()
	c.pool.arrived = arrived
	return dropped
}

// Pooled are the transactions in the pool, in the order blocks take them.
func (c *Chain) Pooled() (hashes []chain.Hash) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pool.ordered() {
		hashes = append(hashes, p.signed.Hash)
	}
	return hashes
}

// Stall stops Run from making blocks, or resumes it. Mine is not affected.
func (c *Chain) Stall(stalled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stalled = stalled
}

// StallFinality stops blocks from becoming final, or resumes it.
func (c *Chain) StallFinality(stalled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsealed = stalled
}

// Revert makes a transaction revert: its receipt has status 0, and its nonce is used.
func (c *Chain) Revert(hash chain.Hash, reverts bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reverts[hash] = reverts
}

// MineAt is Mine of a block with this time. It may be before its parent's or far ahead, as
// development nodes make on demand.
func (c *Chain) MineAt(time uint64, others ...[]byte) (chain.Block, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = &time
	defer func() { c.wrong = nil }()
	return c.mine(others)
}

// SetBaseFee sets the fee per gas below which no transaction is accepted or executed, from the
// next block on. If base fees move, they continue from there.
func (c *Chain) SetBaseFee(fee uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.baseFee, c.isSet = fee, true
}

// SetFailing makes calls to an account fail, with a reason in ABI-encoded bytes; nil lets them
// succeed again.
func (c *Chain) SetFailing(to chain.Address, reason []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.failing, to)
	if reason != nil {
		c.failing[to] = reason
	}
}

// SetLeftOut sets whether blocks leave out calls to an account. Pools accept them all the same.
func (c *Chain) SetLeftOut(to chain.Address, leftOut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leftOut[to] = leftOut
}

// SetBroke sets whether an account cannot pay fees. The next block evicts the transactions for
// which it would pay.
func (c *Chain) SetBroke(payer chain.Address, broke bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broke[payer] = broke
}

// SetGasMax sets the highest gas limit for which an account can pay; 0 means no limit.
func (c *Chain) SetGasMax(payer chain.Address, gas uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gasMax[payer] = gas
}

// ErrBelowFinal refuses a reorg that finality forbids.
var ErrBelowFinal = errors.New("chaintest: that would undo a finalized block")

// Reorg replaces the newest blocks by as many others: the height stays, the hashes change. The
// first new block holds the given transactions, which come from elsewhere; the others are
// empty. Transactions of the old blocks return to the pool if reinject is set; otherwise they
// vanish.
func (c *Chain) Reorg(depth int, reinject bool, others ...[]byte) error {
	return c.reorg(depth, reinject, false, others)
}

// ReorgBelowFinal is Reorg without the limit of finality, which a real chain has.
func (c *Chain) ReorgBelowFinal(depth int, reinject bool, others ...[]byte) error {
	return c.reorg(depth, reinject, true, others)
}

func (c *Chain) reorg(depth int, reinject, belowFinal bool, others [][]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.undoable(depth, belowFinal); err != nil {
		return err
	}
	// Try first, so that a refused transaction leaves the chain as it was.
	orphans := c.popped(depth)
	txs, err := c.foreign(others, c.nextTime(), map[chain.Sequence]uint64{})
	if err != nil {
		c.restore(orphans)
		return err
	}
	c.final = min(c.final, c.head().Number)
	c.push(txs)
	for range depth - 1 {
		c.push(nil)
	}
	if reinject {
		for _, b := range orphans {
			for _, t := range b.txs {
				c.pool.add(t.Signed, t.raw, c.now())
			}
		}
	}
	c.evict()
	return nil
}

// Rollback removes the newest blocks without replacement.
func (c *Chain) Rollback(depth int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.undoable(depth, false); err != nil {
		return err
	}
	c.popped(depth)
	return nil
}

func (c *Chain) undoable(depth int, belowFinal bool) error {
	switch {
	case depth < 1 || depth >= len(c.blocks):
		return fmt.Errorf("chaintest: cannot undo %d of %d blocks", depth, len(c.blocks)-1)
	case !belowFinal && c.head().Number-uint64(depth) < c.final:
		return ErrBelowFinal
	}
	return nil
}

// popped removes blocks from the canonical chain and returns them, oldest first.
func (c *Chain) popped(depth int) []*block {
	orphans := append([]*block(nil), c.blocks[len(c.blocks)-depth:]...)
	for range depth {
		c.pop()
	}
	return orphans
}

// restore puts popped blocks back.
func (c *Chain) restore(orphans []*block) {
	for _, b := range orphans {
		c.blocks = append(c.blocks, b)
		c.settle(b)
	}
}
