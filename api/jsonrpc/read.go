package jsonrpc

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
)

// transactionReceipt returns a node's receipt. If the service knows that the transaction is
// mined, a node without the receipt is behind, and another node is asked.
func (s *server) transactionReceipt(ctx context.Context, x *exchange, c call) (json.RawMessage, *failure) {
	_, result, f := s.byHash(ctx, x, c)
	return result, f
}

// transactionByHash returns a node's answer. If no node knows the transaction but the service
// holds it, it is shown like a pending one, so that it does not look lost to its sender.
func (s *server) transactionByHash(ctx context.Context, x *exchange, c call) (json.RawMessage, *failure) {
	result, f := s.shown(ctx, x, c)
	if f == nil && isSomething(result) && s.Show != nil {
		result = s.Show(result)
	}
	return result, f
}

func (s *server) shown(ctx context.Context, x *exchange, c call) (json.RawMessage, *failure) {
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

// byHash asks a node about a transaction. If no block contains it, it may have been replaced: see
// [Config.SentAs]. If the node has nothing, byHash reads the log; if the log says that the transaction is mined, it asks all nodes. Another client's transaction is
// treated as unknown.
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
	mined := f == nil && isMined(result)
	if mined || f == nil && isSomething(result) && s.SentAs == nil {
		return tx.State{}, result, nil
	}
	absent := x.search()
	own, cancel := context.WithTimeout(ctx, s.Limits.CallTimeout)
	defer cancel()
	if s.SentAs != nil {
		switch sent, ok, err := s.SentAs(own, x.request, x.chain, hash); {
		case err != nil:
			return tx.State{}, nil, x.failureOf(err)
		case ok && sent != hash:
			result, f = s.ask(ctx, x, call{method: c.method, params: []json.RawMessage{jsonOf(sent)}}, isSomething)
			return tx.State{}, result, f
		case f == nil && isSomething(result):
			absent(ctx)
			return tx.State{}, result, nil
		}
	}
	known, err := s.Submit.Transactions.Load(own, tx.Stream(x.chain, hash))
	if err != nil {
		return tx.State{}, nil, x.failureOf(err)
	}
	shows, err := x.shows(own, known.State)
	if err != nil {
		return tx.State{}, nil, x.failureOf(err)
	}
	if !shows {
		absent(ctx)
		return tx.State{}, result, f
	}
	if f == nil && known.State.Status == tx.StatusExecuted {
		result, f = s.ask(ctx, x, c, isSomething)
	}
	return known.State, result, f
}

// isMined reports whether a node's answer about a transaction names a block. A node may still show a
// transaction as pending whose nonce another one has taken.
func isMined(result json.RawMessage) bool {
	var answer *struct{ BlockHash *string }
	return json.Unmarshal(result, &answer) == nil && answer != nil && answer.BlockHash != nil
}

// pending shows a transaction that the service holds as a node shows a pending one.
func (s *server) pending(ctx context.Context, x *exchange, state tx.State) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Limits.CallTimeout)
	defer cancel()
	read := func(ctx context.Context) ([]byte, error) {
		return s.Submit.Vault.Bytes(ctx, payload.Ref{Chain: x.chain, Hash: state.Accepted.Hash})
	}
	return x.decode(ctx, read, func(raw []byte) ([]byte, error) {
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
	})
}

// addSigned adds the decoded fields. Ethereum's types have one call, whose fields belong to the
// transaction; Tempo's type has a list of calls.
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
		shown["gasPrice"] = t.MaxFee.Hex() // the highest possible price, as nodes report for pending transactions
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

// bound formats a time of the validity window; null if that side is open.
func bound(unix uint64) any {
	if unix == 0 {
		return nil
	}
	return quantity(unix)
}

// transactionCount returns the chain's count. For the tag pending it adds the client's
// consecutive transactions that the service holds, so that a wallet can submit ahead.
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
	next, err := x.nextFree(ctx, from, func(ctx context.Context, place rest.Place) (uint64, error) {
		return s.NextFree(ctx, chain.Sequence{Chain: x.chain, Sender: sender}, from, counts.Clients, place)
	})
	if err != nil {
		return nil, x.failureOf(err)
	}
	return jsonOf(quantity(next)), nil
}
