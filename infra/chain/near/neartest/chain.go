package neartest

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/infra/chain/near"
)

// Options describe a chain. Zero values get the defaults named beside them.
type Options struct {
	Name     string // as nodes show it; default "testnet"
	Protocol uint32 // protocol version; default 86
	Validity uint64 // blocks for which a transaction's block hash holds; default 86400
	Shards   int    // default 2
	// Producers is how many chunk producers take turns in each shard, each with a pool of its own. Default 4.
	Producers int
	Height    uint64           // of the first block; default 187,000,000
	Keep      uint64           // blocks that nodes keep; default 216,000, which is five epochs
	Now       func() time.Time // default time.Now
	Seed      uint64           // of what is lost at random
	// Wait bounds how long a node waits for a level of execution. Default 10 s.
	Wait     time.Duration
	ChunkMax int // transactions of a chunk; default 1000
}

// Chain is a chain in memory. It is safe for concurrent use.
type Chain struct {
	options Options

	mu     sync.Mutex
	random *rand.Rand
	head   *block
	byHash map[hash]*block
	orphan []*block // heads of branches that lost
	salt   uint64
	moved  chan struct{} // closed and replaced with each block

	pools     [][]*pool         // by shard and producer
	forwards  uint64            // transactions that were forwarded
	found     map[hash][]*block // blocks with an outcome of a transaction or a receipt
	stalled   map[int]bool      // shards without new chunks
	congested map[int]float64   // levels of congestion of shards
	delay     int               // blocks for which receipts wait before they run
	failing   map[call]any      // calls whose receipt fails, with their error
	promising map[call]any      // calls that make a further receipt, with its error; nil: it succeeds
	include   bool              // producers include what they find invalid
	record    record
}

// call is a method of a contract.
type call struct{ account, method string }

// New makes a chain with its first block. Its accounts are those of [Chain.Create].
func New(o Options) *Chain {
	orElse(&o.Name, "testnet")
	orElse(&o.Protocol, 86)
	orElse(&o.Validity, 86_400)
	orElse(&o.Shards, 2)
	orElse(&o.Producers, 4)
	orElse(&o.Height, 187_000_000)
	orElse(&o.Keep, 5*43_200)
	orElse(&o.Wait, 10*time.Second)
	orElse(&o.ChunkMax, 1000)
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Chain{
		options: o, random: rand.New(rand.NewPCG(o.Seed, 1)), byHash: map[hash]*block{}, moved: make(chan struct{}),
		found: map[hash][]*block{}, stalled: map[int]bool{}, congested: map[int]float64{}, failing: map[call]any{}, promising: map[call]any{},
		record: record{executed: map[hash]int{}},
	}
	for range o.Shards {
		c.pools = append(c.pools, make([]*pool, o.Producers))
	}
	for _, producers := range c.pools {
		for i := range producers {
			producers[i] = &pool{}
		}
	}
	genesis := newBlock(nil, o.Height, uint64(o.Now().UnixNano()), 0)
	genesis.state = (*state)(nil).next()
	for shard := range o.Shards {
		genesis.chunks = append(genesis.chunks, chunk{hash: idOf("chunk", genesis.hash, uint64(shard)), shard: shard, created: o.Height})
	}
	c.head = genesis
	c.byHash[genesis.hash] = genesis
	return c
}

func orElse[T comparable](value *T, other T) {
	var zero T
	if *value == zero {
		*value = other
	}
}

// Create makes an account, or changes its balance and adds keys, as if the newest block had done so. Balances
// are whole NEAR. A key without restrictions starts at the nonce that the chain gives new keys.
func (c *Chain) Create(name string, balance uint64, keys ...near.PublicKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.head.state.touch(name)
	if a == nil {
		a = c.head.state.create(name)
	}
	a.balance = NEAR(balance)
	for _, key := range keys {
		a.keys[key] = accessKey{nonce: firstNonce(c.head.height)}
		a.storage += storageOfKey
	}
}

// NEAR returns whole NEAR as yoctoNEAR.
func NEAR(n uint64) uint256.Int {
	return *new(uint256.Int).Mul(uint256.NewInt(n), uint256.MustFromDecimal("1000000000000000000000000"))
}

// noncesPerBlock is the factor between a height and the nonces that it allows.
const noncesPerBlock = 1_000_000

// firstNonce is the nonce of a key that is added in a block.
func firstNonce(height uint64) uint64 { return (height - 1) * noncesPerBlock }

// shardOf is an account's shard.
func (c *Chain) shardOf(account string) int {
	h := fnv.New32a()
	h.Write([]byte(account))
	return int(h.Sum32() % uint32(c.options.Shards))
}

// Block is a block as tests see it.
type Block struct {
	Height uint64
	Hash   [32]byte
}

// Head returns the newest block, and Final the newest final one.
func (c *Chain) Head() Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Block{c.head.height, c.head.hash}
}

// Final returns the newest final block.
func (c *Chain) Final() Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Block{c.head.final.height, c.head.final.hash}
}

// Produce makes a block on the newest one, after this many skipped heights.
func (c *Chain) Produce(skipped ...uint64) Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	height := c.head.height + 1
	for _, n := range skipped {
		height += n
	}
	b := c.produce(c.head, height)
	return Block{b.height, b.hash}
}

// Run makes a block each interval until the context ends.
func (c *Chain) Run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.Produce()
		}
	}
}

// produce makes a block, which becomes the head if it is the highest.
func (c *Chain) produce(parent *block, height uint64) *block {
	c.salt++
	b := newBlock(parent, height, max(uint64(c.options.Now().UnixNano()), parent.time+1), c.salt)
	b.state = parent.state.next()
	c.fill(b)
	c.byHash[b.hash] = b
	if height > c.head.height {
		if !b.has(c.head) {
			c.orphan = append(c.orphan, c.head)
		}
		c.head = b
	}
	for id := range b.outcomes {
		c.found[id] = append(c.found[id], b)
	}
	close(c.moved)
	c.moved = make(chan struct{})
	return b
}

// Reorg replaces the newest blocks by others, one more than there were, on a branch of their own. It panics if
// one of them is final. With again, their transactions go back into producers' pools.
func (c *Chain) Reorg(depth int, again bool) Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	base, height := c.head, c.head.height
	var lost []near.Signed
	for range depth {
		if base == c.head.final {
			panic("neartest: a final block is not replaced")
		}
		for _, chunk := range base.chunks {
			if chunk.created == base.height {
				lost = append(lost, chunk.transactions...)
			}
		}
		base = base.parent
	}
	if again {
		for _, s := range lost {
			c.pooled(s)
		}
	}
	b := base
	// The first block takes a height that the lost branch has too; the others follow without a gap.
	for next := base.height + 1; next <= height+1; next++ {
		b = c.produce(b, next)
	}
	return Block{b.height, b.hash}
}
