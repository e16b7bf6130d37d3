package worker

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// spent refuses all reads in one client's name: its share of the calls is used up.
type spent struct{ Chain }

var errSpent = errors.New("not asked: the node requested a pause")

func (spent) Next(context.Context, chain.Sequence, bool) (lane.Witness, error) {
	return lane.Witness{}, errSpent
}
func (spent) Final(context.Context) (chain.Block, error) { return chain.Block{}, errSpent }
func (spent) At(context.Context, uint64) (chain.Block, error) {
	return chain.Block{}, errSpent
}

// shared makes a lane that ann asked for. names are the clients in whose names it reads the chain, and
// out those whose reads are refused.
func (w *world) shared() (a *actor, names *[]string, out map[string]bool) {
	w.t.Helper()
	a, names = w.askedFor()
	out = map[string]bool{}
	read := a.Behalf
	a.Lane.Behalf = func(client string) Chain {
		if of := read(client); !out[client] {
			return of
		}
		return spent{}
	}
	return a, names, out
}

// Ann's calls are used up while she has an open nonce in a lane, or before she has one. Bob's intent in
// the lane is claimed, signed and mined with bob's calls, within three polls. Ann's later intents too,
// while the lane holds bob's.
func TestPausedClientStopsNoLane(t *testing.T) {
	for _, opens := range []bool{true, false} {
		w := newWorld(t)
		a, names, out := w.shared()
		w.hold = true
		hers := w.ask(w.request(1, by("ann"), w.keyed))
		if opens {
			must(t, w.turns(a, 2))
		}
		out["ann"] = true
		for range 90 { // her pauses reach their longest
			_ = w.turns(a, 1)
			w.block()
		}
		*names = nil
		his := w.ask(w.request(10, by("bob"), w.keyed))
		w.hears = true
		a.box.call()
		w.hold = false
		for range 3 {
			_ = w.turns(a, 1)
			w.block()
		}
		_ = w.turns(a, 1)
		w.is(his[0], intent.StatusCompleted)
		if !slices.Contains(*names, "bob") {
			t.Errorf("the chain was read in the names of %q", *names)
		}
		w.hears = false
		more := w.ask(w.request(11, by("bob"), w.keyed), w.request(2, by("ann"), w.keyed))
		w.until(a, "all are done", w.ended(intent.StatusCompleted, slices.Concat(hers, more)...))
		w.judge()
	}
}

// The calls of all clients of a lane are used up. It reads in each one's name less and less often, and
// goes on once one of them has calls again, also if that client has no nonce in the lane.
func TestLaneRestsForEachClient(t *testing.T) {
	w := newWorld(t)
	a, names, out := w.shared()
	w.hold = true
	w.ask(w.request(1, by("ann"), w.keyed))
	must(t, w.turns(a, 2))
	out["ann"], out["bob"] = true, true
	his := w.ask(w.request(10, by("bob"), w.keyed))
	w.clock.pass(w.settings.Look)
	*names = nil
	w.hears = true
	a.box.call() // for bob's
	for range 120 {
		_ = w.turns(a, 1)
		w.block()
	}
	if n := len(*names); n < 8 || n > 2*14 {
		t.Errorf("in two minutes the lane tried %d times to read the chain: %q", n, *names)
	}
	out["bob"] = false
	for range restMost + 4 {
		_ = w.turns(a, 1)
		w.block()
	}
	if len(w.intent(his[0]).Attempts) == 0 {
		t.Errorf("bob's is %s, and ann's nonce open", w.intent(his[0]).Status())
	}
	w.hears, w.hold = false, false
	w.until(a, "bob's is done", w.ended(intent.StatusCompleted, his...))
	w.judge()
}

// However many intents ann asks for while her calls are used up, the lane claims at most once in each
// poll, and when its pauses end.
func TestPausedLaneClaimsSeldom(t *testing.T) {
	w := newWorld(t)
	a, _, out := w.shared()
	out["ann"] = true
	w.ask(w.request(1, by("ann"), w.keyed))
	_ = w.turns(a, 1)
	claims := &claiming{Queue: a.Queue}
	a.Queue = claims
	for range 10 {
		for range 20 {
			a.box.call()
			_ = w.turns(a, 1)
		}
		w.clock.pass(time.Second)
	}
	if claims.n < 2 || claims.n > 15 {
		t.Errorf("%d claims in ten polls", claims.n)
	}
}

// claiming counts claims.
type claiming struct {
	Queue
	n int
}

func (c *claiming) Claim(ctx context.Context, of intent.Claim) ([]intent.Claimed, error) {
	c.n++
	return c.Queue.Claim(ctx, of)
}
