package main_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// question and answer are JSON-RPC as a gate sees it.
type question struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

type answer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// gate stands before a node as an endpoint of its own, and does as it likes.
type gate struct {
	URL   string
	node  string
	serve func(g *gate, w http.ResponseWriter, r *http.Request, body []byte)
	asked atomic.Int64 // requests
	sends atomic.Int64 // requests that held a broadcast
}

// newGate starts a gate that is reached at once.
func newGate(t *testing.T, node string, serve func(g *gate, w http.ResponseWriter, r *http.Request, body []byte)) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	g := &gate{URL: "http://" + listener.Addr().String(), node: node, serve: serve}
	g.open(t, listener)
	return g
}

func (g *gate) open(t *testing.T, listener net.Listener) {
	server := &http.Server{Handler: g} //nolint:gosec // a test's own server on loopback
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // always an error: that it was closed
	}()
	t.Cleanup(func() {
		check(t, server.Close())
		<-done
	})
}

// refusing is a gate at an address where connections are refused until it is opened.
func refusing(t *testing.T, node string, serve func(g *gate, w http.ResponseWriter, r *http.Request, body []byte)) (g *gate, open func()) {
	t.Helper()
	// A socket that is bound and does not listen keeps its port and refuses.
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	check(t, err)
	file := os.NewFile(uintptr(socket), "port")
	t.Cleanup(func() { check(t, file.Close()) })
	check(t, syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := syscall.Getsockname(socket)
	check(t, err)
	g = &gate{URL: fmt.Sprintf("http://127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port), node: node, serve: serve}
	return g, func() {
		check(t, syscall.Listen(socket, 128))
		listener, err := net.FileListener(file)
		check(t, err)
		g.open(t, listener)
	}
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost {
		panic(http.ErrAbortHandler)
	}
	g.asked.Add(1)
	if bytes.Contains(body, []byte("eth_sendRawTransaction")) {
		g.sends.Add(1)
	}
	g.serve(g, w, r, body)
}

// honest asks the node.
func honest(g *gate, w http.ResponseWriter, r *http.Request, body []byte) {
	text := g.forward(r.Context(), body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // a caller that has gone misses it
}

// forward asks the node and returns what it says.
func (g *gate) forward(ctx context.Context, body []byte) []byte {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, g.node, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(response.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return text
}

// slow hangs, drips, or answers after a while, in turns.
func slow(g *gate, w http.ResponseWriter, r *http.Request, body []byte) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for turn, ticks := g.asked.Load()%3, 0; ; ticks++ {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		switch {
		case turn == 0: // it hangs
		case turn == 1:
			_, _ = w.Write([]byte(" "))
			_ = http.NewResponseController(w).Flush()
		case ticks == 14:
			honest(g, w, r, body)
			return
		}
	}
}

// mortal serves until it dies. Then it answers with whatever is no answer, in turns;
// once in a while there is one, with a batch in another order.
type mortal struct{ dead atomic.Bool }

func (m *mortal) serve(g *gate, w http.ResponseWriter, r *http.Request, body []byte) {
	if !m.dead.Load() {
		honest(g, w, r, body)
		return
	}
	switch g.asked.Load() % 9 {
	case 0:
		w.WriteHeader(http.StatusTooManyRequests)
	case 1:
		http.Error(w, "<html>502 Bad Gateway</html>", http.StatusBadGateway)
	case 2:
		fmt.Fprint(w, "<html>welcome</html>")
	case 3:
		text := g.forward(r.Context(), body)
		_, _ = w.Write(text[:len(text)/2])
	case 4:
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":987654321,"result":"0x1"}`)
	case 5:
		reordered(g, w, r, body)
	case 6: // 100 MiB
		junk := bytes.Repeat([]byte("[1,2,3],"), 1<<17)
		for range 100 {
			if _, err := w.Write(junk); err != nil {
				return
			}
		}
	case 7: // the request is lost
		panic(http.ErrAbortHandler)
	case 8: // the reply is lost
		g.forward(r.Context(), body)
		panic(http.ErrAbortHandler)
	}
}

func reordered(g *gate, w http.ResponseWriter, r *http.Request, body []byte) {
	text := g.forward(r.Context(), body)
	var batch []json.RawMessage
	if json.Unmarshal(text, &batch) == nil {
		slices.Reverse(batch)
		text, _ = json.Marshal(batch)
	}
	_, _ = w.Write(text)
}

// liar is a gate whose answers are well formed and untrue.
type liar struct {
	mu       sync.Mutex
	kept     []chain.Hash            // broadcasts it said it took
	inserted map[chain.Hash]inserted // of those, by the block it says holds them
	turns    int
}

type inserted struct {
	number string // of the block, as it stands in JSON
	hashes []chain.Hash
}

func (l *liar) serve(g *gate, w http.ResponseWriter, r *http.Request, body []byte) {
	var batch []question
	single := json.Unmarshal(body, &batch) != nil
	if single {
		batch = make([]question, 1)
		if json.Unmarshal(body, &batch[0]) != nil {
			panic(http.ErrAbortHandler)
		}
	}
	answers := make([]answer, len(batch))
	for i, q := range batch {
		answers[i] = l.answer(r.Context(), g, q)
	}
	if single {
		_ = json.NewEncoder(w).Encode(answers[0])
		return
	}
	_ = json.NewEncoder(w).Encode(answers)
}

func (l *liar) answer(ctx context.Context, g *gate, q question) answer {
	l.mu.Lock()
	l.turns++
	turn := l.turns
	l.mu.Unlock()
	says := func(format string, args ...any) answer {
		return answer{Version: "2.0", ID: q.ID, Result: fmt.Appendf(nil, format, args...)}
	}
	switch q.Method {
	case "eth_sendRawTransaction": // half of them it forgets, half it calls by another name
		digits := strings.TrimPrefix(strings.Trim(string(q.Params[0]), `"`), "0x")
		raw, err := hex.DecodeString(digits)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		hash := chain.Keccak(raw)
		l.mu.Lock()
		l.kept = append(l.kept, hash)
		l.mu.Unlock()
		if turn%2 == 0 {
			return says(`"%s"`, chain.Keccak(hash[:]))
		}
		return says(`"%s"`, hash)
	case "eth_getTransactionCount":
		return says(`"0x8000000000000000"`)
	case "eth_call":
		return says(`"0x%064x"`, uint64(1)<<63)
	case "eth_blockNumber":
		if turn%3 == 0 {
			return says(`"0x10000000000"`)
		}
	}
	if string(q.Params0()) == `"latest"` && turn%5 == 0 {
		q.Params[0] = json.RawMessage(`"0x1"`) // a stale head
	}
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": q.ID, "method": q.Method, "params": q.Params})
	if err != nil {
		panic(err)
	}
	var truth answer
	if json.Unmarshal(g.forward(ctx, text), &truth) != nil {
		panic(http.ErrAbortHandler)
	}
	truth.Result = l.embroider(q, truth.Result, turn)
	return truth
}

// Params0 is the first parameter.
func (q question) Params0() json.RawMessage {
	if len(q.Params) == 0 {
		return nil
	}
	return q.Params[0]
}

// embroider adds what it forgot to blocks, and receipts of it; now and then it adds
// a head that does not exist.
func (l *liar) embroider(q question, result json.RawMessage, turn int) json.RawMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch q.Method {
	case "eth_getBlockByNumber", "eth_getBlockByHash":
		return l.block(result, string(q.Params0()) == `"latest"` && turn%7 == 0)
	case "eth_getBlockReceipts":
		var receipts []json.RawMessage
		var of chain.Hash
		if json.Unmarshal(q.Params0(), &of) != nil || json.Unmarshal(result, &receipts) != nil {
			return result
		}
		for _, hash := range l.inserted[of].hashes {
			receipts = append(receipts, fakeReceipt(hash, of, l.inserted[of].number))
		}
		return must(json.Marshal(receipts))
	case "eth_getTransactionReceipt":
		var hash chain.Hash
		if json.Unmarshal(q.Params0(), &hash) != nil || string(result) != "null" {
			return result
		}
		for of, in := range l.inserted {
			if slices.Contains(in.hashes, hash) {
				return fakeReceipt(hash, of, in.number)
			}
		}
	}
	return result
}

func (l *liar) block(result json.RawMessage, future bool) json.RawMessage {
	var block map[string]json.RawMessage
	var hash chain.Hash
	if json.Unmarshal(result, &block) != nil || block == nil || json.Unmarshal(block["hash"], &hash) != nil || string(block["number"]) == `"0x0"` {
		return result
	}
	if future {
		block["number"], block["hash"] = json.RawMessage(`"0x100000"`), json.RawMessage(`"`+chain.Keccak(hash[:]).String()+`"`)
		return must(json.Marshal(block))
	}
	if _, ok := l.inserted[hash]; !ok {
		n := min(len(l.kept), 3)
		l.inserted[hash] = inserted{string(block["number"]), slices.Clone(l.kept[:n])}
		l.kept = l.kept[n:]
	}
	var hashes []chain.Hash
	if json.Unmarshal(block["transactions"], &hashes) != nil {
		return result
	}
	block["transactions"] = must(json.Marshal(append(hashes, l.inserted[hash].hashes...)))
	return must(json.Marshal(block))
}

func fakeReceipt(hash, block chain.Hash, number string) json.RawMessage {
	return fmt.Appendf(nil, `{"transactionHash":"%s","blockHash":"%s","blockNumber":%s,"transactionIndex":"0x0","status":"0x1","gasUsed":"0x5208"}`,
		hash, block, number)
}

// balancer serves whichever node it was last pointed to.
type balancer struct{ node atomic.Pointer[string] }

func (b *balancer) to(url string) { b.node.Store(&url) }

func (b *balancer) serve(_ *gate, w http.ResponseWriter, r *http.Request, body []byte) {
	honest(&gate{node: *b.node.Load()}, w, r, body)
}

// backward serves a chain whose time goes back by an hour at a block. The node itself
// would not mine such a one.
type backward struct{ from atomic.Uint64 }

func (c *backward) serve(g *gate, w http.ResponseWriter, r *http.Request, body []byte) {
	text := g.forward(r.Context(), body)
	var answers []answer
	if json.Unmarshal(text, &answers) == nil {
		for i := range answers {
			answers[i].Result = c.block(answers[i].Result)
		}
		text = must(json.Marshal(answers))
	}
	var one answer
	if json.Unmarshal(text, &one) == nil {
		one.Result = c.block(one.Result)
		text = must(json.Marshal(one))
	}
	_, _ = w.Write(text)
}

func (c *backward) block(result json.RawMessage) json.RawMessage {
	var block map[string]json.RawMessage
	var number, at uint64
	if json.Unmarshal(result, &block) != nil || block["timestamp"] == nil {
		return result
	}
	_, err := fmt.Sscanf(string(block["number"])+string(block["timestamp"]), `"0x%x""0x%x"`, &number, &at)
	if from := c.from.Load(); err != nil || from == 0 || number < from {
		return result
	}
	block["timestamp"] = fmt.Appendf(nil, `"0x%x"`, at-3600)
	return must(json.Marshal(block))
}

// turncoat serves honestly until it is turned; then it is a node of another chain.
type turncoat struct{ turned atomic.Bool }

func (c *turncoat) serve(g *gate, w http.ResponseWriter, r *http.Request, body []byte) {
	text := g.forward(r.Context(), body)
	if c.turned.Load() {
		w.Header().Set("Connection", "close") // as a balancer does that replaces a node
		text = bytes.ReplaceAll(text, []byte(`"result":"0xa5bf"`), []byte(`"result":"0x1"`))
	}
	_, _ = w.Write(text)
}

func must(text []byte, err error) json.RawMessage {
	if err != nil {
		panic(err)
	}
	return text
}
