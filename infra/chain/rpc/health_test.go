package rpc

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

func TestBreaker(t *testing.T) {
	now := time.Unix(100, 0)
	bad := errors.New("bad")
	var h health
	for range 2 {
		h.fail(now, bad)
	}
	if h.tripped {
		t.Error("tripped after two failures")
	}
	h.fail(now, bad)
	if !h.tripped || h.probeDue(now) || !h.probeDue(now.Add(coolFirst)) {
		t.Errorf("after three: %+v", h)
	}
	for i, cool := range []time.Duration{2, 4, 8, 16, 30, 30} {
		h.fail(now, bad)
		if h.until.After(now.Add(coolLast)) {
			t.Error("a failure before the probe prolongs the cool-down")
		}
		now = h.until
		h.fail(now, bad)
		if h.until.Sub(now) != cool*time.Second {
			t.Errorf("cool-down %d is %s", i, h.until.Sub(now))
		}
	}
	h.succeed(time.Millisecond)
	if h.tripped {
		t.Errorf("after a probe: %+v", h)
	}
	h.fail(now, bad)
	if !h.tripped || h.until.Sub(now) != coolLast {
		t.Errorf("on trial: %+v", h)
	}
	for range 7 {
		h.succeed(time.Millisecond)
	}
	for range 3 {
		if h.tripped {
			t.Errorf("after its trial: %+v", h)
		}
		h.fail(now, bad)
	}
	if !h.tripped || h.until.Sub(now) != coolFirst {
		t.Errorf("the first time anew: %+v", h)
	}

	every := func(n int) bool {
		var h health
		for i := range 100 {
			if i%n == 0 {
				h.fail(now, bad)
			} else {
				h.succeed(time.Millisecond)
			}
			if h.tripped {
				return true
			}
		}
		return false
	}
	if !every(2) || every(4) {
		t.Error("every other failure must trip, every fourth must not")
	}
}

func TestScoreOrders(t *testing.T) {
	best := health{latency: 10 * time.Millisecond}
	for name, worse := range map[string]health{
		"slow":    {latency: 500 * time.Millisecond},
		"failing": {latency: 10 * time.Millisecond, failures: 0.3},
		"behind":  {latency: 10 * time.Millisecond, lag: 3},
	} {
		if worse.score() >= best.score() || worse.score() <= 0 || best.score() > 1 {
			t.Errorf("%s scores %f, best %f", name, worse.score(), best.score())
		}
	}
}

func TestFrontier(t *testing.T) {
	for _, test := range []struct {
		heads []uint64
		want  uint64
	}{{nil, 0}, {[]uint64{7}, 7}, {[]uint64{7, 9}, 9}, {[]uint64{7, 9, 1 << 60}, 9}, {[]uint64{9, 9, 3}, 9}, {[]uint64{1, 2, 3, 4}, 3}} {
		if got, _, _ := frontier(test.heads); got != test.want {
			t.Errorf("%v: %d, want %d", test.heads, got, test.want)
		}
	}
}

func states(p *Pool) (all []State) {
	for _, status := range p.Status() {
		all = append(all, status.State)
	}
	return all
}

// TestComesBack probes a pool by hand through an outage, a corrected chain, and an endpoint
// that was absent at the start.
func TestComesBack(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	a, b := c.Node("a"), c.Node("b")
	b.Set(chaintest.Faults{Down: true})
	clock := newTimer()
	p := open(t, func(c *Config) { c.Now, c.Probe = clock.now, time.Hour }, serve(t, a), serve(t, b))
	probe := func() {
		for _, e := range p.endpoints {
			p.probe(t.Context(), e)
		}
	}
	expect := func(want ...State) {
		t.Helper()
		if got := states(p); !slices.Equal(got, want) {
			t.Errorf("states %v, want %v", got, want)
		}
	}
	expect(Healthy, Unverified)
	b.Set(chaintest.Faults{})
	probe()
	expect(Healthy, Healthy)

	a.Set(chaintest.Faults{Down: true})
	for range 3 {
		p.Reader().block(t.Context(), p.endpoints[0], "latest") //nolint:errcheck // it is down
	}
	expect(Tripped, Healthy)
	if head, err := p.Reader().Head(t.Context()); err != nil || head != c.Head() {
		t.Errorf("no read went to the other: %v", err)
	}
	a.Set(chaintest.Faults{})
	calls := a.Calls()["eth_blockNumber"]
	probe()
	if a.Calls()["eth_blockNumber"] != calls {
		t.Error("probed before its cool-down is over")
	}
	clock.advance(coolFirst)
	probe()
	expect(Healthy, Healthy)

	b.Set(chaintest.Faults{ChainID: 9, Fail: 1, Status: 500})
	for range 3 {
		p.Reader().block(t.Context(), p.endpoints[1], "latest") //nolint:errcheck // it is down
	}
	b.Set(chaintest.Faults{ChainID: 9})
	for range 3 { // it reconnected, and is another node now
		p.endpoints[1].http.CloseIdleConnections()
		clock.advance(time.Minute)
		probe()
	}
	expect(Healthy, Foreign)
	b.Set(chaintest.Faults{})
	clock.advance(time.Hour)
	probe()
	expect(Healthy, Healthy)
}

func TestLaggingEndpointLeavesTheRotation(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	for range 20 {
		mine(t, c)
	}
	a, b := c.Node("a"), c.Node("b")
	clock := newTimer()
	p := open(t, func(c *Config) { c.Now, c.MaxLag = clock.now, 5 }, serve(t, a), serve(t, b))
	probe := func() {
		clock.advance(time.Hour)
		for _, e := range p.endpoints {
			p.probe(t.Context(), e)
		}
	}
	probe()
	a.Set(chaintest.Faults{Lag: 6})
	probe()
	if got := p.Status()[0]; got.State != Lagging || got.Lag != 6 || got.Head != 14 {
		t.Errorf("status %+v", got)
	}
	if head, err := p.Reader().Head(t.Context()); err != nil || head.Number != 20 {
		t.Errorf("head %+v %v", head, err)
	}
	a.Set(chaintest.Faults{})
	probe()
	if got := p.Endpoints(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("in rotation %v", got)
	}
}

func TestReadsStick(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	a, b := c.Node("a"), c.Node("b")
	p := open(t, nil, serve(t, a), serve(t, b))
	reading := func() string {
		for _, status := range p.Status() {
			if status.Reading {
				return status.Name
			}
		}
		return ""
	}
	if _, err := p.Reader().Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := reading()
	stuck, other := p.endpoints[0], p.endpoints[1]
	if first == other.name {
		stuck, other = other, stuck
	}
	stuck.mu.Lock()
	stuck.health.latency = time.Second // the other is better now, but reads stay
	stuck.mu.Unlock()
	for range 5 {
		if _, err := p.Reader().Head(t.Context()); err != nil || reading() != first {
			t.Fatalf("reading %s %v", reading(), err)
		}
	}
	for range 3 {
		p.blame(stuck, errors.New("bad"))
	}
	if _, err := p.Reader().Head(t.Context()); err != nil || reading() != other.name {
		t.Errorf("reading %s %v", reading(), err)
	}
	stuck.succeeded(time.Microsecond)
	if _, err := p.Reader().Head(t.Context()); err != nil || reading() != other.name {
		t.Errorf("went back for no reason: reading %s %v", reading(), err)
	}
}

func TestObserveCountsEveryCall(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	n := c.Node("a")
	var mu sync.Mutex
	seen, failed := map[string]int{}, 0
	p := open(t, func(c *Config) {
		c.Observe = func(made Call) {
			mu.Lock()
			defer mu.Unlock()
			if made.Endpoint != "a" || made.Took < 0 || made.Class == "other" {
				t.Errorf("%+v", made)
			}
			if seen[made.Method]++; made.Outcome != OK {
				failed++
			}
		}
	}, serve(t, n))
	r := p.Reader()
	head, err := r.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Nonces(t.Context(), head, []chain.Sequence{{Chain: id, Sender: alice}, {Chain: id, Sender: bob}, {Chain: id, Sender: alice, Key: key5}}); err != nil {
		t.Fatal(err)
	}
	raw, hash := plain(alice, key5, 0)
	p.Send(t.Context(), raw, hash, 0, tx.Sending{})
	p.Send(t.Context(), raw, hash, 0, tx.Sending{})
	mu.Lock()
	defer mu.Unlock()
	for method, count := range n.Calls() {
		if seen[method] != count {
			t.Errorf("%s: %d observed, %d made", method, seen[method], count)
		}
	}
	if failed != 1 {
		t.Errorf("%d errors observed, want the one refusal", failed)
	}
}

func TestOpenRefuses(t *testing.T) {
	good := []Endpoint{{URL: "http://127.0.0.1:1"}}
	for name, config := range map[string]Config{
		"no chain":     {Endpoints: good},
		"no endpoints": {Chain: id},
		"negative":     {Chain: id, Endpoints: good, Fanout: -1},
		"no scheme":    {Chain: id, Endpoints: []Endpoint{{URL: "127.0.0.1:8545"}}},
		"same name":    {Chain: id, Endpoints: []Endpoint{{Name: "a", URL: "http://x"}, {Name: "a", URL: "http://y"}}},
		"http socket":  {Chain: id, Endpoints: []Endpoint{{URL: "http://x", WebSocket: "http://x"}}},
	} {
		if p, err := Open(t.Context(), config); err == nil {
			p.Close()
			t.Errorf("%s: opened", name)
		}
	}
}

func TestNamesAreTold(t *testing.T) {
	built, err := Config{
		Endpoints:       []Endpoint{{URL: "https://u:p@host/key1"}, {URL: "https://host/key2"}, {Name: "mine", URL: "https://host:444/x", WebSocket: "wss://other/x"}},
		DeriveWebSocket: true,
	}.withDefaults().endpoints()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range built {
		got = append(got, e.name, e.webSocket)
	}
	want := []string{"host", "wss://u:p@host/key1", "host#2", "wss://host/key2", "mine", "wss://other/x"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
