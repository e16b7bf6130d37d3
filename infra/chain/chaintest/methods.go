package chaintest

import (
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

const sendRaw = "eth_sendRawTransaction"

// dispatch performs one call. A nil result without a refusal is the JSON null.
func (n *Node) dispatch(method string, params []json.RawMessage) (any, *Refusal) {
	args := arguments{params: params}
	if method == sendRaw {
		return n.sendRawTransaction(args)
	}
	c := n.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	view := n.view()
	switch method {
	case "eth_chainId":
		if n.faults.ChainID != 0 {
			return quantity(n.faults.ChainID), nil
		}
		return quantity(c.id), nil
	case "net_version":
		return c.id.String(), nil
	case "web3_clientVersion":
		return "chaintest/1", nil
	case "eth_blockNumber":
		return quantity(view.head + n.faults.Ahead), nil
	case "eth_gasPrice":
		return view.priced(c.nextBaseFee() + view.suggestedTip()), nil
	case "eth_maxPriorityFeePerGas":
		return view.priced(view.suggestedTip()), nil
	case "eth_feeHistory":
		return view.feeHistory(args)
	case "eth_estimateGas":
		return view.estimateGas(args)
	case "eth_getCode":
		return "0x", nil
	case "eth_getBalance": // a constant, as on the real chain
		return "0x" + strings.Repeat("42", 31), nil
	case "eth_getBlockByNumber", "eth_getBlockByHash":
		b, refusal := view.blockOf(args, 0, method == "eth_getBlockByHash")
		if refusal != nil || b == nil {
			return nil, refusal
		}
		return view.renderBlock(b, args.flag(1)), nil
	case "eth_getBlockReceipts":
		return view.blockReceipts(args)
	case "eth_getTransactionReceipt":
		return view.receipt(args)
	case "eth_getTransactionByHash":
		return view.transaction(args)
	case "eth_getTransactionCount":
		return view.transactionCount(args)
	case "eth_call":
		return view.call(args)
	}
	return nil, refuse(-32601, "the method %s does not exist/is not available", method)
}

// sendRawTransaction accepts signed bytes as the node's faults allow.
func (n *Node) sendRawTransaction(args arguments) (any, *Refusal) {
	text, refusal := args.text(0)
	if refusal != nil {
		return nil, refusal
	}
	raw, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
	if err != nil || !strings.HasPrefix(text, "0x") {
		return nil, refuse(invalidParams, "invalid argument 0: not hex")
	}
	signed, err := n.chain.decode(raw)
	c := n.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	raw = c.record.intern(raw)
	forget := err == nil && n.faults.Forget > 0 && c.rand.Float64() < n.faults.Forget
	switch {
	case err != nil:
		refusal = undecodable(raw, err)
	case forget:
	case n.faults.Refuse != nil:
		if refusal = n.faults.Refuse(signed); refusal == nil {
			refusal = c.admit(signed, raw)
		}
	default:
		refusal = c.admit(signed, raw)
	}
	c.told(c.record.add(Delivery{At: c.now(), Node: n.name, Raw: raw, Hash: signed.Hash, Answer: refusal, Head: c.head().Block}))
	if refusal != nil {
		return nil, refusal
	}
	if n.faults.WrongHash > 0 && c.rand.Float64() < n.faults.WrongHash {
		return chain.Keccak(signed.Hash[:]), nil
	}
	return signed.Hash, nil
}

// arguments are a call's parameters.
type arguments struct{ params []json.RawMessage }

func (a arguments) text(i int) (string, *Refusal) {
	var s string
	if i >= len(a.params) || json.Unmarshal(a.params[i], &s) != nil {
		return "", refuse(invalidParams, "missing value for required argument %d", i)
	}
	return s, nil
}

func (a arguments) flag(i int) (set bool) {
	if i < len(a.params) {
		json.Unmarshal(a.params[i], &set) //nolint:errcheck // anything else is false
	}
	return set
}

func (a arguments) hash(i int) (chain.Hash, *Refusal) {
	s, refusal := a.text(i)
	if refusal != nil {
		return chain.Hash{}, refusal
	}
	hash, err := chain.ParseHash(s)
	if err != nil {
		return hash, refuse(invalidParams, "invalid argument %d: %v", i, err)
	}
	return hash, nil
}

func (a arguments) address(i int) (chain.Address, *Refusal) {
	s, refusal := a.text(i)
	if refusal != nil {
		return chain.Address{}, refusal
	}
	address, err := chain.ParseAddress(s)
	if err != nil {
		return address, refuse(invalidParams, "invalid argument %d: %v", i, err)
	}
	return address, nil
}
