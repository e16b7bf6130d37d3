package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// scripted is a node that answers identity calls from a chain, and one method as a test says.
func scripted(n http.Handler, method, answer string, asked *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var one struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(body, &one) == nil && one.Method == method {
			asked.Add(1)
			if answer == "" {
				panic(http.ErrAbortHandler)
			}
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, one.ID, answer)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		n.ServeHTTP(w, r)
	})
}

func TestAsk(t *testing.T) {
	const method = "eth_getCode"
	yes := func(want string) func(json.RawMessage) bool {
		return func(result json.RawMessage) bool { return string(result) == want }
	}
	for name, test := range map[string]struct {
		answers []string // one per node; empty cuts the connection
		limit   int64
		usable  func(json.RawMessage) bool
		want    string
		refused *NodeError
		fails   string
		asked   []int64
	}{
		"the first":                 {answers: []string{`"result":"0x1"`, `"result":"0x2"`}, want: `"0x1"`, asked: []int64{1, 0}},
		"another after a cut":       {answers: []string{``, `"result":"0x2"`}, want: `"0x2"`, asked: []int64{1, 1}},
		"another when out of order": {answers: []string{`"error":{"code":-32603,"message":"oops"}`, `"result":"0x2"`}, want: `"0x2"`, asked: []int64{1, 1}},
		"another that has it":       {answers: []string{`"result":null`, `"result":"0x2"`}, usable: yes(`"0x2"`), want: `"0x2"`, asked: []int64{1, 1}},
		"nobody has it":             {answers: []string{`"result":null`, `"result":null`}, usable: yes(`"0x2"`), want: `null`, asked: []int64{1, 1}},
		"a node's no, with data": {
			answers: []string{`"error":{"code":3,"message":"execution reverted","data":"0x08c379a0"}`, `"result":"0x2"`},
			refused: &NodeError{Method: method, Code: 3, Message: "execution reverted", Data: json.RawMessage(`"0x08c379a0"`)}, asked: []int64{1, 0},
		},
		"nobody offers it": {
			answers: []string{`"error":{"code":-32601,"message":"no"}`, `"error":{"code":-32601,"message":"neither"}`},
			refused: &NodeError{Method: method, Code: -32601, Message: "no"}, asked: []int64{1, 1},
		},
		"too large": {answers: []string{`"result":"0x11111111"`, `"result":"0x2"`}, limit: 20, fails: "larger than 20 bytes", asked: []int64{1, 0}},
		"all cut":   {answers: []string{``, ``}, fails: "EOF", asked: []int64{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChain(t, chaintest.Rules{})
			counts := make([]atomic.Int64, len(test.answers))
			var urls []string
			for i, answer := range test.answers {
				urls = append(urls, serve(t, scripted(c.Node(fmt.Sprint(i)), method, answer, &counts[i])))
			}
			p := open(t, nil, urls...)
			p.moveTo(p.reader(), p.endpoints[0]) // otherwise the faster would be asked first
			limit := test.limit
			if limit == 0 {
				limit = 1 << 10
			}
			got, err := p.Ask(t.Context(), "alice", method, json.RawMessage(`["0x0000000000000000000000000000000000000001","latest"]`), limit, test.usable)
			var refused *NodeError
			errors.As(err, &refused)
			if refused != nil {
				refused.Endpoint = ""
			}
			if diff := cmp.Diff(test.refused, refused); diff != "" {
				t.Errorf("refused: %s", diff)
			}
			if string(got) != test.want || (err != nil) != (test.refused != nil || test.fails != "") || test.fails != "" && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%s, %v", got, err)
			}
			for i := range counts {
				if n := counts[i].Load(); n != test.asked[i] {
					t.Errorf("node %d was asked %d times, want %d", i, n, test.asked[i])
				}
			}
		})
	}
}

// A client's call never takes an endpoint out of rotation, however it fails.
func TestAskCountsForNothing(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	var asked atomic.Int64
	p := open(t, nil, serve(t, scripted(c.Node("a"), "eth_call", "", &asked)))
	for range 20 {
		if _, err := p.Ask(t.Context(), "alice", "eth_call", nil, 1<<10, nil); err == nil {
			t.Fatal("a cut connection gave an answer")
		}
	}
	if s := p.Status()[0]; s.State != Healthy || s.Failures != 0 {
		t.Errorf("the endpoint is %s with failures %v", s.State, s.Failures)
	}
}

// A client that gives up while all places are taken stops waiting.
func TestAskIsBounded(t *testing.T) {
	p := open(t, nil, serve(t, newChain(t, chaintest.Rules{}).Node("a")))
	fill(t, p.asking, waiter{use: onBehalf, client: "alice"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Ask(ctx, "alice", "eth_blockNumber", nil, 1<<10, nil)
	if spent := (*Spent)(nil); !errors.Is(err, context.Canceled) || !errors.As(err, &spent) || spent.Withheld() != "32 calls of clients are under way to the nodes of the chain" {
		t.Errorf("%v, want canceled", err)
	}
}

// A client whose calls make the nodes ask for a pause waits itself. It delays no broadcast and
// none of our own reads.
func TestClientsPauseOnlyClients(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	clock := newTimer()
	var urls []string
	var asked atomic.Int64
	for _, name := range []string{"a", "b"} {
		g := &gateway{node: c.Node(name)}
		g.misbehave("eth_getLogs", func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			asked.Add(1)
			w.Header().Set("Retry-After", "300")
			w.WriteHeader(http.StatusTooManyRequests)
		})
		urls = append(urls, serve(t, g))
	}
	p := open(t, func(c *Config) { c.Now = clock.now }, urls...)
	logs := func() error {
		_, err := p.Ask(t.Context(), "alice", "eth_getLogs", json.RawMessage(`[{}]`), 1<<10, nil)
		return err
	}
	if err := logs(); err == nil || asked.Load() != 2 {
		t.Fatalf("%v after %d calls", err, asked.Load())
	}
	if err := logs(); !errors.As(err, new(*Spent)) || asked.Load() != 2 {
		t.Errorf("in the pause: %v after %d calls", err, asked.Load())
	}
	raw, hash := plain(alice, key5, 0)
	got := p.Send(t.Context(), raw, hash, 0, tx.Sending{})
	if !slices.ContainsFunc(got, func(a tx.Answer) bool { return a.Class == tx.Taken || a.Class == tx.Known }) {
		t.Errorf("broadcast: %+v", got)
	}
	if _, err := p.Reader().Head(t.Context()); err != nil {
		t.Error(err)
	}
	for _, s := range p.Status() {
		if s.State != Healthy || s.Budget.Pause != 0 {
			t.Errorf("%s: %s, paused for %s", s.Name, s.State, s.Budget.Pause)
		}
	}
	clock.advance(pauseMax)
	if err := logs(); errors.As(err, new(*Spent)) {
		t.Errorf("after the pause: %v", err)
	}
}

// A client whose call or estimate both nodes answer with 429 waits as long as they ask. Another
// client's calls and estimates go on at once, and so do the first client's of the other kind.
func TestClientsPauseThemselvesAlone(t *testing.T) {
	to := chain.Address{1}
	u := chain.Unsigned{Chain: 42431, Calls: []chain.Call{{To: &to}}}
	for _, method := range []string{"eth_getLogs", "eth_estimateGas"} {
		t.Run(method, func(t *testing.T) {
			c := newChain(t, chaintest.Rules{})
			clock := newTimer()
			var urls []string
			for _, name := range []string{"a", "b"} {
				g := &gateway{node: c.Node(name)}
				g.misbehave(method, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
					w.Header().Set("Retry-After", "300")
					w.WriteHeader(http.StatusTooManyRequests)
				})
				urls = append(urls, serve(t, g))
			}
			p := open(t, func(c *Config) { c.Now = clock.now }, urls...)
			calls := func(client string) error {
				_, err := p.Ask(t.Context(), client, "eth_blockNumber", json.RawMessage(`[]`), 1<<10, nil)
				return err
			}
			trials := func(client string) error { return p.Reader().Simulate(t.Context(), client, chain.Address{2}, u) }
			paused, free := calls, trials
			if method == "eth_estimateGas" {
				paused, free = trials, calls
				if _, err := p.Reader().EstimateGas(t.Context(), "mallory", chain.Address{2}, u); err == nil {
					t.Fatal("no node refuses the estimate")
				}
			} else if _, err := p.Ask(t.Context(), "mallory", method, json.RawMessage(`[{}]`), 1<<10, nil); err == nil {
				t.Fatal("no node refuses the call")
			}
			if err := paused("mallory"); !errors.As(err, new(*Spent)) {
				t.Errorf("mallory, whom the nodes asked to wait, is served: %v", err)
			}
			for what, err := range map[string]error{"mallory's of the other kind": free("mallory"), "bob's calls": calls("bob"), "bob's trials": trials("bob")} {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			clock.advance(pauseMax)
			if err := paused("mallory"); err != nil {
				t.Errorf("after the pause: %v", err)
			}
		})
	}
}

// The answer to one of our own calls pauses all calls. An endpoint remembers a bounded number
// of paused clients.
func TestPauses(t *testing.T) {
	var p pauses
	now := time.Unix(1_700_000_000, 0)
	left := func(use purpose, client string) time.Duration {
		return max(0, p.left(now, &waiter{use: use, client: client}))
	}
	p.add(now, of(onBehalf, "first"), 2*time.Second)
	for i := range 2 * pausedClientsMax {
		p.add(now, of(onBehalf, strconv.Itoa(i)), time.Minute)
	}
	if n := len(p.clients); n != pausedClientsMax {
		t.Errorf("%d are remembered", n)
	}
	if left(onBehalf, "first") != 0 || left(onBehalf, strconv.Itoa(2*pausedClientsMax-1)) != time.Minute {
		t.Error("not the pause that ends first is forgotten")
	}
	now = now.Add(time.Minute)
	p.add(now, of(trying, "bob"), time.Hour)
	if n := len(p.clients); n != 1 || left(trying, "bob") != pauseMax || left(onBehalf, "bob") != 0 || left(read, "") != 0 {
		t.Errorf("%d are remembered when all are over, bob waits %s and %s, we %s", n, left(trying, "bob"), left(onBehalf, "bob"), left(read, ""))
	}
	p.add(now, of(broadcast, ""), time.Second)
	if left(broadcast, "") != time.Second || left(broadcast, "ann") != 0 || left(read, "") != 0 {
		t.Error("a first attempt without a client pauses other calls")
	}
	p.add(now, ours(), time.Second)
	for _, use := range []purpose{broadcast, read, trying, onBehalf} {
		if got := left(use, "ann"); got != time.Second {
			t.Errorf("purpose %d waits %s after an answer to our own call", use, got)
		}
	}
}
