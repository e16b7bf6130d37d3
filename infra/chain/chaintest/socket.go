package chaintest

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/coder/websocket"
)

// socketBacklog is how many heads a slow subscriber may lag before it misses some.
const socketBacklog = 16

// serveSocket speaks JSON-RPC over a WebSocket: every method, and subscriptions
// to new heads. It ends with the connection or the chain.
func (n *Node) serveSocket(w http.ResponseWriter, r *http.Request) {
	if !n.enter() {
		http.Error(w, "no WebSocket here", http.StatusNotImplemented)
		return
	}
	defer n.chain.sockets.Done()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // Accept has answered
	}
	defer conn.CloseNow() //nolint:errcheck // it is over
	conn.SetReadLimit(bodyMax)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	heads := make(chan *block, socketBacklog)
	var senders sync.WaitGroup
	defer senders.Wait()
	senders.Go(func() {
		n.notify(ctx, conn, heads)
		cancel()
		conn.CloseNow() //nolint:errcheck // it ends the reads below
	})
	defer cancel()
	defer n.watch(heads, false)
	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return
		}
		var call request
		if json.Unmarshal(text, &call) == nil && call.Method == "eth_subscribe" {
			n.watch(heads, true)
			text, _ = json.Marshal(response{Version: "2.0", ID: call.ID, Result: "0x1"}) //nolint:errcheck // strings
		} else {
			text, _ = n.answer(text)
		}
		if conn.Write(ctx, websocket.MessageText, text) != nil {
			return
		}
	}
}

// enter counts a new connection, unless the chain is closed.
func (n *Node) enter() bool {
	n.chain.mu.Lock()
	defer n.chain.mu.Unlock()
	if n.chain.closed || n.faults.NoSubscriptions {
		return false
	}
	n.chain.sockets.Add(1)
	return true
}

// watch registers or removes a channel for new heads.
func (n *Node) watch(heads chan *block, on bool) {
	n.chain.mu.Lock()
	defer n.chain.mu.Unlock()
	if on {
		n.chain.watchers[heads] = true
	} else {
		delete(n.chain.watchers, heads)
	}
}

// notify sends heads until the connection or the chain ends.
func (n *Node) notify(ctx context.Context, conn *websocket.Conn, heads <-chan *block) {
	for {
		var b *block
		select {
		case <-ctx.Done():
			return
		case <-n.chain.closing:
			return
		case b = <-heads:
		}
		n.chain.mu.Lock()
		header := n.view().renderHeader(b)
		n.chain.mu.Unlock()
		text, err := json.Marshal(map[string]any{
			"jsonrpc": "2.0", "method": "eth_subscription",
			"params": map[string]any{"subscription": "0x1", "result": header},
		})
		if err != nil || conn.Write(ctx, websocket.MessageText, text) != nil {
			return
		}
	}
}
