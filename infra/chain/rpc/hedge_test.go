package rpc

import (
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// hang never answers.
func hang(_ http.ResponseWriter, r *http.Request, _ []byte) { <-r.Context().Done() }

// If the endpoint that reads use fails in any way, another is read within a second, reads stay
// there, and the failure counts against the first.
func TestReadsDoNotWaitForTheReader(t *testing.T) {
	for name, instead := range map[string]func(w http.ResponseWriter, r *http.Request, body []byte){
		"hangs": hang, "drips": drip,
		"is cut":       func(http.ResponseWriter, *http.Request, []byte) { panic(http.ErrAbortHandler) },
		"502":          func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.WriteHeader(502) },
		"429":          func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.WriteHeader(429) },
		"HTML":         func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.Write([]byte("<html>")) },            //nolint:errcheck // a fake
		"half a reply": func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.Write([]byte(`{"jsonrpc":"2.0",`)) }, //nolint:errcheck // a fake
		"another's reply": func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.Write([]byte(`{"jsonrpc":"2.0","id":1000000,"result":null}`)) //nolint:errcheck // a fake
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChain(t, chaintest.Rules{})
			raw, _ := plain(alice, key5, 0)
			mine(t, c, raw)
			gates := []*gateway{{node: c.Node("a")}, {node: c.Node("b")}}
			p := open(t, func(c *Config) { c.HeadTimeout, c.CallTimeout = 500*time.Millisecond, 600*time.Millisecond },
				serve(t, gates[0]), serve(t, gates[1]))
			r := p.Reader()
			bad := p.reader()
			gates[bad.index].misbehave("", instead)
			began := time.Now()
			head, err := r.Head(t.Context())
			if err != nil || head != c.Head() {
				t.Fatalf("head %+v, %v", head, err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("the first read took %s", took)
			}
			if p.reader() == bad {
				t.Error("reads stay with it")
			}
			if _, err := r.Nonces(t.Context(), head, []chain.Sequence{{Chain: id, Sender: alice, Key: chain.NonceKey{31: 9}}}); err != nil {
				t.Errorf("nonces: %v", err)
			}
			for p.Status()[bad.index].Failures == 0 { // at its own deadline
				if time.Since(began) > 10*time.Second {
					t.Fatalf("it was not counted: %+v", p.Status()[bad.index])
				}
				runtime.Gosched()
			}
		})
	}
}

func TestReadsAreGivenUpSoonerThanHeavyOnes(t *testing.T) {
	p := &Pool{config: Config{}.withDefaults()}
	e := &endpoint{}
	block, receipts := call{"eth_getBlockByNumber", nil}, call{"eth_getBlockReceipts", nil}
	for _, test := range []struct {
		usual         time.Duration
		hedge, blocks time.Duration
	}{
		{0, 250 * time.Millisecond, patienceFirst},
		{100 * time.Millisecond, 400 * time.Millisecond, patienceFirst},
		{200 * time.Millisecond, hedgeLast, 1600 * time.Millisecond},
		{2 * time.Second, hedgeLast, 2500 * time.Millisecond},
	} {
		e.health.latency = test.usual
		if got := p.hedge(e); got != test.hedge {
			t.Errorf("usually %s: another is asked after %s, want %s", test.usual, got, test.hedge)
		}
		if got := p.patience(e, []call{block}); got != test.blocks {
			t.Errorf("usually %s: a block is given up after %s, want %s", test.usual, got, test.blocks)
		}
		if got := p.patience(e, []call{block, receipts}); got != 8*time.Second {
			t.Errorf("receipts are given up after %s", got)
		}
	}
}

// A single endpoint is read from alone.
func TestHedgeNeedsAnother(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	n := c.Node("a")
	p := open(t, nil, serve(t, n))
	before := n.Calls()["eth_getBlockByNumber"]
	if _, err := p.Reader().Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := n.Calls()["eth_getBlockByNumber"] - before; got != 1 {
		t.Errorf("%d calls for one head", got)
	}
}
