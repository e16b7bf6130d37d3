package watchtower

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// rpcWait is how long a call may take: one may wait for a transaction for up to a minute.
const rpcWait = time.Minute

// RPCError is an error that a JSON-RPC call was answered with; docs/reference/jsonrpc.md lists
// the codes.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"` // the problem that the REST API would return, the node's own data, or a hash
}

func (e *RPCError) Error() string { return fmt.Sprintf("%d %s", e.Code, e.Message) }

// RPCCall is one call of a batch.
type RPCCall struct {
	Method string
	Params []any
}

// RPCAnswer is the answer to one call: Result, or Error.
type RPCAnswer struct {
	Result json.RawMessage `json:"result"`
	Error  *RPCError       `json:"error"`
}

// RPC calls JSON-RPC as on a node of the chain; with chainID 0, of the service's only chain. An
// error answer is an [RPCError]. Sending a transaction again finds it.
func (c *Client) RPC(ctx context.Context, chainID uint64, into any, method string, params ...any) error {
	answers, err := c.RPCBatch(ctx, chainID, RPCCall{Method: method, Params: params})
	if err != nil {
		return err
	}
	return answers[0].into(into, method)
}

// into decodes the result, or returns the error.
func (a RPCAnswer) into(into any, method string) error {
	if a.Error != nil {
		return fmt.Errorf("watchtower: %s: %w", method, a.Error)
	}
	return json.Unmarshal(a.Result, into)
}

// RPC calls JSON-RPC as a wallet does on its node: eth_sendTransaction becomes an intent. With
// chainID 0 the chain is the service's only one; pool, unless empty, chooses among its signers.
// An error answer is an [RPCError]. A call that is repeated after a lost answer is one intent.
func (r *Relay) RPC(ctx context.Context, chainID uint64, pool string, into any, method string, params ...any) error {
	path := rpcPath(chainID)
	if pool != "" {
		path += "/" + url.PathEscape(pool)
	}
	answers, err := r.caller().rpc(ctx, path, []RPCCall{{Method: method, Params: params}})
	if err != nil {
		return err
	}
	return answers[0].into(into, method)
}

func rpcPath(chainID uint64) string {
	if chainID == 0 {
		return "/rpc"
	}
	return "/rpc/" + strconv.FormatUint(chainID, 10)
}

// RPCBatch is [Client.RPC] for several calls. Answers are in the order of the calls.
func (c *Client) RPCBatch(ctx context.Context, chainID uint64, calls ...RPCCall) ([]RPCAnswer, error) {
	return c.caller().rpc(ctx, rpcPath(chainID), calls)
}

// rpc makes the calls in one request.
func (c caller) rpc(ctx context.Context, path string, calls []RPCCall) ([]RPCAnswer, error) {
	type call struct {
		Version string `json:"jsonrpc"`
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  []any  `json:"params"`
	}
	batch := make([]call, len(calls))
	for i, one := range calls {
		batch[i] = call{"2.0", i, one.Method, append([]any{}, one.Params...)}
	}
	r, err := post(path, nil, batch)
	if err != nil {
		return nil, err
	}
	r.wait = rpcWait
	var whole json.RawMessage
	if err := c.call(ctx, r, &whole); err != nil {
		return nil, err
	}
	var answers []RPCAnswer
	if whole[0] == '{' { // a batch that is refused as a whole
		var refused RPCAnswer
		if err := decode(r, whole, &refused); err != nil {
			return nil, err
		}
		if refused.Error != nil {
			return nil, fmt.Errorf("watchtower: %s: %w", path, refused.Error)
		}
	}
	if err := decode(r, whole, &answers); err != nil {
		return nil, err
	}
	if len(answers) != len(calls) {
		return nil, fmt.Errorf("watchtower: %d answers to %d calls", len(answers), len(calls))
	}
	return answers, nil
}
