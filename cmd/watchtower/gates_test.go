package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// question and answer are JSON-RPC messages at a gate.
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

// gate stands before a node as an endpoint of its own, with its own faults.
type gate struct {
	URL   string
	node  string
	serve func(g *gate, w http.ResponseWriter, r *http.Request, body []byte)
	asked atomic.Int64 // requests
	sends atomic.Int64 // requests with a broadcast
}

// newGate starts a gate that is reachable at once.
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
		_ = server.Serve(listener) // always returns an error: that it was closed
	}()
	t.Cleanup(func() {
		check(t, server.Close())
		<-done
	})
}

// refusing is a gate whose address refuses connections until open is called.
func refusing(t *testing.T, node string, serve func(g *gate, w http.ResponseWriter, r *http.Request, body []byte)) (g *gate, open func()) {
	t.Helper()
	// A bound socket that does not listen keeps its port and refuses connections.
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

// honest passes requests to the node.
func honest(g *gate, w http.ResponseWriter, r *http.Request, body []byte) {
	text := g.forward(r.Context(), body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // a caller that has gone misses it
}

// forward sends a request to the node and returns its answer.
func (g *gate) forward(ctx context.Context, body []byte) []byte {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, g.node, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(rig.DoorHeader, g.URL)
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

// slow hangs, drips, or answers after a while, in turn.
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

// mortal serves until it dies. Then it sends invalid answers of several kinds in turn, and now
// and then a valid one, with the batch in another order.
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

// balancer serves the node to which it was last pointed.
type balancer struct{ node atomic.Pointer[string] }

func (b *balancer) to(url string) { b.node.Store(&url) }

func (b *balancer) serve(_ *gate, w http.ResponseWriter, r *http.Request, body []byte) {
	honest(&gate{node: *b.node.Load()}, w, r, body)
}

// backward serves a chain whose time goes back by an hour at a block. The node itself would not
// mine such a block.
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

// turncoat serves honestly until turned is set; then it is a node of another chain.
type turncoat struct{ turned atomic.Bool }

func (c *turncoat) serve(g *gate, w http.ResponseWriter, r *http.Request, body []byte) {
	text := g.forward(r.Context(), body)
	if c.turned.Load() {
		w.Header().Set("Connection", "close") // like a load balancer that replaces a node
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
