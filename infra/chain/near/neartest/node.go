package neartest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Faults are what is wrong with a node. Rates are between 0 and 1.
type Faults struct {
	Down       bool    // connections are cut before the node has read anything
	CutCalls   float64 // rate of calls that are cut before the node acts
	CutReplies float64 // rate of calls that are cut after the node has acted
	Status     int     // every call is answered with this HTTP status and Body
	Body       string
	Lag        int                                                  // blocks that the node is behind
	Untracked  bool                                                 // the node tracks no shard
	Lost       float64                                              // rate of forwarded transactions that reach no pool
	NoChanges  bool                                                 // changes are empty, though keys changed
	Forgets    bool                                                 // the node knows no outcome
	Chain      string                                               // the name of another chain that the node says it serves
	Missing    map[string]bool                                      // methods that the node does not have
	Methods    map[string]func(params json.RawMessage) (any, error) // answers in place of the node's own
}

// Node is one endpoint of a chain. It serves JSON-RPC over HTTP.
type Node struct {
	Name  string
	chain *Chain

	mu     sync.Mutex
	faults Faults
	calls  map[string]int
}

// Node makes an endpoint without faults.
func (c *Chain) Node(name string) *Node { return &Node{Name: name, chain: c, calls: map[string]int{}} }

// Set replaces the node's faults.
func (n *Node) Set(f Faults) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = f
}

// Calls returns how often each method was called.
func (n *Node) Calls() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	calls := map[string]int{}
	for method, times := range n.calls {
		calls[method] = times
	}
	return calls
}

func (n *Node) current() Faults {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.faults
}

// maxBody is the largest request (nearcore chain/jsonrpc/src/lib.rs, RpcLimitsConfig).
const maxBody = 10 << 20

// nodeError is an error of a node's answer.
type nodeError struct {
	kind   string // REQUEST_VALIDATION_ERROR, HANDLER_ERROR or INTERNAL_ERROR
	cause  string
	info   any
	data   any
	status int // of HTTP
}

func (e *nodeError) Error() string { return e.kind + " " + e.cause }

func handlerError(cause string, info any) *nodeError {
	return &nodeError{kind: "HANDLER_ERROR", cause: cause, info: info, data: info, status: http.StatusOK}
}

func parseError(format string, values ...any) *nodeError {
	text := fmt.Sprintf(format, values...)
	return &nodeError{kind: "REQUEST_VALIDATION_ERROR", cause: "PARSE_ERROR", info: members{"error_message": text}, data: text, status: http.StatusBadRequest}
}

func (e *nodeError) json() any {
	code, message := -32000, "Server error"
	switch e.cause {
	case "PARSE_ERROR":
		code, message = -32700, "Parse error"
	case "METHOD_NOT_FOUND":
		code, message = -32601, "Method not found"
	}
	return members{
		"name": e.kind, "cause": members{"name": e.cause, "info": e.info}, "code": code, "message": message, "data": e.data,
	}
}

// ServeHTTP answers one call. A batch is an error of parsing: NEAR has none.
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := n.current()
	switch {
	case f.Down || n.chain.chance(f.CutCalls):
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Body)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "payload too large", http.StatusRequestEntityTooLarge)
		return
	}
	switch {
	case r.URL.Path == "/health":
		return
	case r.URL.Path == "/status":
		body = []byte(`{"jsonrpc":"2.0","id":"dontcare","method":"status","params":[]}`)
	}
	var request struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	answer := members{"jsonrpc": "2.0", "id": nil}
	status := http.StatusOK
	if err := json.Unmarshal(body, &request); err != nil || request.Method == "" {
		problem := parseError("the request is no JSON-RPC call")
		answer["error"], status = problem.json(), problem.status
	} else {
		answer["id"] = request.ID
		result, err := n.answer(r.Context(), f, request.Method, request.Params)
		var problem *nodeError
		switch {
		case errors.As(err, &problem):
			answer["error"], status = problem.json(), problem.status
		case err != nil:
			panic(http.ErrAbortHandler)
		default:
			answer["result"] = result
		}
	}
	if n.chain.chance(f.CutReplies) {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// chance draws whether something with this rate happens.
func (c *Chain) chance(rate float64) bool {
	if rate == 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.Float64() < rate
}

// answer answers one call.
func (n *Node) answer(ctx context.Context, f Faults, method string, params json.RawMessage) (any, error) {
	n.mu.Lock()
	n.calls[method]++
	n.mu.Unlock()
	if own := f.Methods[method]; own != nil {
		return own(params)
	}
	serve := serves(method)
	if serve == nil || f.Missing[method] {
		return nil, &nodeError{
			kind: "REQUEST_VALIDATION_ERROR", cause: "METHOD_NOT_FOUND", info: members{"method_name": method}, data: method, status: http.StatusBadRequest,
		}
	}
	return serve(&request{node: n, faults: f, ctx: ctx, method: method, params: bytes.TrimSpace(params)})
}

// request is one call at a node.
type request struct {
	node   *Node
	faults Faults
	ctx    context.Context
	method string
	params json.RawMessage
}

// serves returns what answers a method; nil if nodes do not have it.
func serves(method string) func(*request) (any, error) {
	switch method {
	case "send_tx", "broadcast_tx_commit":
		return (*request).send
	case "broadcast_tx_async":
		return (*request).sendAsync
	case "tx", "EXPERIMENTAL_tx_status":
		return (*request).tx
	case "query":
		return (*request).query
	case "EXPERIMENTAL_view_access_key":
		return (*request).accessKey
	case "block":
		return (*request).block
	case "chunk":
		return (*request).chunk
	case "gas_price":
		return (*request).gasPrice
	case "status":
		return (*request).status
	case "genesis_config", "EXPERIMENTAL_protocol_config":
		return (*request).config
	case "changes", "EXPERIMENTAL_changes":
		return (*request).changes
	case "block_effects", "EXPERIMENTAL_changes_in_block":
		return (*request).effects
	}
	return nil
}

// read reads parameters given as an object.
func (r *request) read(into any) error {
	if err := json.Unmarshal(r.params, into); err != nil {
		return parseError("Failed parsing args: %v", err)
	}
	return nil
}

// list reads parameters given as an array; false if they are an object.
func (r *request) list() (list []json.RawMessage, is bool) {
	err := json.Unmarshal(r.params, &list)
	return list, err == nil
}

// tip is the newest block that the node shows.
func (r *request) tip() *block {
	b := r.node.chain.head
	for range r.faults.Lag {
		if b.parent != nil {
			b = b.parent
		}
	}
	return b
}

// await waits for the next block; false when the wait is over.
func (r *request) await(moved <-chan struct{}, over <-chan time.Time) bool {
	select {
	case <-moved:
		return true
	case <-over:
	case <-r.ctx.Done():
	}
	return false
}
