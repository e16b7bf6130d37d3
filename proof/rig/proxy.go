package rig

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Proxy is between the service and a node. It records every payload sent, counts calls by
// method, and may cut the reply after the node has received the bytes.
type Proxy struct {
	URL string

	node   string
	server *http.Server
	done   chan struct{}

	mu    sync.Mutex
	cut   float64 // share of replies to sends
	dice  *rand.Rand
	cuts  int
	calls map[string]int
	sent  map[chain.Hash]int // by keccak of the raw bytes
	all   []Delivery
}

// Delivery is one send of a payload to the node.
type Delivery struct {
	Raw []byte
	At  time.Time
	// Door names the endpoint of the send, where several endpoints lead to the proxy: the value
	// of DoorHeader.
	Door string
}

// DoorHeader names the endpoint in a request, where several endpoints share a proxy.
const DoorHeader = "X-Door"

// NewProxy starts a proxy before the node at a URL. seed determines which replies are cut.
func NewProxy(node string, seed uint64) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens until it is closed
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		URL: "http://" + listener.Addr().String(), node: node, done: make(chan struct{}),
		dice: rand.New(rand.NewPCG(seed, seed)), calls: map[string]int{}, sent: map[chain.Hash]int{},
	}
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve)} //nolint:gosec // a test's own server on loopback
	go func() {
		defer close(p.done)
		_ = p.server.Serve(listener) // always returns an error: that it was closed
	}()
	return p, nil
}

// Close stops the proxy.
func (p *Proxy) Close() error {
	err := p.server.Close()
	<-p.done
	return err
}

// Cut makes the proxy cut this share of the replies to sends.
func (p *Proxy) Cut(share float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = share
}

// Cuts is the number of cut replies.
func (p *Proxy) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

// Calls counts the calls by method, also inside batches.
func (p *Proxy) Calls() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.calls)
}

// Sent counts the sends of each payload to the node, by the keccak of its bytes.
func (p *Proxy) Sent() map[chain.Hash]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.sent)
}

// Deliveries are all sends to the node, in order.
func (p *Proxy) Deliveries() []Delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all)
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	cut := p.note(body, r.Header.Get(DoorHeader))
	told, err := ask(r.Context(), http.MethodPost, p.node, nil, body)
	switch {
	case err != nil:
		http.Error(w, "node away", http.StatusBadGateway)
		return
	case cut:
		// The node has the bytes; the caller's connection ends without a reply.
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close()
		}
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(told.code)
	_, _ = w.Write(told.body) // a caller that has gone misses it
}

// note records a request, and reports whether its reply is to be cut.
func (p *Proxy) note(body []byte, door string) (cut bool) {
	type call struct {
		Method string
		Params []json.RawMessage
	}
	var calls []call
	if body = bytes.TrimSpace(body); len(body) > 0 && body[0] == '[' {
		_ = json.Unmarshal(body, &calls)
	} else {
		calls = make([]call, 1)
		_ = json.Unmarshal(body, &calls[0])
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range calls {
		p.calls[c.Method]++
		if c.Method != "eth_sendRawTransaction" || len(c.Params) == 0 {
			continue
		}
		digits := strings.TrimPrefix(strings.Trim(string(c.Params[0]), `"`), "0x")
		if raw, err := hex.DecodeString(digits); err == nil {
			p.sent[chain.Keccak(raw)]++
			p.all = append(p.all, Delivery{raw, time.Now(), door})
		}
		if p.dice.Float64() < p.cut {
			cut = true
		}
	}
	if cut {
		p.cuts++
	}
	return cut
}
