package rpc

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// Many callers, of several readers, ask for the newest or the final block. Nodes are asked once in
// a second, and not at all for the newest block if Newest has asked them. A failure is shared too.
func TestLatestIsShared(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	mine(t, c)
	clock := newTimer()
	g := &gateway{node: c.Node("a")}
	var calls atomic.Int64
	var fails atomic.Bool
	g.misbehave("eth_getBlockByNumber", func(w http.ResponseWriter, r *http.Request, body []byte) {
		if calls.Add(1); fails.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		g.node.ServeHTTP(w, r)
	})
	p := open(t, func(c *Config) { c.Now = clock.now }, serve(t, g))
	watcher := p.Reader()
	crowd := func(read func(*Reader, context.Context, time.Duration) (chain.Block, error), fail bool) int64 {
		calls.Store(0)
		var all sync.WaitGroup
		for range 10 {
			r := p.Reader()
			all.Go(func() {
				for range 5 {
					if _, err := read(r, t.Context(), time.Second); (err != nil) != fail {
						t.Errorf("%v", err)
					}
				}
			})
		}
		all.Wait()
		return calls.Load()
	}
	if _, err := watcher.Newest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := crowd((*Reader).Latest, false); n != 0 {
		t.Errorf("%d calls after Newest", n)
	}
	clock.advance(2 * time.Second)
	if n := crowd((*Reader).Latest, false); n != 1 {
		t.Errorf("%d calls for the newest block", n)
	}
	if n := crowd((*Reader).LatestFinal, false); n == 0 || n > 2 {
		t.Errorf("%d calls for the final block", n)
	}
	clock.advance(2 * time.Second)
	b := mine(t, c)
	if got, err := p.Reader().Latest(t.Context(), time.Second); err != nil || got != b {
		t.Errorf("%v %v, want %v", got, err, b)
	}
	fails.Store(true)
	clock.advance(2 * time.Second)
	if n := crowd((*Reader).Latest, true); n > 2 {
		t.Errorf("%d calls that fail", n)
	}
}
