package chaintest

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Node is an endpoint of the chain, with its own faults. It is an http.Handler that speaks
// JSON-RPC by POST and, on the same path, by WebSocket.
type Node struct {
	chain  *Chain
	name   string
	faults Faults
	calls  map[string]int
}

// Faults are a node's faults. Probabilities are from 0 (never) to 1 (always).
type Faults struct {
	Lose   float64       // probability to cut the connection before processing
	Cut    float64       // probability to cut it after accepting a broadcast, without a reply
	CutAll float64       // probability to cut it after any call
	Fail   float64       // probability to answer Status and do nothing
	Status int           // HTTP status of Fail; 503
	Delay  time.Duration // before every reply
	Down   bool          // every connection is cut at once

	Forget    float64 // probability to report a broadcast as accepted, and forget it
	WrongHash float64 // probability to accept a broadcast and answer another hash
	// Refuse, if set, may refuse transactions that the chain would accept; nil accepts.
	Refuse func(chain.Signed) *Refusal

	Lag         uint64                     // blocks its view is behind the chain
	Ahead       uint64                     // blocks it claims to be ahead, which do not exist
	StaleNonces uint64                     // its nonces are too low by this
	HighNonces  uint64                     // its nonces are too high by this
	Phantom     bool                       // it returns a receipt for every hash
	Prices      func(honest uint64) uint64 // the price that it reports
	ChainID     chain.ID                   // the chain id that it reports
	Genesis     chain.Hash                 // the genesis hash that it reports

	NoBatch         bool // it accepts no batches
	NoBlockReceipts bool // it does not know eth_getBlockReceipts
	NoBlockHashes   bool // it cannot name a state by block hash (EIP-1898)
	NoSubscriptions bool // it accepts no WebSocket connections
}

// Node makes a node without faults. The name appears in Received.
func (c *Chain) Node(name string) *Node {
	return &Node{chain: c, name: name, calls: map[string]int{}}
}

// Set changes the node's faults, from the next call on.
func (n *Node) Set(f Faults) {
	n.chain.mu.Lock()
	defer n.chain.mu.Unlock()
	n.faults = f
}

// Calls counts the calls by method; each call of a batch counts.
func (n *Node) Calls() map[string]int {
	n.chain.mu.Lock()
	defer n.chain.mu.Unlock()
	counts := make(map[string]int, len(n.calls))
	for method, count := range n.calls {
		counts[method] = count
	}
	return counts
}

const bodyMax = 8 << 20

type request struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *Refusal        `json:"error,omitempty"`
}

// null puts an absent result into a response.
var null = json.RawMessage("null")

func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	faults := n.current()
	if faults.Down || n.chain.chance(faults.Lose) {
		panic(http.ErrAbortHandler) // net/http cuts the connection
	}
	if r.Header.Get("Upgrade") != "" {
		n.serveSocket(w, r)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "JSON-RPC is spoken by POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	if err != nil {
		http.Error(w, "request too large or cut", http.StatusRequestEntityTooLarge)
		return
	}
	if n.chain.chance(faults.Fail) {
		status := faults.Status
		if status == 0 {
			status = http.StatusServiceUnavailable
		}
		http.Error(w, "<html><body>out of order</body></html>", status)
		return
	}
	reply, broadcast := n.answer(body)
	if faults.Delay > 0 {
		timer := time.NewTimer(faults.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
	}
	if n.chain.chance(faults.CutAll) || broadcast && n.chain.chance(faults.Cut) {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(reply) //nolint:errcheck // the client has gone
}

func (n *Node) current() Faults {
	n.chain.mu.Lock()
	defer n.chain.mu.Unlock()
	return n.faults
}

func (c *Chain) chance(p float64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p > 0 && c.rand.Float64() < p
}

// answer performs the calls in a body. broadcast reports whether one of them sent a
// transaction.
func (n *Node) answer(body []byte) (reply []byte, broadcast bool) {
	var batch []request
	var result any
	if err := json.Unmarshal(body, &batch); err == nil && len(batch) > 0 && !n.current().NoBatch {
		responses := make([]response, len(batch))
		for i, call := range batch {
			responses[i] = n.perform(call)
			broadcast = broadcast || call.Method == sendRaw
		}
		result = responses
	} else {
		var one request
		switch {
		case err == nil:
			result = response{Version: "2.0", ID: null, Error: refuse(-32600, "invalid request")}
		case json.Unmarshal(body, &one) != nil:
			result = response{Version: "2.0", ID: null, Error: refuse(-32700, "parse error")}
		default:
			broadcast = one.Method == sendRaw
			result = n.perform(one)
		}
	}
	reply, err := json.Marshal(result)
	if err != nil {
		panic(err) // results consist of strings and numbers
	}
	return reply, broadcast
}

func (n *Node) perform(call request) response {
	r := response{Version: "2.0", ID: call.ID}
	if r.ID == nil {
		r.ID = null
	}
	n.count(call.Method)
	r.Result, r.Error = n.dispatch(call.Method, call.Params)
	if r.Result == nil && r.Error == nil {
		r.Result = null
	}
	return r
}

func (n *Node) count(method string) {
	n.chain.mu.Lock()
	defer n.chain.mu.Unlock()
	n.calls[method]++
}
