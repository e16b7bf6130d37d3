package chaintest

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// baseFeeMove is the divisor of the base fee's change after a full block, if blocks target half
// of their limit. Source: EIP-1559, BASE_FEE_MAX_CHANGE_DENOMINATOR.
const baseFeeMove = 8

// nextBaseFee is the base fee of a block made now.
func (c *Chain) nextBaseFee() uint64 {
	switch {
	case c.rules.NoBaseFee:
		return 0
	case c.rules.Elasticity == 0 || c.isSet:
		return c.baseFee
	}
	return c.baseFeeAfter(c.head())
}

// baseFeeAfter is the base fee of the block after b: b's, plus or minus up to an eighth,
// depending on whether b used more or less than the target gas.
func (c *Chain) baseFeeAfter(b *block) uint64 {
	if c.rules.Elasticity == 0 {
		return b.baseFee
	}
	used, aim := gasOf(b.txs), c.rules.GasLimit/c.rules.Elasticity
	change := func(distance uint64) uint64 {
		n := new(uint256.Int).Mul(uint256.NewInt(b.baseFee), uint256.NewInt(distance))
		return n.Div(n, uint256.NewInt(aim*baseFeeMove)).Uint64()
	}
	if used > aim {
		return b.baseFee + max(change(used-aim), 1)
	}
	return b.baseFee - change(aim-used)
}

func gasOf(txs []executed) (gas uint64) {
	for _, t := range txs {
		gas += t.gasUsed()
	}
	return gas
}

// transfer is the gas of a plain transfer.
const transfer = 21_000

// gasUsed is the gas used in a transaction's receipt.
func (t executed) gasUsed() uint64 {
	if t.Gas == 0 {
		return transfer
	}
	return min(t.Gas, transfer)
}

// price is a transaction's price per gas.
func (t executed) price(baseFee uint64) *uint256.Int {
	limit, tip := fees(t.Signed)
	if t.GasPrice != nil {
		return limit
	}
	price := new(uint256.Int).Add(uint256.NewInt(baseFee), tip)
	if price.Gt(limit) {
		return limit
	}
	return price
}

// tip is a transaction's price above the base fee.
func (t executed) tip(baseFee uint64) uint64 {
	tip, under := new(uint256.Int).SubOverflow(t.price(baseFee), uint256.NewInt(baseFee))
	switch {
	case under:
		return 0
	case !tip.IsUint64():
		return math.MaxUint64
	}
	return tip.Uint64()
}

// fees are a transaction's maximum price per gas, and the tip within it.
func fees(t chain.Signed) (limit, tip *uint256.Int) {
	limit, tip = new(uint256.Int), new(uint256.Int)
	if t.GasPrice != nil {
		return t.GasPrice, t.GasPrice
	}
	if t.MaxFee != nil {
		limit = t.MaxFee
	}
	if t.MaxPriorityFee != nil {
		tip = t.MaxPriorityFee
	}
	return limit, tip
}

// priced is a price as the node reports it.
func (v view) priced(price uint64) string {
	if v.faults.Prices != nil {
		price = v.faults.Prices(price)
	}
	return quantity(price)
}

// tipsAt are the tips in a block at percentiles of its used gas. Source: go-ethereum,
// eth/gasprice/feehistory.go, processBlock.
func (b *block) tipsAt(percentiles []float64) []uint64 {
	tips := make([]uint64, len(percentiles))
	if len(b.txs) == 0 {
		return tips
	}
	txs := slices.SortedStableFunc(slices.Values(b.txs), func(a, other executed) int {
		return cmp.Compare(a.tip(b.baseFee), other.tip(b.baseFee))
	})
	at, sum, total := 0, txs[0].gasUsed(), gasOf(txs)
	for i, p := range percentiles {
		for threshold := uint64(float64(total) * p / 100); sum < threshold && at < len(txs)-1; {
			at++
			sum += txs[at].gasUsed()
		}
		tips[i] = txs[at].tip(b.baseFee)
	}
	return tips
}

// A node's ranges for fee history and tip suggestion. Source: go-ethereum, eth/gasprice.
const (
	historyMax     = 1024
	percentilesMax = 100
	suggestedOver  = 20 // blocks
	suggestedAt    = 60 // percent
)

// suggestedTip is a percentile, over the newest blocks, of each block's percentile of tips;
// both are suggestedAt.
func (v view) suggestedTip() uint64 {
	var tips []uint64
	for n := range min(v.head+1, suggestedOver) {
		if b := v.blocks[v.head-n]; len(b.txs) > 0 {
			tips = append(tips, b.tipsAt([]float64{suggestedAt})[0])
		}
	}
	if len(tips) == 0 {
		return 0
	}
	slices.Sort(tips)
	return tips[len(tips)*suggestedAt/100]
}

// feeHistory is eth_feeHistory(count, newest, percentiles).
func (v view) feeHistory(args arguments) (any, *Refusal) {
	var percentiles []float64
	count, refusal := args.count(0)
	if refusal != nil {
		return nil, refusal
	}
	if len(args.params) > 2 && json.Unmarshal(args.params[2], &percentiles) != nil || len(percentiles) > percentilesMax {
		return nil, refuse(invalidParams, "invalid argument 2: not percentiles")
	}
	for i, p := range percentiles {
		if p < 0 || p > 100 || i > 0 && p <= percentiles[i-1] {
			return nil, refuse(invalidInput, "invalid reward percentile: #%d: %g", i, p)
		}
	}
	newest, refusal := v.state(args, 1)
	if refusal != nil {
		return nil, refusal
	}
	// A block that is invented, or no longer canonical, may be above all blocks that the node
	// shows.
	end := min(newest.Number, v.head) + 1
	count = min(count, historyMax, end)
	if count == 0 {
		return map[string]any{"oldestBlock": "0x0", "gasUsedRatio": []float64{}}, nil
	}
	return v.historyOf(v.blocks[end-count:end], percentiles), nil
}

// historyOf renders consecutive blocks.
func (v view) historyOf(blocks []*block, percentiles []float64) map[string]any {
	var bases []string
	var full []float64
	rewards := [][]string{}
	for _, b := range blocks {
		bases = append(bases, v.priced(b.baseFee))
		full = append(full, float64(gasOf(b.txs))/float64(v.rules.GasLimit))
		row := []string{}
		for _, tip := range b.tipsAt(percentiles) {
			row = append(row, v.priced(tip))
		}
		rewards = append(rewards, row)
	}
	last := blocks[len(blocks)-1]
	next := v.baseFeeAfter(last)
	if last == v.Chain.head() {
		next = v.nextBaseFee()
	}
	history := map[string]any{
		"oldestBlock": quantity(blocks[0].Number), "gasUsedRatio": full, "baseFeePerGas": append(bases, v.priced(next)),
	}
	if len(percentiles) > 0 {
		history["reward"] = rewards
	}
	return history
}

// count is a number of blocks, as a quantity or as a JSON number.
func (a arguments) count(i int) (n uint64, refusal *Refusal) {
	if i < len(a.params) {
		text := strings.Trim(string(a.params[i]), `"`)
		if parsed, err := strconv.ParseUint(text, 0, 64); err == nil {
			return parsed, nil
		}
	}
	return 0, refuse(invalidParams, "invalid argument %d: not a number of blocks", i)
}

// fails returns the reason of the first failing call, if one fails.
func (c *Chain) fails(calls []chain.Call) (reason []byte, fails bool) {
	for _, call := range calls {
		if call.To == nil {
			continue
		}
		if reason, fails = c.failing[*call.To]; fails {
			return reason, true
		}
	}
	return nil, false
}

// estimateGas is eth_estimateGas of one call or, in Tempo's form, of several.
func (v view) estimateGas(args arguments) (any, *Refusal) {
	if _, refusal := v.state(args, 1); refusal != nil {
		return nil, refusal
	}
	if refusal := v.tried(args); refusal != nil {
		return nil, refusal
	}
	return quantity(uint64(transfer)), nil
}

// tried returns the error of the tried calls: a single one or, in Tempo's form, a batch.
func (v view) tried(args arguments) *Refusal {
	type call struct{ To *chain.Address }
	var tx struct {
		call
		Calls []call
	}
	if len(args.params) == 0 || json.Unmarshal(args.params[0], &tx) != nil {
		return refuse(invalidParams, "missing value for required argument 0")
	}
	calls := []chain.Call{{To: tx.To}}
	for _, c := range tx.Calls {
		calls = append(calls, chain.Call{To: c.To})
	}
	if reason, fails := v.fails(calls); fails {
		return &Refusal{Code: codeOfExecution, Message: "execution reverted", Data: "0x" + hex.EncodeToString(reason)}
	}
	return nil
}
