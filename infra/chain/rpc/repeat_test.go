package rpc

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
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
		"access keys": func(t *testing.T, _ *Pool, r *Reader) {
			if _, err := r.Repeating("mallory").Grants(t.Context(), chain.Block{}, []chain.AccessKey{{Account: alice, Key: bob}}); err == nil {
				t.Error("no node refuses the question")
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

// A client's questions about access keys use its share of each endpoint's calls: of the endpoint
// that answers, and of the endpoints that confirm it.
func TestKeysAreAskedInTheClientsName(t *testing.T) {
	c := newCourt(t, 2, func(c *Config) {
		for i := range c.Endpoints {
			c.Endpoints[i].Budget.Daily = 100
		}
	})
	b, r := mine(t, c.Chain), c.pool.Reader()
	keys := make([]chain.AccessKey, 10)
	for i := range keys {
		keys[i] = chain.AccessKey{Account: alice, Key: chain.Address{1, byte(i)}}
		c.SetGrant(keys[i], chain.Grant{Known: true, Kind: chain.P256, Expires: 9})
	}
	var own [2]int
	for i, e := range c.pool.endpoints {
		own[i] = e.meter.ours[read]
	}
	asked := 0
	for ; asked < 10; asked++ {
		got, err := r.Repeating("mallory").Grants(t.Context(), b, keys)
		if err != nil {
			break
		}
		if !got[0].Known {
			t.Fatalf("answered %+v", got[0])
		}
	}
	if asked != 2 { // 29 of the 58 calls of repeats
		t.Errorf("the client asked %d times", asked)
	}
	for i, e := range c.pool.endpoints {
		if e.meter.ours[read] != own[i] || e.meter.passed["mallory"] != 10*asked {
			t.Errorf("%s: %d own calls, %d before; %d of the client", e.name, e.meter.ours[read], own[i], e.meter.passed["mallory"])
		}
	}
	if got, err := r.Repeating("bob").Grants(t.Context(), b, keys[:5]); err != nil || !got[0].Known {
		t.Errorf("another client's question: %+v, %v", got, err)
	}
}

// Reads stay with a lying endpoint if only clients contradict it. Another endpoint answers clients
// about access keys all the same, and the lie changes nothing.
func TestALiarKeepsNoClientsKeysBack(t *testing.T) {
	c := newCourt(t, 3, nil)
	k, b := chain.AccessKey{Account: alice, Key: bob}, mine(t, c.Chain)
	c.SetGrant(k, chain.Grant{Known: true, Kind: chain.P256, Expires: 9})
	word := func(digits string) string { return strings.Repeat("0", 64-len(digits)) + digits }
	c.liar.replace(t, "eth_call", `"result":"0x`+word("1")+word(bob.String()[2:])+word("ffffffff")+word("")+word("")+`"`)
	for range 3 {
		got, err := c.pool.Reader().Repeating("mallory").Grants(t.Context(), b, []chain.AccessKey{k})
		if err != nil || got[0].Expires != 9 {
			t.Errorf("%+v, %v", got, err)
		}
	}
}
