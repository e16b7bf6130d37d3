package chaintest

import (
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// receivedMax bounds the deliveries that are kept; older ones are forgotten, and
// the numbers of those that are left tell.
const receivedMax = 1 << 20

// Delivery is one broadcast that reached a node.
type Delivery struct {
	Number uint64 // 1 for the first, without gaps
	At     time.Time
	Node   string
	Raw    []byte     // as received; not to be changed
	Hash   chain.Hash // as decoded; zero if the bytes are no transaction
	// Answer is what the node decided, whether or not the answer got through;
	// nil means that it took the bytes.
	Answer *Refusal
	Head   chain.Block // the chain's newest block then
}

// record is what judges ask about.
type record struct {
	received []Delivery
	count    uint64
	history  map[chain.Hash][]chain.Block
	raw      map[chain.Hash][]byte // one copy of equal bytes, by their own hash
}

func newRecord() record {
	return record{history: map[chain.Hash][]chain.Block{}, raw: map[chain.Hash][]byte{}}
}

func (r *record) add(d Delivery) Delivery {
	r.count++
	d.Number = r.count
	if len(r.received) == receivedMax {
		r.received = slices.Delete(r.received, 0, receivedMax/2)
	}
	r.received = append(r.received, d)
	return d
}

// intern returns the one copy of these bytes.
func (r *record) intern(raw []byte) []byte {
	key := chain.Keccak(raw)
	if kept, ok := r.raw[key]; ok {
		return kept
	}
	kept := slices.Clone(raw)
	r.raw[key] = kept
	return kept
}

// Received lists the broadcasts that reached any node, in order: the newest
// million at least.
func (c *Chain) Received() []Delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.record.received)
}

// Executed says how often each transaction is in the canonical chain. Anything
// but 1 is a fault of this package.
func (c *Chain) Executed() map[chain.Hash]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	times := map[chain.Hash]int{}
	for _, b := range c.blocks {
		for _, t := range b.txs {
			times[t.Hash]++
		}
	}
	return times
}

// History lists the blocks of any branch that ever held a transaction, in the
// order in which they came.
func (c *Chain) History(hash chain.Hash) []chain.Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.record.history[hash])
}

// Receipt is where a transaction is in the canonical chain, and how it ended.
func (c *Chain) Receipt(hash chain.Hash) (chain.Receipt, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.included[hash]
	if !ok {
		return chain.Receipt{}, false
	}
	t := at.block.txs[at.index]
	return chain.Receipt{
		Block: at.block.Block, Index: uint64(at.index), Status: t.status,
		GasUsed: t.gasUsed(), EffectiveGasPrice: t.price(c.baseFee).Dec(),
		FeePayer: t.FeePayer, FeeToken: t.FeeToken,
	}, true
}
