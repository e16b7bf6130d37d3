package rpc

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// A node that asks for a pause in answer to a repeat for one client, or to a read before it, is still
// asked for everybody else: first attempts, other clients' repeats and own reads.
func TestRepeatsPauseTheirClientAlone(t *testing.T) {
	busy := func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	raw, hash := plain(alice, key5, 0)
	for name, repeats := range map[string]func(t *testing.T, p *Pool, r *Reader){
		"broadcast": func(t *testing.T, p *Pool, _ *Reader) {
			if got := p.Send(t.Context(), raw, hash, 2, tx.Sending{Client: "mallory", Repeat: true})[0]; got.Cause != tx.RateLimited {
				t.Errorf("answered %+v", got)
			}
		},
		"broadcast to all": func(t *testing.T, p *Pool, _ *Reader) {
			if got := p.SendAll(t.Context(), raw, hash, 2, tx.Sending{Client: "mallory", Repeat: true})[0]; got.Cause != tx.RateLimited {
				t.Errorf("answered %+v", got)
			}
		},
		"read": func(t *testing.T, _ *Pool, r *Reader) {
			if _, err := r.Repeating("mallory").Head(t.Context()); err == nil {
				t.Error("no node refuses the read")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := &gateway{node: newChain(t, chaintest.Rules{}).Node("a")}
			clock := newTimer()
			p := open(t, func(c *Config) { c.Now = clock.now }, serve(t, g))
			r := p.Reader()
			if _, err := r.Head(t.Context()); err != nil {
				t.Fatal(err)
			}
			g.misbehave("", busy)
			repeats(t, p, r)
			g.misbehave("", nil)
			if got := p.Send(t.Context(), raw, hash, 3, tx.Sending{Client: "mallory", Repeat: true})[0]; !strings.Contains(got.Message, "requested a pause") {
				t.Errorf("another repeat for the client: %+v", got)
			}
			if got := p.Status()[0]; got.State != Healthy || got.Budget.Pause != 0 {
				t.Errorf("status %+v", got)
			}
			if got := p.Send(t.Context(), raw, hash, 2, tx.Sending{Client: "bob", Repeat: true})[0]; got.Class != tx.Taken {
				t.Errorf("another client's repeat: %+v", got)
			}
			clock.advance(time.Second) // the node's answers have lowered the rate
			other, sent := plain(bob, key5, 0)
			if got := p.Send(t.Context(), other, sent, 1, tx.Sending{Client: "mallory"})[0]; got.Class != tx.Taken {
				t.Errorf("a first attempt: %+v", got)
			}
			clock.advance(marketAtHead)
			if _, err := r.Head(t.Context()); err != nil {
				t.Errorf("own read: %v", err)
			}
			if _, err := r.Repeating("bob").Nonces(t.Context(), chain.Block{}, nil); err != nil {
				t.Errorf("another client's read: %v", err)
			}
		})
	}
}
