package rpc

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Config holds the settings of a pool. Zero durations and counts get the defaults named beside
// them.
type Config struct {
	Chain     chain.ID
	Endpoints []Endpoint
	// Genesis is the hash of the chain's block 0. If it is zero, the genesis shown by most
	// endpoints is pinned; on a tie, the genesis of the earlier endpoint in the list.
	Genesis chain.Hash
	// Confirmations is how many blocks make a block final, including the block itself. 0 trusts
	// the node's finalized tag instead.
	Confirmations uint64
	// Fanout is the number of endpoints asked per broadcast attempt. Default 2.
	Fanout int
	// SendTimeout bounds one endpoint's answer to a broadcast. Default 4 s.
	SendTimeout time.Duration
	// CallTimeout bounds one read. Default 8 s.
	CallTimeout time.Duration
	// HeadTimeout bounds one read of a head or a block. Endpoints that are usually fast get
	// less, but at least a second. Default 2.5 s.
	HeadTimeout time.Duration
	// Hedge is the minimum wait for an endpoint before another is asked as well. The wait is
	// four times the usual latency if that is longer, up to 600 ms. Default 250 ms.
	Hedge time.Duration
	// Poll is the longest interval between signals of Heads without a subscription. Default 500
	// ms.
	Poll time.Duration
	// PollSubscribed is that interval with a live subscription. Default 3 s.
	PollSubscribed time.Duration
	// Probe is how often an endpoint that reads do not use is asked for its head. Default 5 s.
	Probe time.Duration
	// MaxLag is how many blocks an endpoint may be behind the others. It may be twice as many
	// ahead of all others. Default 10.
	MaxLag uint64
	// Agree is how many endpoints must agree on a receipt, a used nonce or a final block before
	// it counts, as far as that many are or were recently healthy. Default 2; 1 trusts the
	// endpoint that reads use.
	Agree int
	// DeriveWebSocket derives a missing WebSocket URL from the endpoint's URL, with the scheme
	// ws or wss.
	DeriveWebSocket bool

	// Transport carries HTTP requests in place of our own connections. It does not carry
	// WebSocket connections. Default: HTTP over TCP.
	Transport http.RoundTripper
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Observe, if set, is called for every call. Each call of a batch is reported with the time
	// of the whole batch. Observe must not block.
	Observe func(Call)
	// Log, if set, logs changes of an endpoint's state.
	Log *slog.Logger
}

// Endpoint is one node.
type Endpoint struct {
	Name      string      // shown in logs, errors and metrics; default host:port
	URL       string      // http or https; may hold keys and is never shown
	WebSocket string      // ws or wss; optional
	Header    http.Header // sent with every request; never shown
	Budget    Budget
}

func (c Config) withDefaults() Config {
	orElse := func(d *time.Duration, other time.Duration) {
		if *d == 0 {
			*d = other
		}
	}
	orElse(&c.SendTimeout, 4*time.Second)
	orElse(&c.CallTimeout, 8*time.Second)
	orElse(&c.HeadTimeout, 2500*time.Millisecond)
	orElse(&c.Hedge, 250*time.Millisecond)
	orElse(&c.Poll, 500*time.Millisecond)
	orElse(&c.PollSubscribed, 3*time.Second)
	orElse(&c.Probe, 5*time.Second)
	if c.Fanout == 0 {
		c.Fanout = 2
	}
	if c.MaxLag == 0 {
		c.MaxLag = 10
	}
	if c.Agree == 0 {
		c.Agree = 2
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Observe == nil {
		c.Observe = func(Call) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// validate refuses invalid settings. Its errors show no URL.
func (c Config) validate() error {
	switch {
	case c.Chain == 0:
		return errors.New("no chain id")
	case c.Transport != nil && slices.ContainsFunc(c.Endpoints, func(e Endpoint) bool { return e.WebSocket != "" }):
		return errors.New("a WebSocket URL needs the pool's own connections")
	case len(c.Endpoints) == 0:
		return fmt.Errorf("chain %d has no endpoint", c.Chain)
	case c.Fanout < 0 || c.Agree < 0 || c.SendTimeout < 0 || c.CallTimeout < 0 || c.HeadTimeout < 0 || c.Hedge < 0 || c.Poll < 0 || c.PollSubscribed < 0 || c.Probe < 0:
		return errors.New("counts and durations must not be negative")
	}
	for i, e := range c.Endpoints {
		if b := e.Budget; b.Rate < 0 || b.Burst < 0 || b.Daily < 0 || b.Concurrency < 0 {
			return fmt.Errorf("endpoint %d: a budget must not be negative", i+1)
		}
	}
	return nil
}

// endpoints builds the endpoints, each with a unique name.
func (c Config) endpoints() ([]*endpoint, error) {
	taken := map[string]bool{}
	built := make([]*endpoint, len(c.Endpoints))
	for i, setting := range c.Endpoints {
		u, err := address(setting.URL, "http", "https")
		if err != nil {
			return nil, fmt.Errorf("endpoint %d: %w", i+1, err)
		}
		socket := setting.WebSocket
		if socket == "" && c.DeriveWebSocket && c.Transport == nil {
			derived := *u
			derived.Scheme = strings.Replace(u.Scheme, "http", "ws", 1)
			socket = derived.String()
		}
		if socket != "" {
			if _, err := address(socket, "ws", "wss"); err != nil {
				return nil, fmt.Errorf("endpoint %d: WebSocket: %w", i+1, err)
			}
		}
		name := setting.Name
		if name == "" {
			name = u.Host
			for n := 2; taken[name]; n++ {
				name = fmt.Sprintf("%s#%d", u.Host, n)
			}
		}
		if taken[name] {
			return nil, fmt.Errorf("endpoint %d: the name %s is taken", i+1, name)
		}
		taken[name] = true
		meter := newMeter(name, setting.Budget, c.Now())
		built[i] = &endpoint{
			client: newClient(name, u, setting.Header, meter.Concurrency, c.Transport), meter: meter, index: i, webSocket: socket,
			gate: make(chan struct{}, 1),
		}
	}
	return built, nil
}

func address(s string, schemes ...string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return nil, errors.New("not a URL with a host")
	}
	for _, scheme := range schemes {
		if u.Scheme == scheme {
			return u, nil
		}
	}
	return nil, fmt.Errorf("scheme must be %s", strings.Join(schemes, " or "))
}
