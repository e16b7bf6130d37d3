package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/retryafter"
)

// Limits of one exchange.
const (
	maxSmallReply = 1 << 20  // for calls that return a number or a hash
	maxBlockReply = 32 << 20 // for blocks and receipts
	maxBatch      = 100      // calls in one HTTP request
	maxLarge      = 1        // replies above maxSmallReply read at once from one endpoint; clients' calls have as many of their own
)

// client speaks JSON-RPC to one URL. It keeps connections open and follows no redirect, which
// would carry keys and signed bytes elsewhere. Its errors show nothing of the URL.
type client struct {
	name   string
	url    string
	header http.Header
	hidden *strings.Replacer
	http   *http.Client
	ids    atomic.Uint64
	large  chan struct{} // held while a large reply is read
	theirs chan struct{} // likewise for clients' calls, which may be slow
	sort   chan struct{} // held while a reply to a client's call is decoded, if it is above sortedAlone
	open   atomic.Int64  // open connections
	// connects counts connections made while none was open: the endpoint may be another node
	// since.
	connects atomic.Uint64
	// closes counts closed connections, whichever side closed them.
	closes atomic.Uint64
}

func newClient(name string, u *url.URL, header http.Header, concurrency int, transport http.RoundTripper) *client {
	c := &client{name: name, header: header, hidden: hide(u), large: make(chan struct{}, maxLarge), theirs: make(chan struct{}, maxLarge), sort: make(chan struct{}, 1)}
	c.url = u.String()
	c.http = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     transport,
	}
	if transport == nil {
		c.http.Transport = c.connections(concurrency + spareConns)
	}
	return c
}

// connections is an HTTP transport with at most conns connections, which are counted.
func (c *client) connections(conns int) *http.Transport {
	dialer := &net.Dialer{
		Timeout:         5 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           c.counted(dialer.DialContext),
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
		MaxIdleConns:          conns,
		MaxIdleConnsPerHost:   conns,
		MaxConnsPerHost:       conns,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   5 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// spareConns are connections to one endpoint beyond its Concurrency, for identity calls.
const spareConns = 2

// do sends calls in one HTTP request and returns their replies in order. The error is
// *Unreachable, or a *NodeError if the node accepted none of the calls.
func (c *client) do(ctx context.Context, limit int64, calls ...call) ([]reply, error) {
	n := uint64(len(calls))
	first := c.ids.Add(n) - n + 1
	request, err := encode(calls, first)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", calls[0].method, err)
	}
	answer, err := c.post(ctx, request, limit)
	status := answer.status
	fail := func(malformed bool, err error) error {
		return &Unreachable{c.name, status, err, malformed, answer.retryAfter}
	}
	if err != nil {
		return nil, fail(isUnfit(err), err)
	}
	leave, err := c.sorting(ctx, len(answer.body))
	if err != nil {
		return nil, fail(false, err)
	}
	replies, refused, err := decode(answer.body, first, len(calls))
	leave()
	switch {
	case status >= 500, status == http.StatusTooManyRequests, status/100 == 3:
		return nil, fail(false, fmt.Errorf("HTTP %d", status))
	case err != nil && status != http.StatusOK:
		return nil, fail(false, fmt.Errorf("HTTP %d", status))
	case err != nil:
		return nil, fail(true, err)
	case refused != nil:
		return nil, c.sign(refused, calls[0].method)
	}
	for i := range replies {
		if node := (*NodeError)(nil); errors.As(replies[i].err, &node) {
			_ = c.sign(node, calls[i].method) //nolint:gosec // in its place; there is one reply for each call
		}
	}
	return replies, nil
}

// sign adds the endpoint and the method to a node's error, and cleans its text.
func (c *client) sign(node *NodeError, method string) *NodeError {
	node.Endpoint, node.Method, node.Message = c.name, method, c.clean(node.Message)
	if node.Data != nil {
		node.Data = json.RawMessage(c.hidden.Replace(string(node.Data)))
	}
	return node
}

// answer is an HTTP answer.
type answer struct {
	status     int
	body       []byte
	retryAfter time.Duration
}

func (c *client) post(ctx context.Context, body []byte, limit int64) (a answer, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return a, errors.New("cannot make a request to this URL")
	}
	for name, values := range c.header {
		request.Header[name] = values
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return a, c.conceal(err)
	}
	defer response.Body.Close() //nolint:errcheck // what matters was read
	a.status = response.StatusCode
	if a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable {
		a.retryAfter = retryafter.Of(response.Header)
	}
	if response.ContentLength > limit {
		return a, tooLarge(limit) // its declared length is too large: none of it is read
	}
	if a.body, err = c.read(ctx, response.Body, response.ContentLength, limit); err != nil && !isUnfit(err) {
		err = fmt.Errorf("reply cut: %w", c.conceal(err))
	}
	return a, err
}

// conceal removes the URL that net/http puts into its errors.
func (c *client) conceal(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	if s := err.Error(); c.hidden.Replace(s) != s {
		return errors.New(c.hidden.Replace(s))
	}
	return err
}

// longHex matches more hex digits than a hash has: a node may quote its input. Signed bytes
// must not be recorded, because records cannot be erased.
var longHex = regexp.MustCompile(`(0x)?[0-9a-fA-F]{65,}`)

// clean makes a node's text safe to store: no secrets, no signed bytes, no control characters
// (a database may refuse NUL in text), valid UTF-8.
func (c *client) clean(s string) string {
	s = longHex.ReplaceAllString(s, "[hex]")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(c.hidden.Replace(s), "?"))
}

// hide replaces the parts of a URL that may hold keys: user, password, path and query. A node
// or a proxy may quote them.
func hide(u *url.URL) *strings.Replacer {
	const shortest = 6 // a shorter part is a word such as "rpc" or "v1"
	var pairs []string
	add := func(parts ...string) {
		for _, part := range parts {
			if len(part) >= shortest {
				pairs = append(pairs, part, "[redacted]")
			}
		}
	}
	if password, ok := u.User.Password(); ok {
		add(password)
	}
	add(u.User.Username(), u.RawQuery)
	for _, values := range u.Query() {
		add(values...)
	}
	add(strings.Split(u.Path, "/")...)
	return strings.NewReplacer(pairs...)
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// counted counts the connections that a dial function makes.
func (c *client) counted(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if c.open.Add(1) == 1 {
			c.connects.Add(1)
		}
		return &countedConn{Conn: conn, client: c}, nil
	}
}

type countedConn struct {
	net.Conn
	client *client
	closed atomic.Bool
}

func (c *countedConn) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.client.open.Add(-1)
		c.client.closes.Add(1)
	}
	return c.Conn.Close()
}
