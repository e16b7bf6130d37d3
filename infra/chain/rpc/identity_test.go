package rpc

import (
	"bytes"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

func TestForeignEndpointsAreEjected(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	wrongChain, wrongGenesis := c.Node("b"), c.Node("c")
	wrongChain.Set(chaintest.Faults{ChainID: 1})
	wrongGenesis.Set(chaintest.Faults{Genesis: chain.Hash{1}})
	p := open(t, nil, serve(t, wrongGenesis), serve(t, wrongChain), serve(t, c.Node("d")), serve(t, c.Node("e")))
	if got := states(p); !slices.Equal(got, []State{Foreign, Foreign, Healthy, Healthy}) {
		t.Errorf("states %v", got)
	}
	if got := p.Endpoints(); !slices.Equal(got, []string{"c", "d"}) {
		t.Errorf("in rotation %v", got)
	}
	status := p.Status()
	if status[1].Ejected != "chain id is 1, not 42431" || status[0].Ejected == "" || status[0].Genesis != (chain.Hash{1}) {
		t.Errorf("status %+v", status[:2])
	}
	raw, hash := plain(alice, key5, 0)
	for attempt := range 4 {
		for _, answer := range p.Send(t.Context(), raw, hash, attempt, tx.Sending{}) {
			if answer.Endpoint != "c" && answer.Endpoint != "d" {
				t.Errorf("sent to %s", answer.Endpoint)
			}
		}
	}
}

// An endpoint that serves another chain from the start is reported with both chain ids. Only an
// endpoint that served our chain, or comes to serve it, has changed its chain.
func TestForeignEndpointsAreTold(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	node := c.Node("a")
	node.Set(chaintest.Faults{ChainID: 1})
	var mu sync.Mutex
	var told bytes.Buffer
	lines := func() (all []string) {
		mu.Lock()
		defer mu.Unlock()
		for line := range strings.Lines(told.String()) {
			if strings.Contains(line, "endpoint=a") {
				all = append(all, strings.TrimSpace(line))
			}
		}
		return all
	}
	plain := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	clock := newTimer()
	p := open(t, func(c *Config) {
		c.Now = clock.now
		c.Log = slog.New(slog.NewTextHandler(writer(func(b []byte) { mu.Lock(); defer mu.Unlock(); told.Write(b) }), &slog.HandlerOptions{ReplaceAttr: plain}))
	}, serve(t, node), serve(t, c.Node("b")))
	first := `level=WARN msg="endpoint serves another chain than it is configured for" chain=42431 endpoint=a serves=1 ejected="chain id is 1, not 42431"`
	if d := cmp.Diff([]string{first}, lines()); d != "" {
		t.Fatal(d)
	}
	again := func() {
		e := p.endpoints[0]
		e.mu.Lock()
		e.identity.doubted = true
		e.mu.Unlock()
		clock.advance(recheckAfter)
		_ = p.verify(t.Context(), e)
	}
	again()
	node.Set(chaintest.Faults{})
	again()
	node.Set(chaintest.Faults{ChainID: 7})
	again()
	want := []string{
		first,
		`level=WARN msg="endpoint changed its chain" chain=42431 endpoint=a served=1 serves=42431 ejected=""`,
		`level=WARN msg="endpoint changed its chain" chain=42431 endpoint=a served=42431 serves=7 ejected="chain id is 7, not 42431"`,
	}
	if d := cmp.Diff(want, lines()); d != "" {
		t.Error(d)
	}
}

// writer is a function that receives each write.
type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

func TestGenesisFromTheConfigurationRules(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	genesis := c.Head().Hash
	liars := []string{}
	for range 2 {
		n := c.Node("liar")
		n.Set(chaintest.Faults{Genesis: chain.Hash{1}})
		liars = append(liars, serve(t, n))
	}
	p := open(t, func(c *Config) { c.Genesis = genesis }, append(liars, serve(t, c.Node("a")))...)
	if got := p.Endpoints(); !slices.Equal(got, []string{"c"}) {
		t.Errorf("in rotation %v", got)
	}
}

// TestReconnectAsksWhoItIs replaces a node behind an address by a node of another chain. The
// next call must not believe it.
func TestReconnectAsksWhoItIs(t *testing.T) {
	ours, theirs := newChain(t, chaintest.Rules{}), newChain(t, chaintest.Rules{})
	foreign := theirs.Node("b")
	foreign.Set(chaintest.Faults{ChainID: 7})
	var current atomic.Pointer[chaintest.Node]
	current.Store(ours.Node("a"))
	cut := atomic.Bool{}
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cut.Load() {
			w.Header().Set("Connection", "close")
		}
		current.Load().ServeHTTP(w, r)
	}))
	clock := newTimer()
	p := open(t, func(c *Config) { c.Now = clock.now }, url)
	r := p.Reader()
	if _, err := r.Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	cut.Store(true) // this reply closes the connection
	if _, err := r.Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	for e := p.endpoints[0]; e.open.Load() > 0; { // its reader closes the connection after handing the reply over
		select {
		case <-t.Context().Done():
			t.Fatal("the connection stays open")
		case <-time.After(time.Millisecond):
		}
	}
	current.Store(foreign)
	clock.advance(recheckAfter)
	if _, err := r.Head(t.Context()); err == nil {
		t.Error("believed another chain")
	}
	if got := states(p); got[0] != Foreign {
		t.Errorf("states %v", got)
	}
	raw, hash := plain(alice, key5, 0)
	p.Send(t.Context(), raw, hash, 0, tx.Sending{})
	if got := theirs.Received(); len(got) != 0 {
		t.Error("sent to another chain")
	}
}

// A load balancer keeps our connections while it replaces our node by a node of another chain.
// The endpoint is asked for its identity after any failure, and when its head falls far.
func TestDoubtsAskWhoItIs(t *testing.T) {
	for name, between := range map[string]func(t *testing.T, g *gateway, r *Reader){
		"after a failure": func(t *testing.T, g *gateway, r *Reader) {
			g.misbehave("", func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.WriteHeader(502) })
			if _, err := r.Head(t.Context()); err == nil {
				t.Error("no failure")
			}
			g.misbehave("", nil)
		},
		"after a fall": func(*testing.T, *gateway, *Reader) {},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := newChain(t, chaintest.Rules{}), newChain(t, chaintest.Rules{})
			for range 20 {
				mine(t, ours)
			}
			mine(t, theirs)
			foreign := theirs.Node("b")
			foreign.Set(chaintest.Faults{Genesis: chain.Hash{7}})
			clock := newTimer()
			g := &gateway{node: ours.Node("a")}
			p := open(t, func(c *Config) { c.Now = clock.now }, serve(t, g))
			r := p.Reader()
			if _, err := r.Head(t.Context()); err != nil {
				t.Fatal(err)
			}
			clock.advance(recheckAfter)
			between(t, g, r)
			clock.advance(recheckAfter)
			g.mu.Lock()
			g.node = foreign
			g.mu.Unlock()
			if head, err := r.Head(t.Context()); err == nil {
				t.Errorf("believed another chain: %+v", head)
			}
			if got := states(p); got[0] != Foreign {
				t.Errorf("states %v", got)
			}
		})
	}
}
