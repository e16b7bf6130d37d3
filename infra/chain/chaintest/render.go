package chaintest

import (
	"encoding/hex"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

const noBloom = 512 // hex digits of an empty logs bloom

var (
	zeros    = strings.Repeat("0", 64)
	emptyRef = "0x" + zeros
	bloom    = "0x" + strings.Repeat("0", noBloom)
)

// renderHeader renders a block without its transactions.
func (v view) renderHeader(b *block) map[string]any {
	rendered := map[string]any{
		"number": quantity(b.Number), "hash": b.Hash, "parentHash": b.Parent, "timestamp": quantity(b.Time),
		"gasLimit": quantity(v.rules.GasLimit), "gasUsed": quantity(gasOf(b.txs)),
		"miner": chain.Address{}, "difficulty": "0x0", "extraData": "0x", "nonce": "0x0000000000000000",
		"mixHash": emptyRef, "sha3Uncles": emptyRef, "stateRoot": emptyRef,
		"transactionsRoot": emptyRef, "receiptsRoot": emptyRef, "logsBloom": bloom,
	}
	if !v.rules.NoBaseFee {
		rendered["baseFeePerGas"] = v.priced(b.baseFee)
	}
	return rendered
}

func (v view) renderBlock(b *block, full bool) map[string]any {
	rendered := v.renderHeader(b)
	txs := make([]any, len(b.txs))
	for i, t := range b.txs {
		if txs[i] = t.Hash; full {
			txs[i] = v.renderTransaction(t.Signed, &place{b, i})
		}
	}
	rendered["transactions"], rendered["uncles"], rendered["size"] = txs, []string{}, "0x0"
	return rendered
}

func (v view) renderReceipt(at place) map[string]any {
	t := at.block.txs[at.index]
	var cumulative uint64
	for _, before := range at.block.txs[:at.index+1] {
		cumulative += before.gasUsed()
	}
	rendered := map[string]any{
		"transactionHash": t.Hash, "transactionIndex": quantity(at.index),
		"blockHash": at.block.Hash, "blockNumber": quantity(at.block.Number), "blockTimestamp": quantity(at.block.Time),
		"from": t.Sender, "to": recipient(t.Signed), "contractAddress": nil,
		"status": quantity(t.status), "type": quantity(t.Type),
		"gasUsed": quantity(t.gasUsed()), "cumulativeGasUsed": quantity(cumulative),
		"effectiveGasPrice": t.price(at.block.baseFee).Hex(), "logs": []string{}, "logsBloom": bloom,
	}
	if t.FeePayer != nil {
		rendered["feePayer"] = t.FeePayer
	}
	if t.FeeToken != nil {
		rendered["feeToken"] = t.FeeToken
	}
	return rendered
}

func (v view) renderTransaction(t chain.Signed, at *place) map[string]any {
	limit, tip := fees(t)
	rendered := map[string]any{
		"hash": t.Hash, "type": quantity(t.Type), "chainId": quantity(t.Chain), "from": t.Sender, "to": recipient(t),
		"nonce": quantity(t.Nonce), "nonceKey": t.NonceKey, "gas": quantity(t.Gas),
		"gasPrice": limit.Hex(), "maxFeePerGas": limit.Hex(), "maxPriorityFeePerGas": tip.Hex(),
		"value": "0x0", "input": "0x", "blockHash": nil, "blockNumber": nil, "transactionIndex": nil,
	}
	if len(t.Calls) > 0 {
		rendered["input"] = "0x" + hex.EncodeToString(t.Calls[0].Input)
		if t.Calls[0].Value != nil {
			rendered["value"] = t.Calls[0].Value.Hex()
		}
	}
	if at != nil {
		rendered["blockHash"], rendered["blockNumber"] = at.block.Hash, quantity(at.block.Number)
		rendered["transactionIndex"] = quantity(at.index)
	}
	return rendered
}

// recipient is the recipient of a transaction's first call; nil for none.
func recipient(t chain.Signed) *chain.Address {
	if len(t.Calls) == 0 {
		return nil
	}
	return t.Calls[0].To
}
