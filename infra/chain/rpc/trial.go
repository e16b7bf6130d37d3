package rpc

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// batchType is Tempo's transaction type, which has calls and a nonce key.
const batchType = 0x76

// EstimateGas returns the least gas with which a transaction succeeds, as nodes estimate it on
// the newest state, with this sender and no gas price. The error is *chain.Reverted if the
// transaction would fail with any gas. Any other error says nothing about the transaction.
//
// If others are healthy, one endpoint's estimate is not enough: with too little gas a paid
// transaction fails, and a transaction that is estimated to fail is not sent. Estimates do not
// count for an endpoint's health: the client chooses the call, and could take endpoints out of
// rotation with slow or ambiguous calls. Clients take turns; client is empty if all are one.
func (r *Reader) EstimateGas(ctx context.Context, client string, sender chain.Address, tx chain.Unsigned) (uint64, error) {
	tx.Gas = 0
	return r.try(ctx, client, "eth_estimateGas", sender, tx)
}

// Simulate tries a transaction on the newest state, with its own gas, or the node's limit. nil
// means that it would succeed; errors are like EstimateGas's.
func (r *Reader) Simulate(ctx context.Context, client string, sender chain.Address, tx chain.Unsigned) error {
	_, err := r.try(ctx, client, "eth_call", sender, tx)
	return err
}

// trialsMax bounds the trials of one client under way at the nodes of a chain, in all lanes together.
const trialsMax = 8

// trials holds the clients with trials under way or waiting. The zero value is ready.
type trials struct {
	mu      sync.Mutex
	clients map[string]*triedClient
}

type triedClient struct {
	places chan struct{} // one is held for each trial under way
	users  int           // trials under way and waiting; without any the entry is removed
}

// enter waits until the client has fewer than trialsMax trials under way, or ctx ends.
func (t *trials) enter(ctx context.Context, client string) (leave func(), err error) {
	c := t.of(client)
	select {
	case c.places <- struct{}{}:
		return func() { <-c.places; t.left(client) }, nil
	case <-ctx.Done():
		t.left(client)
		return nil, ctx.Err()
	}
}

func (t *trials) of(client string) *triedClient {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.clients == nil {
		t.clients = map[string]*triedClient{}
	}
	c := t.clients[client]
	if c == nil {
		c = &triedClient{places: make(chan struct{}, trialsMax)}
		t.clients[client] = c
	}
	c.users++
	return c
}

func (t *trials) left(client string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.clients[client]
	if c.users--; c.users == 0 {
		delete(t.clients, client)
	}
}

// trial is one endpoint's result for a transaction.
type trial struct {
	gas      uint64 // from eth_estimateGas
	reverted *chain.Reverted
}

// estimatesDiffer is the divisor of the difference allowed between two estimates of one
// transaction: nodes search for them up to an error of their own. Source: go-ethereum,
// eth/gasestimator, Options.ErrorRatio, and reth's ESTIMATE_GAS_ERROR_RATIO, both 1.5 %.
const estimatesDiffer = 10

func (t trial) agrees(other trial) bool {
	if (t.reverted == nil) != (other.reverted == nil) {
		return false
	}
	low, high := min(t.gas, other.gas), max(t.gas, other.gas)
	return high-low <= low/estimatesDiffer
}

func (r *Reader) try(ctx context.Context, client, method string, sender chain.Address, tx chain.Unsigned) (uint64, error) {
	leave, err := r.pool.trials.enter(ctx, client)
	if err != nil {
		return 0, err
	}
	defer leave()
	at, err := r.readerFor(client, trying).Head(ctx)
	if err != nil {
		return 0, err
	}
	ctx = context.WithValue(ofClient(ctx, client), behalfKey{}, trying)
	first, by, err := hedgedBy(ctx, r.pool, func(ctx context.Context, e *endpoint) (trial, error) {
		return r.trialAt(ctx, e, at, method, sender, tx)
	})
	if err != nil {
		return 0, err
	}
	err = r.confirmTrial(ctx, by, at, method, sender, tx, first)
	var lost *outvoted
	if other := r.pool.best(by); errors.As(err, &lost) && other != nil {
		// Trials do not move to another endpoint: the next one would fail too.
		if first, err = r.trialAt(ctx, other, at, method, sender, tx); err == nil {
			err = r.confirmTrial(ctx, other, at, method, sender, tx, first)
		}
	}
	if err != nil {
		return 0, err
	}
	if first.reverted != nil {
		return 0, first.reverted
	}
	return first.gas, nil
}

// confirmTrial asks other endpoints to confirm an endpoint's result.
func (r *Reader) confirmTrial(ctx context.Context, by *endpoint, at chain.Block, method string, sender chain.Address, tx chain.Unsigned, first trial) error {
	same := func(ctx context.Context, other *endpoint) say {
		second, err := r.trialAt(ctx, other, at, method, sender, tx)
		switch {
		case err != nil:
			return r.sayOf(ctx, other, at, err)
		case second.agrees(first):
			return saysYes
		}
		return saysNo
	}
	return r.pool.borneOut(ctx, by, claim{about: ofTrials, what: fmt.Sprintf("%s at block %s", method, at.Hash), check: same})
}

func (r *Reader) trialAt(ctx context.Context, e *endpoint, at chain.Block, method string, sender chain.Address, tx chain.Unsigned) (trial, error) {
	replies, err := r.stateAt(ctx, e, trying, at, 1, func(_ int, state any) call {
		return call{method, []any{callObject(sender, tx), state}}
	})
	if err != nil {
		return trial{}, err
	}
	if reverted := revertedBy(replies[0].err, at); reverted != nil {
		return trial{reverted: reverted}, nil
	}
	if method == "eth_call" {
		return trial{}, replies[0].err
	}
	var gas *quantity
	if err = replies[0].into(&gas); err == nil && (gas == nil || *gas == 0) {
		err = contradiction("no gas")
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", method, err)
		if _, answered := nodeCode(err); !answered {
			err = &Unreachable{Endpoint: e.name, Err: err}
		}
		return trial{}, err
	}
	return trial{gas: uint64(*gas)}, nil
}

// callObject is a transaction as eth_call and eth_estimateGas take it. It has no fees, so that
// the sender's balance must cover only the transferred value. A single call has Ethereum's
// form, which the development node understands too; it ignores several calls. Source:
// tempoxyz/tempo, crates/alloy/src/rpc: a request's own to, value and data are the last of its
// calls.
func callObject(sender chain.Address, tx chain.Unsigned) map[string]any {
	object := map[string]any{"from": sender}
	if tx.Gas > 0 {
		object["gas"] = quantity(tx.Gas)
	}
	if tx.Type == batchType {
		object["nonceKey"] = new(uint256.Int).SetBytes(tx.NonceKey[:]).Hex()
	}
	if len(tx.Calls) == 1 {
		maps.Copy(object, callFields(tx.Calls[0]))
		return object
	}
	calls := make([]map[string]any, len(tx.Calls))
	for i, c := range tx.Calls {
		calls[i] = callFields(c)
	}
	object["calls"] = calls
	return object
}

func callFields(c chain.Call) map[string]any {
	fields := map[string]any{"data": "0x" + hex.EncodeToString(c.Input), "value": "0x0"}
	if c.To != nil {
		fields["to"] = c.To
	}
	if c.Value != nil {
		fields["value"] = c.Value.Hex()
	}
	return fields
}

// codeReverted is the error code of a reverted execution, with the reason as data. Source:
// go-ethereum, internal/ethapi, revertError.ErrorCode.
const codeReverted = 3

// failures are prefixes of nodes' messages for failed executions without code 3. Source:
// go-ethereum, core/vm/errors.go and eth/gasestimator; reth, RpcInvalidTransactionError and the
// halts of revm.
var failures = []string{
	"execution reverted", "gas required exceeds allowance", "out of gas", "invalid opcode", "invalid jump destination",
	"stack underflow", "stack limit reached", "max code size exceeded", "contract address collision",
	"write protection", "return data out of bounds", "evm error",
}

// reasonBytes bounds the stored revert reason, which comes from an unknown contract.
const reasonBytes = 4 << 10

// revertedBy converts a node's error to a failed execution; nil if the error is about anything
// else, such as a balance, which may change a moment later.
func revertedBy(err error, at chain.Block) *chain.Reverted {
	var node *NodeError
	if !errors.As(err, &node) || !node.isFailure() {
		return nil
	}
	reverted := &chain.Reverted{Block: at, Detail: node.Message}
	var text string
	if json.Unmarshal(node.Data, &text) == nil {
		if data, err := hex.DecodeString(strings.TrimPrefix(text, "0x")); err == nil {
			reverted.Data = data[:min(len(data), reasonBytes)]
		}
	}
	return reverted
}
