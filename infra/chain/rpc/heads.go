package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// Limits of a subscription.
const (
	subscribeTimeout = 5 * time.Second
	// silenceMax is how long a subscription may be silent before it counts as dead: a cut
	// connection without a reset looks like a chain without blocks.
	silenceMax      = 30 * time.Second
	maxNotification = 1 << 20
	retryFirst      = 250 * time.Millisecond // after a lost subscription, doubling
	retryLast       = 15 * time.Second
)

// Heads sends a signal when there may be a new head: when a subscription reports one
// (eth_subscribe newHeads, where an endpoint has a WebSocket URL), and at intervals in any
// case, because subscriptions lose blocks. Without a subscription the intervals are shorter
// than Poll when a block is expected, as learned from calls of Newest. Unread signals merge
// into one. The channel closes when ctx ends or the pool closes. Do not call it on a closed
// pool.
func (r *Reader) Heads(ctx context.Context) <-chan struct{} {
	signals := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(r.pool.ctx, cancel)
	r.pool.running.Go(func() {
		defer close(signals)
		defer cancel()
		defer stop()
		r.pool.follow(ctx, signals)
	})
	return signals
}

// follow sends signals until ctx ends.
func (p *Pool) follow(ctx context.Context, signals chan<- struct{}) {
	news := make(chan bool) // true: a new head; false: the subscription is lost
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.subscribe(ctx, news)
	}()
	defer func() { <-done }()
	noted, end := p.cadence.follow()
	defer end()
	live := false
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-noted:
			if !live {
				timer.Reset(p.cadence.left())
			}
			continue
		case live = <-news:
		case <-timer.C:
		}
		select {
		case signals <- struct{}{}:
		default: // one is pending already
		}
		if live {
			timer.Reset(p.config.PollSubscribed)
		} else {
			timer.Reset(p.cadence.wait())
		}
	}
}

// subscribe keeps a subscription at the endpoint that reads use, or at another healthy endpoint
// that offers one, until ctx ends.
func (p *Pool) subscribe(ctx context.Context, news chan<- bool) {
	retry := retryFirst
	for ctx.Err() == nil {
		e := p.subscribable()
		if e == nil {
			retry = retryLast
		} else {
			heard, err := p.listen(ctx, e, news)
			if heard {
				retry = retryFirst
			}
			if err != nil && ctx.Err() == nil {
				p.config.Log.Debug("subscription lost", "chain", p.config.Chain, "endpoint", e.name, "err", e.conceal(err))
			}
			p.tell(ctx, news, false)
		}
		timer := time.NewTimer(retry)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		retry = min(2*retry, retryLast)
	}
}

func (p *Pool) tell(ctx context.Context, news chan<- bool, live bool) {
	select {
	case news <- live:
	case <-ctx.Done():
	}
}

// subscribable is the endpoint to subscribe at; nil if none offers it.
func (p *Pool) subscribable() *endpoint {
	if e := p.reader(); e.webSocket != "" && p.state(e) != Foreign {
		return e
	}
	for _, e := range p.healthy() {
		if e.webSocket != "" {
			return e
		}
	}
	return nil
}

// listen subscribes at one endpoint and forwards its news until the connection ends or another
// endpoint is preferred. heard reports whether there was any.
func (p *Pool) listen(ctx context.Context, e *endpoint, news chan<- bool) (heard bool, err error) {
	conn, err := e.dial(ctx)
	if err != nil {
		return false, err
	}
	defer conn.CloseNow() //nolint:errcheck // it is given up
	for p.subscribable() == e {
		own, cancel := context.WithTimeout(ctx, silenceMax)
		_, text, err := conn.Read(own)
		cancel()
		if err != nil {
			return heard, err
		}
		var message struct {
			Method string `json:"method"`
			Error  *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.Unmarshal(text, &message); err != nil {
			return heard, fmt.Errorf("notification is not JSON-RPC: %w", trim(err))
		}
		if message.Error != nil {
			return heard, fmt.Errorf("the node rejects the subscription: %s", e.clean(message.Error.Message))
		}
		// The answer to eth_subscribe counts as news: the subscription is live from now on, and
		// a head may have come before.
		heard = true
		p.tell(ctx, news, true)
	}
	return heard, nil
}

// dial opens a WebSocket and subscribes to new heads.
func (e *endpoint) dial(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, subscribeTimeout)
	defer cancel()
	transport := e.http.Transport.(*http.Transport).Clone()
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(true) // WebSocket needs it
	transport.DialContext = nil        // this connection does not carry calls
	//nolint:bodyclose // the library closes it
	conn, response, err := websocket.Dial(ctx, e.webSocket, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport, CheckRedirect: e.http.CheckRedirect},
		HTTPHeader: e.header.Clone(),
	})
	if err != nil {
		if response != nil {
			return nil, fmt.Errorf("no WebSocket: HTTP %d", response.StatusCode)
		}
		return nil, errors.New("no WebSocket: no connection")
	}
	conn.SetReadLimit(maxNotification)
	request := []byte(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}`)
	if err := conn.Write(ctx, websocket.MessageText, request); err != nil {
		conn.CloseNow() //nolint:errcheck // it is given up
		return nil, err
	}
	return conn, nil
}
