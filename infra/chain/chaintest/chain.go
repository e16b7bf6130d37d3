package chaintest

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Options are the settings of a chain.
type Options struct {
	Chain chain.ID
	// Decode reads signed bytes. On a *chain.Malformed, nodes refuse the bytes with a real
	// node's text. Required.
	Decode func(raw []byte) (chain.Signed, error)
	// Now is the clock of blocks and pool. Default time.Now.
	Now func() time.Time
	// Rand draws the faults with a probability. Default: a fixed seed.
	Rand *rand.Rand
	// Received, if set, is called for each broadcast that reaches a node, before the node
	// answers. It must not call the chain.
	Received func(Delivery)
	// Rules replaces the real chain's rules; zero fields keep the real values.
	Rules Rules
}

// Rules are the numeric parameters of the chain's rules.
type Rules struct {
	AfterMax       uint64        // seconds validAfter may be ahead; 120
	BeforeMargin   uint64        // seconds validBefore must be after the newest block; 3
	ExpiringWindow uint64        // seconds validBefore of an expiring key may be ahead; 30
	QueuedFor      time.Duration // life of a gapped transaction in the pool; 120 s
	PendingFor     time.Duration // life of any other; 30 min
	PoolMax        int           // transactions; 100,000
	BlockMax       int           // transactions per block; 5,000
	PriceBump      uint64        // percent by which a replacement must pay more; 10
	Finality       uint64        // blocks from the newest to the finalized one; 1
	GasLimit       uint64        // of a block; 500,000,000
	// Elasticity makes the base fee move by EIP-1559, beginning at BaseFee. It is the gas limit
	// divided by a block's target gas. 0 leaves the base fee at the value of SetBaseFee.
	Elasticity uint64
	BaseFee    uint64 // of the genesis block
	NoBaseFee  bool   // blocks are of the form before EIP-1559
	// Keychain makes nodes refuse access keys without a grant.
	Keychain bool
}

func (r Rules) withDefaults() Rules {
	return Rules{
		AfterMax:       cmp.Or(r.AfterMax, 120),
		BeforeMargin:   cmp.Or(r.BeforeMargin, 3),
		ExpiringWindow: cmp.Or(r.ExpiringWindow, 30),
		QueuedFor:      cmp.Or(r.QueuedFor, 120*time.Second),
		PendingFor:     cmp.Or(r.PendingFor, 30*time.Minute),
		PoolMax:        cmp.Or(r.PoolMax, 100_000),
		BlockMax:       cmp.Or(r.BlockMax, 5_000),
		PriceBump:      cmp.Or(r.PriceBump, 10),
		Finality:       cmp.Or(r.Finality, 1),
		GasLimit:       cmp.Or(r.GasLimit, 500_000_000),
		Elasticity:     r.Elasticity,
		BaseFee:        r.BaseFee,
		NoBaseFee:      r.NoBaseFee,
		Keychain:       r.Keychain,
	}
}

// Chain is a chain in memory. It is safe for concurrent use.
type Chain struct {
	id     chain.ID
	decode func([]byte) (chain.Signed, error)
	now    func() time.Time
	told   func(Delivery)
	rules  Rules

	closing chan struct{} // closed by Close
	sockets sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	rand     *rand.Rand
	blocks   []*block // canonical; the index is the block's number
	byHash   map[chain.Hash]*block
	nonces   map[chain.Sequence][]nonceAt // canonical, by ascending number
	included map[chain.Hash]place         // canonical
	final    uint64
	salt     uint64 // makes otherwise equal blocks of two branches different
	pool     pool
	baseFee  uint64 // the value set last
	isSet    bool   // applies to the next block, even if base fees move
	broke    map[chain.Address]bool
	gasMax   map[chain.Address]uint64
	failing  map[chain.Address][]byte // accounts whose calls fail, with the revert reason
	leftOut  map[chain.Address]bool   // blocks contain no calls to them
	reverts  map[chain.Hash]bool
	grants   map[chain.AccessKey]chain.Grant
	stalled  bool
	unsealed bool    // finality does not advance
	wrong    *uint64 // the time of the next block, instead of the clock's
	record   record
	watchers map[chan *block]bool
}

// block is a block of any branch.
type block struct {
	chain.Block
	baseFee uint64
	txs     []executed
}

// executed is a transaction in a block.
type executed struct {
	chain.Signed
	raw    []byte
	status uint64
}

// nonceAt is a sequence's next nonce, valid from a block on.
type nonceAt struct{ number, next uint64 }

// place is the block and the index of a transaction.
type place struct {
	block *block
	index int
}

// New makes a chain with a genesis block.
func New(o Options) *Chain {
	if o.Chain == 0 || o.Decode == nil {
		panic("chaintest: a chain needs an id and a decoder")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Received == nil {
		o.Received = func(Delivery) {}
	}
	if o.Rand == nil {
		o.Rand = rand.New(rand.NewPCG(1, 1))
	}
	c := &Chain{
		id: o.Chain, decode: o.Decode, now: o.Now, told: o.Received, rand: o.Rand, rules: o.Rules.withDefaults(),
		closing: make(chan struct{}), byHash: map[chain.Hash]*block{},
		nonces: map[chain.Sequence][]nonceAt{}, included: map[chain.Hash]place{},
		baseFee: o.Rules.BaseFee, isSet: true,
		pool: newPool(), broke: map[chain.Address]bool{}, gasMax: map[chain.Address]uint64{}, failing: map[chain.Address][]byte{}, leftOut: map[chain.Address]bool{}, reverts: map[chain.Hash]bool{}, grants: map[chain.AccessKey]chain.Grant{},
		record: newRecord(), watchers: map[chan *block]bool{},
	}
	c.push(nil)
	return c
}

// Close ends the chain's WebSocket connections and waits for them. It may be
// called more than once.
func (c *Chain) Close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.closing)
	}
	c.mu.Unlock()
	c.sockets.Wait()
}

// Head is the newest block.
func (c *Chain) Head() chain.Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.head().Block
}

// Final is the newest finalized block.
func (c *Chain) Final() chain.Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blocks[c.final].Block
}

// Canonical is the block of a height on the canonical chain.
func (c *Chain) Canonical(number uint64) (chain.Block, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if number >= uint64(len(c.blocks)) {
		return chain.Block{}, false
	}
	return c.blocks[number].Block, true
}

// Nonce is the chain's next nonce for a sequence.
func (c *Chain) Nonce(s chain.Sequence) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next(s)
}

// Mine makes a block from the pool, after the given transactions from elsewhere, which skip the
// pool but not the rules of execution.
func (c *Chain) Mine(others ...[]byte) (chain.Block, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mine(others)
}

// Run mines at an interval until ctx ends. While the chain is stalled it waits.
func (c *Chain) Run(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		c.mu.Lock()
		if !c.stalled {
			c.mine(nil) //nolint:errcheck // only transactions from elsewhere can fail it
		}
		c.mu.Unlock()
	}
}

func (c *Chain) head() *block { return c.blocks[len(c.blocks)-1] }

// next is the next nonce of a sequence on the canonical chain.
func (c *Chain) next(s chain.Sequence) uint64 {
	if changes := c.nonces[s]; len(changes) > 0 {
		return changes[len(changes)-1].next
	}
	return 0
}

// nextAt is the next nonce of a sequence after a block of any branch. A block that is invented
// changes nothing: its nonces are those of the head.
func (c *Chain) nextAt(s chain.Sequence, b *block) uint64 {
	for c.blocks[min(b.Number, c.head().Number)] != b { // an orphan: walk to the fork
		for _, t := range slices.Backward(b.txs) {
			if t.Sequence() == s {
				return t.Nonce + 1
			}
		}
		if b = c.byHash[b.Parent]; b == nil {
			return c.next(s)
		}
	}
	changes := c.nonces[s]
	i, _ := slices.BinarySearchFunc(changes, b.Number+1, func(at nonceAt, number uint64) int {
		return cmp.Compare(at.number, number)
	})
	if i == 0 {
		return 0
	}
	return changes[i-1].next
}

func (c *Chain) mine(others [][]byte) (chain.Block, error) {
	at := c.nextTime()
	pending := map[chain.Sequence]uint64{} // next nonces within this block
	txs, err := c.foreign(others, at, pending)
	if err != nil {
		return chain.Block{}, err
	}
	gas := gasOf(txs)
	for _, p := range c.pool.ordered() {
		if len(txs) >= c.rules.BlockMax {
			break
		}
		used := executed{Signed: p.signed}.gasUsed()
		if gas+used <= c.rules.GasLimit && !c.leavesOut(p.signed.Calls) && c.executable(p.signed, at, pending) == nil {
			txs = append(txs, c.execute(p.signed, p.raw, pending))
			gas += used
		}
	}
	b := c.push(txs)
	c.evict()
	return b.Block, nil
}

// foreign executes transactions from elsewhere, or none of them.
func (c *Chain) foreign(others [][]byte, at uint64, pending map[chain.Sequence]uint64) (txs []executed, err error) {
	for _, raw := range others {
		signed, err := c.decode(raw)
		if err != nil {
			return nil, err
		}
		if refusal := c.executable(signed, at, pending); refusal != nil {
			return nil, fmt.Errorf("chaintest: %s: %s", signed.Hash, refusal.Message)
		}
		txs = append(txs, c.execute(signed, raw, pending))
	}
	return txs, nil
}

// nextTime is the time of a block made now. Blocks never go back in time, except by MineAt.
func (c *Chain) nextTime() uint64 {
	if c.wrong != nil {
		return *c.wrong
	}
	return max(c.head().Time, uint64(c.now().Unix()))
}

func (c *Chain) execute(signed chain.Signed, raw []byte, pending map[chain.Sequence]uint64) executed {
	if !signed.NonceKey.IsExpiring() {
		pending[signed.Sequence()] = signed.Nonce + 1
	}
	status := uint64(1)
	if _, fails := c.fails(signed.Calls); fails || c.reverts[signed.Hash] {
		status = 0
	}
	return executed{signed, raw, status}
}

// push appends a block with these transactions to the canonical chain.
func (c *Chain) push(txs []executed) *block {
	b := &block{txs: txs, baseFee: c.nextBaseFee()}
	c.isSet = false
	if len(c.blocks) > 0 {
		b.Number, b.Parent, b.Time = c.head().Number+1, c.head().Hash, c.nextTime()
	} else {
		b.Time = uint64(c.now().Unix())
	}
	c.salt++
	header := binary.BigEndian.AppendUint64(nil, uint64(c.id))
	for _, n := range []uint64{b.Number, b.Time, c.salt} {
		header = binary.BigEndian.AppendUint64(header, n)
	}
	parts := [][]byte{header, b.Parent[:]}
	for _, t := range txs {
		parts = append(parts, t.Hash[:])
	}
	b.Hash = chain.Keccak(parts...)
	c.blocks = append(c.blocks, b)
	c.byHash[b.Hash] = b
	c.settle(b)
	for _, t := range txs {
		c.record.history[t.Hash] = append(c.record.history[t.Hash], b.Block)
	}
	if !c.unsealed && b.Number > c.rules.Finality {
		c.final = max(c.final, b.Number-c.rules.Finality)
	}
	for watcher := range c.watchers {
		select {
		case watcher <- b:
		default: // a slow watcher misses a block, as subscriptions do
		}
	}
	return b
}

// settle updates the indexes for the newest canonical block.
func (c *Chain) settle(b *block) {
	for i, t := range b.txs {
		c.included[t.Hash] = place{b, i}
		if s := t.Sequence(); !t.NonceKey.IsExpiring() {
			c.nonces[s] = append(c.nonces[s], nonceAt{b.Number, t.Nonce + 1})
		}
	}
}

// pop removes the newest block from the canonical chain and returns its transactions.
func (c *Chain) pop() []executed {
	b := c.head()
	c.blocks = c.blocks[:len(c.blocks)-1]
	for _, t := range slices.Backward(b.txs) {
		delete(c.included, t.Hash)
		if s := t.Sequence(); !t.NonceKey.IsExpiring() {
			if c.nonces[s] = c.nonces[s][:len(c.nonces[s])-1]; len(c.nonces[s]) == 0 {
				delete(c.nonces, s)
			}
		}
	}
	return b.txs
}
