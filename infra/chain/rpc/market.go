package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// MarketBlocksMax and MarketPercentilesMax bound one request for fee history.
const (
	MarketBlocksMax      = 100
	MarketPercentilesMax = 8
)

const (
	// marketFor is how long a reading is used without another question. marketAtHead is how
	// long it is used while the chain shows no newer block: nodes may withhold the newest.
	marketFor    = time.Second
	marketAtHead = 15 * time.Second
	// baseFeeMove is the divisor of the largest change of a base fee from one block to the
	// next. Source: EIP-1559, BASE_FEE_MAX_CHANGE_DENOMINATOR; other chains with base fees
	// allow smaller changes.
	baseFeeMove = 8
)

// Market reads gas prices on the pool's chain. It is safe for concurrent use.
//
// If others are healthy, no endpoint sets a price alone: several are asked and the median
// counts. A base fee counts when others give about the same for a block that most of them have
// reached. The predicted next base fee is limited to the change that one block can make.
type Market struct {
	reader      *Reader
	blocks      int
	percentiles []float64
	chorus      chorus[chain.Market]

	mu   sync.Mutex
	last chain.Market
	at   time.Time // time of the reading; zero before the first
}

// Market returns a reader of the fees paid in the newest blocks, for this number of blocks and
// these rising percentiles of the tips in a block.
func (r *Reader) Market(blocks int, percentiles ...float64) *Market {
	if blocks < 1 || blocks > MarketBlocksMax || len(percentiles) < 1 || len(percentiles) > MarketPercentilesMax {
		panic(fmt.Sprintf("rpc: a market of %d blocks and %d percentiles", blocks, len(percentiles)))
	}
	for i, p := range percentiles {
		if !(p >= 0 && p <= 100) || i > 0 && !(p > percentiles[i-1]) {
			panic(fmt.Sprintf("rpc: percentiles %v do not rise from 0 to 100", percentiles))
		}
	}
	return &Market{reader: r, blocks: blocks, percentiles: slices.Clone(percentiles)}
}

// Market returns the current gas prices. Callers at the same time, or at the same block, share
// one reading. An error says nothing about the market.
func (m *Market) Market(ctx context.Context) (chain.Market, error) {
	if known, ok := m.recall(marketFor); ok {
		return known, nil
	}
	return m.chorus.do(ctx, func(ctx context.Context) (chain.Market, error) {
		if known, ok := m.recall(marketFor); ok {
			return known, nil
		}
		if known, ok := m.recall(marketAtHead); ok {
			if head, err := m.reader.Head(ctx); err == nil && head.Number == known.Head {
				return known, nil
			}
		}
		return m.read(ctx)
	})
}

func (m *Market) recall(within time.Duration) (chain.Market, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, !m.at.IsZero() && m.reader.pool.config.Now().Sub(m.at) < within
}

func (m *Market) read(ctx context.Context) (chain.Market, error) {
	p := m.reader.pool
	words, err := several(ctx, p, ofPrices, m.ask)
	if err != nil {
		return chain.Market{}, err
	}
	market := chain.Market{Head: reached(words)}
	if legacy(words) {
		market.GasPrice, err = m.suggested(ctx, "eth_gasPrice")
	} else {
		err = m.price(ctx, &market, words)
	}
	if err != nil {
		return chain.Market{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last, m.at = market, p.config.Now()
	return market, nil
}

// price fills in the fields of a chain with base fees.
func (m *Market) price(ctx context.Context, market *chain.Market, words []word) (err error) {
	base, err := m.baseFee(words, market.Head)
	if err != nil {
		return err
	}
	next := nextBaseFee(words, market.Head, base)
	market.Next = &next
	market.Blocks = paid(words, market.Head, m.blocks, len(m.percentiles))
	if slices.ContainsFunc(market.Blocks, func(b chain.Paid) bool { return b.Full > 0 && len(b.Tips) > 0 }) {
		return nil
	}
	// The newest blocks are empty, or the endpoints serve no history. Some do not offer this
	// method either: then no tip is suggested.
	market.Suggested, err = m.suggested(ctx, "eth_maxPriorityFeePerGas")
	if _, declined := nodeCode(err); declined {
		return nil
	}
	return err
}

// suggested is the median of the prices that nodes suggest.
func (m *Market) suggested(ctx context.Context, method string) (chain.Price, error) {
	prices, err := several(ctx, m.reader.pool, ofPrices, func(ctx context.Context, e *endpoint) (chain.Price, error) {
		replies, err := m.reader.ask(ctx, e, call{method, nil})
		if err != nil {
			return chain.Price{}, err
		}
		var price *wide
		if err = replies[0].into(&price); err == nil && price == nil {
			err = contradiction("no price")
		}
		if err != nil {
			return chain.Price{}, m.reader.pool.dispute(ctx, e, fmt.Errorf("%s: %w", method, err))
		}
		return chain.Price(price.Int), nil
	})
	if err != nil {
		return chain.Price{}, err
	}
	return middle(prices, comparePrices), nil
}

// baseFee is the base fee of a block: the median, if Agree endpoints give about the same. Two
// may be on different branches and differ by the change of one block.
func (m *Market) baseFee(words []word, number uint64) (chain.Price, error) {
	var said []chain.Price
	var by []*endpoint
	for _, w := range words {
		if fee, ok := w.baseAt(number); ok {
			said, by = append(said, fee), append(by, w.by)
		}
	}
	if len(said) == 0 {
		return chain.Price{}, errors.New("no endpoint reports the base fee of the newest block")
	}
	p, fee := m.reader.pool, middle(slices.Clone(said), comparePrices)
	low, high := around(fee)
	near := 0
	for _, other := range said {
		if comparePrices(other, low) >= 0 && comparePrices(other, high) <= 0 {
			near++
		}
	}
	what := fmt.Sprintf("base fee of block %d", number)
	if near < min(p.config.Agree, len(words)) {
		p.differ(by, what)
		return chain.Price{}, fmt.Errorf("%s: %w (%v)", what, errAlone, said)
	}
	p.accuse(contradicted(words, number, fee), what)
	return fee, nil
}

// contradicted are the endpoints whose base fee for a block differs from a value that two
// endpoints give.
func contradicted(words []word, number uint64, fee chain.Price) (liars []*endpoint) {
	agreed := map[chain.Hash]int{}
	for _, w := range words {
		if w.head == number && w.base != nil && *w.base == fee {
			agreed[w.hash]++
		}
	}
	for _, w := range words {
		if w.head == number && (w.base == nil || *w.base != fee) && agreed[w.hash] > 1 {
			liars = append(liars, w.by)
		}
	}
	return liars
}

// reached is the highest block that most endpoints have reached.
func reached(words []word) uint64 {
	heads := make([]uint64, len(words))
	for i, w := range words {
		heads[i] = w.head
	}
	return middle(heads, cmp.Compare)
}

// legacy reports whether most endpoints show blocks without a base fee.
func legacy(words []word) bool {
	without := 0
	for _, w := range words {
		if w.base == nil {
			without++
		}
	}
	return 2*without > len(words)
}

// nextBaseFee is the base fee of the block after number: the median of the predictions, limited
// to the change that one block can make. Without predictions it is the highest possible.
func nextBaseFee(words []word, number uint64, base chain.Price) chain.Price {
	low, high := around(base)
	var said []chain.Price
	for _, w := range words {
		if fee, ok := w.baseAt(number + 1); ok {
			said = append(said, fee)
		}
	}
	if len(said) == 0 {
		return high
	}
	next := middle(said, comparePrices)
	switch {
	case comparePrices(next, low) < 0:
		return low
	case comparePrices(next, high) > 0:
		return high
	}
	return next
}

// around returns the lowest and highest base fee of the next block.
func around(fee chain.Price) (low, high chain.Price) {
	move := new(uint256.Int).Div(fee.Int(), uint256.NewInt(baseFeeMove))
	least := new(uint256.Int).Sub(fee.Int(), move)
	if move.IsZero() {
		move.SetOne() // the minimum rise
	}
	most, over := new(uint256.Int).AddOverflow(fee.Int(), move)
	if over {
		most.SetAllOne()
	}
	return chain.Price(*least), chain.Price(*most)
}

func comparePrices(a, b chain.Price) int { return a.Int().Cmp(b.Int()) }
