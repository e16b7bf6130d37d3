package rpc

import (
	"cmp"
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// word is one endpoint's answer about prices: its newest block, the blocks before it and the
// one after, as far as it reports them.
type word struct {
	by   *endpoint
	head uint64
	hash chain.Hash
	base *chain.Price // of the newest block; nil if it has none

	oldest uint64
	bases  []chain.Price // from the oldest block to the block after the newest
	full   []float64
	tips   [][]chain.Price
}

// ask reads an endpoint's newest header and its fee history. The header is the reference: some
// endpoints serve the history from another node, or late, or not at all.
func (m *Market) ask(ctx context.Context, e *endpoint) (word, error) {
	replies, err := m.reader.ask(ctx, e,
		call{"eth_getBlockByNumber", []any{"latest", false}},
		call{"eth_feeHistory", []any{quantity(m.blocks), "latest", m.percentiles}})
	if err != nil {
		return word{}, err
	}
	w, err := parsePricedHeader(replies[0], m.reader.pool.config.Chain)
	if _, declined := nodeCode(replies[1].err); err == nil && !declined {
		err = m.history(&w, replies[1])
	}
	if err != nil {
		return word{}, m.reader.pool.dispute(ctx, e, fmt.Errorf("prices: %w", err))
	}
	w.by = e
	return w, nil
}

func parsePricedHeader(answer reply, id chain.ID) (w word, err error) {
	seen, err := parseBlock(answer, id)
	if err != nil {
		return w, err
	}
	var header struct {
		BaseFee *wide `json:"baseFeePerGas"`
	}
	if err := answer.into(&header); err != nil {
		return w, err
	}
	w.head, w.hash = seen.block.Number, seen.block.Hash
	if header.BaseFee != nil {
		base := chain.Price(header.BaseFee.Int)
		w.base = &base
	}
	return w, nil
}

// history reads a reply to eth_feeHistory. Source: execution-apis, eth_feeHistory. A reply of
// another shape than requested is an error. Parts that do not match the header, because another
// node served them, are left out.
func (m *Market) history(w *word, answer reply) error {
	var h struct {
		Oldest *quantity `json:"oldestBlock"`
		Bases  []wide    `json:"baseFeePerGas"`
		Full   []float64 `json:"gasUsedRatio"`
		Tips   [][]wide  `json:"reward"`
	}
	if err := answer.into(&h); err != nil {
		return err
	}
	switch {
	case answer.null() || h.Oldest == nil || w.base == nil:
		return nil
	case len(h.Bases) > m.blocks+1 || len(h.Full) > m.blocks || len(h.Tips) > m.blocks:
		return contradiction("a history of more than %d blocks", m.blocks)
	}
	tips := make([][]chain.Price, len(h.Tips))
	for i, row := range h.Tips {
		if len(row) != len(m.percentiles) {
			return contradiction("%d tips of a block at %d percentiles", len(row), len(m.percentiles))
		}
		tips[i] = pricesOf(row)
	}
	told := word{oldest: uint64(*h.Oldest), bases: pricesOf(h.Bases), full: h.Full, tips: tips}
	if base, ok := told.listed(w.head); ok && base != *w.base {
		return nil
	}
	w.oldest, w.bases, w.full, w.tips = told.oldest, told.bases, told.full, told.tips
	return nil
}

func pricesOf(numbers []wide) []chain.Price {
	prices := make([]chain.Price, len(numbers))
	for i, n := range numbers {
		prices[i] = chain.Price(n.Int)
	}
	return prices
}

// baseAt is the base fee of a block, if the endpoint reports it.
func (w word) baseAt(number uint64) (chain.Price, bool) {
	if number == w.head && w.base != nil {
		return *w.base, true
	}
	return w.listed(number)
}

// listed is the base fee of a block in the history.
func (w word) listed(number uint64) (fee chain.Price, ok bool) {
	i := number - w.oldest
	if number < w.oldest || i >= uint64(len(w.bases)) {
		return fee, false
	}
	return w.bases[i], true
}

// paidAt is the fees paid in a block, if the endpoint reports them.
func (w word) paidAt(number uint64) (paid chain.Paid, ok bool) {
	i := number - w.oldest
	if number < w.oldest || i >= uint64(min(len(w.bases), len(w.full), len(w.tips))) {
		return paid, false
	}
	return chain.Paid{BaseFee: w.bases[i], Full: w.full[i], Tips: w.tips[i]}, true
}

// paid is the fees paid in the newest blocks up to head: the median of each figure.
func paid(words []word, head uint64, blocks, percentiles int) []chain.Paid {
	var list []chain.Paid
	oldest := head - min(head, uint64(blocks-1))
	for i := range head - oldest + 1 {
		number := oldest + i
		var said []chain.Paid
		for _, w := range words {
			if one, ok := w.paidAt(number); ok {
				said = append(said, one)
			}
		}
		if len(said) > 0 {
			list = append(list, amid(said, percentiles))
		}
	}
	return list
}

// amid is the median of each figure.
func amid(said []chain.Paid, percentiles int) chain.Paid {
	bases, full := make([]chain.Price, len(said)), make([]float64, len(said))
	for i, one := range said {
		bases[i], full[i] = one.BaseFee, one.Full
	}
	result := chain.Paid{BaseFee: middle(bases, comparePrices), Full: middle(full, cmp.Compare)}
	for n := range percentiles {
		tips := make([]chain.Price, len(said))
		for i, one := range said {
			tips[i] = one.Tips[n]
		}
		result.Tips = append(result.Tips, middle(tips, comparePrices))
	}
	return result
}
