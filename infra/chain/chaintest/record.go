package chaintest

import (
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// receivedMax bounds the recorded deliveries. Older ones are dropped; the numbers of the others
// show how many.
const receivedMax = 1 << 20

// Delivery is one broadcast that reached a node.
type Delivery struct {
	Number uint64 // 1 for the first, without gaps
	At     time.Time
	Node   string
	Raw    []byte     // as received; not to be changed
	Hash   chain.Hash // hash of the decoded transaction; zero if the bytes are no transaction
	// Answer is the node's decision, even if the reply was lost; nil means that it accepted the
	// bytes.
	Answer *Refusal
	Head   chain.Block // the chain's newest block at that time
}

// record holds the data for checks.
type record struct {
	received []Delivery
	count    uint64
	history  map[chain.Hash][]chain.Block
	raw      map[chain.Hash][]byte // one copy of equal bytes, by their hash
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

// Received lists the broadcasts that reached any node, in order: at least the newest million.
func (c *Chain) Received() []Delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.record.received)
}

// Executed returns how often each transaction is in the canonical chain. Any number but 1 is a
// defect of this package.
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

// History lists the blocks of any branch that ever held a transaction, in the order of their
// making.
func (c *Chain) History(hash chain.Hash) []chain.Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.record.history[hash])
}

// Receipt is a transaction's receipt in the canonical chain.
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
