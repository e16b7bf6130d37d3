package jsonrpc

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// transactionReceipt is the chain's. A node that does not have it, though the
// service knows that the transaction is mined, is behind: another is asked.
func (s *server) transactionReceipt(ctx context.Context, x *exchange, c call) (json.RawMessage, *failure) {
	_, result, f := s.byHash(ctx, x, c)
	return result, f
}

// transactionByHash is the chain's, or a node's pool's. A transaction that no node
// knows and the service holds is shown as nodes show pending ones: to whoever sent
// it, it must not look lost.
func (s *server) transactionByHash(ctx context.Context, x *exchange, c call) (json.RawMessage, *failure) {
	state, result, f := s.byHash(ctx, x, c)
	if f != nil || isSomething(result) || !state.Sendable() || state.Erased {
		return result, f
	}
	pending, err := s.pending(ctx, x, state)
	switch {
	case errors.Is(err, payload.ErrGone):
		return json.RawMessage(null), nil
	case err != nil:
		return nil, x.failureOf(err)
	}
	return pending, nil
}

// byHash asks a node about a transaction, and when that has nothing, the log; then
// again every node, if the log says that the transaction is mined. Another client's
// transaction is as one that the log does not have.
func (s *server) byHash(ctx context.Context, x *exchange, c call) (tx.State, json.RawMessage, *failure) {
	if f := arguments(c, 1, 1); f != nil {
		return tx.State{}, nil, f
	}
	text, ok := stringOf(c.params[0])
	hash, err := chain.ParseHash(text)
	if !ok || err != nil {
		return tx.State{}, nil, invalidParams("invalid argument 0: a hash is 0x and 64 hex digits")
	}
	result, f := s.ask(ctx, x, c, nil)
	if f == nil && isSomething(result) {
		return tx.State{}, result, nil
	}
	own, cancel := context.WithTimeout(ctx, s.Limits.CallTimeout)
	defer cancel()
	known, err := s.Submit.Transactions.Load(own, tx.Stream(x.chain, hash))
	if err != nil {
		return tx.State{}, nil, x.failureOf(err)
	}
	shows, err := x.shows(own, known.State)
	if err != nil {
		return tx.State{}, nil, x.failureOf(err)
	}
	if !shows {
		return tx.State{}, result, f
	}
	if f == nil && known.State.Status == tx.StatusExecuted {
		result, f = s.ask(ctx, x, c, isSomething)
	}
	return known.State, result, f
}

// pending shows a transaction that is held as a node shows one of its pool.
func (s *server) pending(ctx context.Context, x *exchange, state tx.State) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Limits.CallTimeout)
	defer cancel()
	raw, err := s.Submit.Vault.Bytes(ctx, payload.Ref{Chain: x.chain, Hash: state.Accepted.Hash})
	if err != nil {
		return nil, err
	}
	t, err := s.Submit.Decoders[x.chain](raw)
	if err != nil {
		return nil, err
	}
	shown, err := s.Fields(raw)
	if err != nil {
		return nil, err
	}
	addSigned(shown, t)
	return jsonOf(shown), nil
}

// addSigned adds what a decoder has read. Ethereum's types have one call, and it is
// part of the transaction; Tempo's lists calls.
func addSigned(shown map[string]any, t chain.Signed) {
	const tempo = 0x76
	for name, value := range map[string]any{
		"hash": t.Hash, "type": quantity(uint64(t.Type)), "chainId": quantity(uint64(t.Chain)), "from": t.Sender,
		"nonce": quantity(t.Nonce), "gas": quantity(t.Gas),
		"blockHash": nil, "blockNumber": nil, "transactionIndex": nil,
	} {
		shown[name] = value
	}
	for name, n := range map[string]*uint256.Int{"gasPrice": t.GasPrice, "maxFeePerGas": t.MaxFee, "maxPriorityFeePerGas": t.MaxPriorityFee} {
		if n != nil {
			shown[name] = n.Hex()
		}
	}
	if t.MaxFee != nil {
		shown["gasPrice"] = t.MaxFee.Hex() // the most it may come to, as nodes say while it is pending
	}
	if t.Type != tempo {
		shown["to"], shown["value"], shown["input"] = t.Calls[0].To, t.Calls[0].Value.Hex(), "0x"+hex.EncodeToString(t.Calls[0].Input)
		return
	}
	calls := make([]map[string]any, len(t.Calls))
	for i, c := range t.Calls {
		calls[i] = map[string]any{"to": c.To, "value": c.Value.Hex(), "input": "0x" + hex.EncodeToString(c.Input)}
	}
	shown["calls"], shown["nonceKey"], shown["feeToken"] = calls, new(uint256.Int).SetBytes(t.NonceKey[:]).Hex(), t.FeeToken
	shown["validAfter"], shown["validBefore"] = bound(t.Window.After), bound(t.Window.Before)
	if t.FeePayer != nil {
		shown["feePayer"] = t.FeePayer
	}
}

// bound is a time of the window; null where it is open.
func bound(unix uint64) any {
	if unix == 0 {
		return nil
	}
	return quantity(unix)
}

// transactionCount is the chain's, save for the tag pending: then the nonces that
// the service holds next in line for the client count too, so that a wallet may submit
// ahead.
func (s *server) transactionCount(ctx context.Context, x *exchange, c call) (json.RawMessage, *failure) {
	result, f := s.ask(ctx, x, c, nil)
	if f != nil || len(c.params) != 2 || string(c.params[1]) != `"pending"` {
		return result, f
	}
	text, ok := stringOf(c.params[0])
	sender, err := chain.ParseAddress(text)
	if !ok || err != nil {
		return nil, invalidParams("invalid argument 0: an address is 0x and 40 hex digits")
	}
	counts := x.counts(sender)
	if !counts.All && len(counts.Clients) == 0 {
		return result, nil
	}
	from, err := parseQuantity(result)
	if err != nil {
		return nil, x.proxyFailure(err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.Limits.CallTimeout)
	defer cancel()
	next, err := s.NextFree(ctx, chain.Sequence{Chain: x.chain, Sender: sender}, from, counts.Clients)
	if err != nil {
		return nil, x.failureOf(err)
	}
	return jsonOf(quantity(next)), nil
}
