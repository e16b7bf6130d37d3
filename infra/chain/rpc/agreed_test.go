package rpc

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// AgreedNonce needs Agree endpoints to agree, and names them. Nonce 0 is no exception, and
// neither is a long absence of the other endpoints.
func TestAgreedNonce(t *testing.T) {
	clock := newTimer()
	c := newCourt(t, 3, func(c *Config) { c.Now = clock.now })
	raw, _ := plain(alice, key5, 0)
	b := mine(t, c.Chain, raw)
	for sequence, want := range map[chain.Sequence]uint64{
		{Chain: id, Sender: alice, Key: key5}: 1,
		{Chain: id, Sender: bob, Key: key5}:   0,
	} {
		got, err := c.pool.Reader().AgreedNonce(t.Context(), b, sequence)
		names := map[string]bool{}
		for _, name := range got.Endpoints {
			names[name] = true
		}
		if err != nil || got.Nonce != want || got.Block != b || len(names) < 2 || got.Needed != 2 || got.Asked != 3 {
			t.Errorf("%+v, %v; want %d by two of three", got, err, want)
		}
	}
	c.nodes[1].Set(chaintest.Faults{Down: true})
	c.nodes[2].Set(chaintest.Faults{Down: true})
	for range 8 {
		clock.advance(missedFor / 2)
		if got, err := c.pool.Reader().AgreedNonce(t.Context(), b, chain.Sequence{Chain: id, Sender: alice, Key: key5}); err == nil {
			t.Fatalf("on one word: %+v", got)
		}
	}
}

// An endpoint that claims too high a nonce is not believed. A single endpoint is believed.
func TestAgreedNonceOfALiar(t *testing.T) {
	c := newCourt(t, 3, nil)
	raw, _ := plain(alice, key5, 0)
	b := mine(t, c.Chain, raw)
	sequence := chain.Sequence{Chain: id, Sender: alice, Key: key5}
	c.nodes[0].Set(chaintest.Faults{HighNonces: 7})
	if got, err := c.pool.Reader().AgreedNonce(t.Context(), b, sequence); err == nil && got.Nonce != 1 {
		t.Errorf("the liar is believed: %+v", got)
	}
	ctx, tick := t.Context(), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		got, err := c.pool.Reader().AgreedNonce(ctx, b, sequence)
		if err == nil {
			if got.Nonce != 1 {
				t.Errorf("the liar is believed: %+v", got)
			}
			break
		}
		<-tick.C
	}

	alone := newCourt(t, 1, nil)
	b = mine(t, alone.Chain, raw)
	got, err := alone.pool.Reader().AgreedNonce(ctx, b, sequence)
	want := AgreedNonce{1, b, []string{alone.pool.endpoints[0].name}, 1, 1}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}
