package chaintest

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// quantity writes a number in JSON-RPC form.
func quantity[N ~uint64 | ~int | ~uint8](n N) string {
	return "0x" + strconv.FormatUint(uint64(n), 16)
}

// view is the chain as a node shows it, including its lies. It is used under the chain's lock.
type view struct {
	*Chain
	faults Faults
	head   uint64 // the newest block it shows
}

func (n *Node) view() view {
	head := n.chain.head().Number
	return view{n.chain, n.faults, head - min(head, n.faults.Lag)}
}

// blockOf finds the block named by a parameter: a tag, a number, a hash, or an object with one
// of them (EIP-1898). It returns nil for a block that the node does not have.
func (v view) blockOf(args arguments, i int, byHash bool) (*block, *Refusal) {
	if i >= len(args.params) {
		return v.blocks[v.head], nil
	}
	var object struct {
		Number *string     `json:"blockNumber"`
		Hash   *chain.Hash `json:"blockHash"`
	}
	var name string
	switch {
	case json.Unmarshal(args.params[i], &name) == nil:
	case json.Unmarshal(args.params[i], &object) != nil || v.faults.NoBlockHashes:
		return nil, refuse(invalidParams, "invalid argument %d: not a block", i)
	case object.Hash != nil:
		name, byHash = object.Hash.String(), true
	case object.Number != nil:
		name = *object.Number
	}
	if hash, err := chain.ParseHash(name); err == nil && (byHash || len(args.params) == 1) {
		if b := v.byHash[hash]; b != nil && b.Number <= v.head {
			return b, nil
		}
		return nil, nil
	}
	return v.numbered(name, i)
}

func (v view) numbered(name string, i int) (*block, *Refusal) {
	switch name {
	case "latest", "pending", "":
		if v.faults.Ahead > 0 {
			return v.invented(v.head + v.faults.Ahead), nil
		}
		return v.blocks[v.head], nil
	case "safe", "finalized":
		return v.blocks[min(v.final, v.head)], nil
	case "earliest":
		return v.blocks[0], nil
	}
	digits, ok := strings.CutPrefix(name, "0x")
	number, err := strconv.ParseUint(digits, 16, 64)
	if !ok || err != nil {
		return nil, refuse(invalidParams, "invalid argument %d: not a block", i)
	}
	switch {
	case number == 0 && !v.faults.Genesis.IsZero():
		genesis := *v.blocks[0]
		genesis.Hash = v.faults.Genesis
		return &genesis, nil
	case number <= v.head:
		return v.blocks[number], nil
	case number <= v.head+v.faults.Ahead:
		return v.invented(number), nil
	}
	return nil, nil
}

// invented is a block that does not exist.
func (v view) invented(number uint64) *block {
	b := &block{Block: chain.Block{Number: number, Time: v.blocks[v.head].Time + 1}, baseFee: v.blocks[v.head].baseFee}
	b.Hash = chain.Keccak(binary.BigEndian.AppendUint64([]byte("invented"), number))
	b.Parent = chain.Keccak(binary.BigEndian.AppendUint64([]byte("invented"), number-1))
	return b
}

// state finds the block whose state a call asks for; it must exist.
func (v view) state(args arguments, i int) (*block, *Refusal) {
	b, refusal := v.blockOf(args, i, false)
	if refusal == nil && b == nil {
		refusal = refuse(-32001, "block not found")
	}
	return b, refusal
}

func (v view) transactionCount(args arguments) (any, *Refusal) {
	sender, refusal := args.address(0)
	if refusal != nil {
		return nil, refusal
	}
	at, refusal := v.state(args, 1)
	if refusal != nil {
		return nil, refusal
	}
	return quantity(v.nonce(chain.Sequence{Chain: v.id, Sender: sender}, at)), nil
}

func (v view) nonce(s chain.Sequence, at *block) uint64 {
	n := v.nextAt(s, at)
	return n - min(n, v.faults.StaleNonces) + v.faults.HighNonces
}

// nonceManager answers getNonce(address,uint256). Source: tempoxyz/tempo,
// crates/precompiles/src/nonce.
const (
	nonceManager    = "0x4e4f4e4345000000000000000000000000000000"
	getNonce        = "89535803"
	protocolNonce   = "0x1bc81ca9" // ProtocolNonceNotSupported()
	getNonceBytes   = 4 + 32 + 32
	codeOfExecution = 3
)

func (v view) call(args arguments) (any, *Refusal) {
	var tx struct{ To, Data, Input string }
	if len(args.params) == 0 || json.Unmarshal(args.params[0], &tx) != nil {
		return nil, refuse(invalidParams, "missing value for required argument 0")
	}
	at, refusal := v.state(args, 1)
	if refusal != nil {
		return nil, refusal
	}
	if tx.Data == "" {
		tx.Data = tx.Input
	}
	input, err := hex.DecodeString(strings.TrimPrefix(tx.Data, "0x"))
	if err != nil {
		return nil, refuse(invalidParams, "invalid argument 0: not hex")
	}
	if refusal := v.tried(args); refusal != nil {
		return nil, refusal
	}
	if strings.EqualFold(tx.To, accountKeychain) {
		return v.grant(input)
	}
	if !strings.EqualFold(tx.To, nonceManager) || len(input) != getNonceBytes || hex.EncodeToString(input[:4]) != getNonce {
		return "0x", nil // no contract there
	}
	s := chain.Sequence{Chain: v.id, Sender: chain.Address(input[16:36]), Key: chain.NonceKey(input[36:68])}
	if s.Key.IsZero() {
		return nil, &Refusal{Code: codeOfExecution, Message: "execution reverted", Data: protocolNonce}
	}
	if s.Key.IsExpiring() {
		return fmt.Sprintf("0x%064x", 0), nil
	}
	return fmt.Sprintf("0x%064x", v.nonce(s, at)), nil
}

func (v view) receipt(args arguments) (any, *Refusal) {
	hash, refusal := args.hash(0)
	if refusal != nil {
		return nil, refusal
	}
	at, ok := v.included[hash]
	switch {
	case ok && at.block.Number <= v.head:
		return v.renderReceipt(at), nil
	case v.faults.Phantom:
		return v.renderReceipt(place{&block{
			Block: v.blocks[v.head].Block, baseFee: v.blocks[v.head].baseFee,
			txs: []executed{{Signed: chain.Signed{Hash: hash}, status: 1}},
		}, 0}), nil
	}
	return nil, nil
}

func (v view) blockReceipts(args arguments) (any, *Refusal) {
	if v.faults.NoBlockReceipts {
		return nil, refuse(-32601, "the method eth_getBlockReceipts does not exist/is not available")
	}
	b, refusal := v.blockOf(args, 0, false)
	if refusal != nil || b == nil {
		return nil, refusal
	}
	receipts := make([]any, len(b.txs))
	for i := range b.txs {
		receipts[i] = v.renderReceipt(place{b, i})
	}
	return receipts, nil
}

func (v view) transaction(args arguments) (any, *Refusal) {
	hash, refusal := args.hash(0)
	if refusal != nil {
		return nil, refusal
	}
	if at, ok := v.included[hash]; ok && at.block.Number <= v.head {
		return v.renderTransaction(at.block.txs[at.index].Signed, &at), nil
	}
	if p := v.pool.byHash[hash]; p != nil {
		return v.renderTransaction(p.signed, nil), nil
	}
	return nil, nil
}
