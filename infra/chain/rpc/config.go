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

// Config is what a pool is made from. Zero durations and counts get the defaults
// named beside them.
type Config struct {
	Chain     chain.ID
	Endpoints []Endpoint
	// Genesis pins the chain's block 0. When it is zero, the genesis that most
	// endpoints show first is pinned, the earlier in the list when they tie.
	Genesis chain.Hash
	// Confirmations is how many blocks, the including one counted, make a block
	// final. 0 trusts the node's finalized tag instead.
	Confirmations uint64
	// Fanout is how many endpoints one broadcast attempt asks. Default 2.
	Fanout int
	// SendTimeout bounds one endpoint's answer to a broadcast. Default 4 s.
	SendTimeout time.Duration
	// CallTimeout bounds one read. Default 8 s.
	CallTimeout time.Duration
	// HeadTimeout bounds one read of a head or a block. Endpoints that are usually
	// quick get less, but at least a second. Default 2.5 s.
	HeadTimeout time.Duration
	// Hedge is how long at least an endpoint is waited for before another is asked as
	// well: four times its usual latency, if that is longer, up to 600 ms.
	// Default 250 ms.
	Hedge time.Duration
	// Poll is how often at least Heads signals without a subscription. Default 500 ms.
	Poll time.Duration
	// PollSubscribed is how often it signals beneath a live one. Default 3 s.
	PollSubscribed time.Duration
	// Probe is how often an endpoint that is not read from is asked for its
	// head. Default 5 s.
	Probe time.Duration
	// MaxLag is how many blocks behind the others an endpoint may be, and half of how
	// many it may be ahead of all others. Default 10.
	MaxLag uint64
	// Agree is how many endpoints, as far as so many are healthy or were a moment ago,
	// have to say the same of a receipt, a used nonce or a final block before it counts.
	// Default 2; 1 trusts whichever is read from.
	Agree int
	// DeriveWebSocket makes endpoints without a WebSocket URL use their own with
	// the scheme ws or wss.
	DeriveWebSocket bool

	// Transport carries requests, in place of connections of our own. WebSocket URLs
	// are not for it. Default: HTTP over TCP.
	Transport http.RoundTripper
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Observe, when set, is told of every call: methods in a batch one by one,
	// each with the time of the whole. It must not block.
	Observe func(Call)
	// Log, when set, is told when an endpoint's standing changes.
	Log *slog.Logger
}

// Endpoint is one node.
type Endpoint struct {
	Name      string      // shown everywhere; default host:port
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

// validate refuses settings that make no sense. Its errors show no URL.
func (c Config) validate() error {
	switch {
	case c.Chain == 0:
		return errors.New("no chain id")
	case c.Transport != nil && slices.ContainsFunc(c.Endpoints, func(e Endpoint) bool { return e.WebSocket != "" }):
		return errors.New("a WebSocket URL needs connections of our own")
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

// endpoints builds the endpoints, each under a name of its own.
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
