package worker

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// askedFor makes a lane exist only because ann asks for its nonce key. names are the clients in
// whose names it reads the chain.
func (w *world) askedFor() (a *actor, names *[]string) {
	w.t.Helper()
	names = new([]string)
	_, l := w.live(0, false)
	l.OnlyAsked, l.Client, l.Node = true, "ann", estimates{w}
	l.Behalf = func(client string) Chain {
		*names = append(*names, client)
		return w
	}
	a, err := w.opened(l)
	must(w.t, err)
	return a, names
}

// estimates is a chain that is read for estimates only.
type estimates struct{ *world }

func (e estimates) Next(context.Context, chain.Sequence, bool) (lane.Witness, error) {
	panic("a lane that a client asked for reads in the service's own name")
}
func (e estimates) Final(context.Context) (chain.Block, error) {
	panic("a lane that a client asked for reads in the service's own name")
}
func (e estimates) At(context.Context, uint64) (chain.Block, error) {
	panic("a lane that a client asked for reads in the service's own name")
}

// keyed makes a request ask for the lane's nonce key.
func (w *world) keyed(r *intent.Request) {
	r.NonceKey = intent.NoncePolicy{Mode: intent.NonceFixed, Key: &w.lane.Key}
}

// Ann asks for a lane with an intent that may not pay the price of gas, with a deadline or without.
// The lane reads nothing from the chain. When gas is cheaper, it reads in her name.
func TestAskedLaneReadsNothingInVain(t *testing.T) {
	w := newWorld(t)
	a, names := w.askedFor()
	poor := func(r *intent.Request) { r.Gas.MaxFee = intent.NewAmount(800) }
	ids := w.ask(
		w.request(1, by("ann"), w.keyed, poor), w.request(2, by("ann"), w.keyed, poor, w.within(10*time.Hour)),
	)
	for range 100 {
		_ = w.turns(a, 1)
		w.block()
	}
	if w.asked > 0 {
		t.Errorf("the chain was read %d times", w.asked)
	}
	w.fee = asking(500, 100)
	w.until(a, "they are done", w.ended(intent.StatusCompleted, ids...))
	if names := slices.Compact(*names); !slices.Equal(names, []string{"ann"}) {
		t.Errorf("the chain was read in the names of %q", names)
	}
	w.judge()
}

// While nodes do not answer, a lane that ann asked for reads the chain less and less often. When
// they answer again, it goes on within a quarter of a minute.
func TestAskedLaneRests(t *testing.T) {
	w := newWorld(t)
	a, _ := w.askedFor()
	w.away = errAway
	ids := w.ask(w.request(1, by("ann"), w.keyed))
	for range 120 {
		_ = w.turns(a, 1)
		w.block()
	}
	if w.asked == 0 || w.asked > 14 {
		t.Errorf("in two minutes the chain was read %d times", w.asked)
	}
	if err := w.turns(a, 1); err == nil {
		t.Error("the lane reports no trouble")
	}
	w.away = nil
	for range restMost + 4 {
		_ = w.turns(a, 1)
		w.block()
	}
	w.is(ids[0], intent.StatusCompleted)
	w.judge()
}

// While nodes do not answer, the lane of the protocol's nonce key reads the chain once in each poll,
// however often news of intents wakes it.
func TestWakingReadsNothing(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.away = errAway
	w.ask(w.request(1, by("ann")))
	for range 50 {
		_ = w.turns(a, 1)
	}
	if w.asked != 1 {
		t.Errorf("the chain was read %d times in one poll", w.asked)
	}
	w.block()
	_ = w.turns(a, 1)
	if w.asked != 2 {
		t.Errorf("the chain was read %d times in two polls", w.asked)
	}
}

// Ann's and bob's intents are in one lane. It reads the chain in the name of each in turn.
func TestAskedLaneTakesTurns(t *testing.T) {
	w := newWorld(t)
	a, names := w.askedFor()
	w.hold = true // no transaction is sent, so that their nonces stay open
	w.ask(w.request(1, by("ann"), w.keyed), w.request(2, by("bob"), w.keyed))
	must(t, w.turns(a, 2))
	*names = nil
	for range 4 {
		_, err := a.wants(t.Context())
		must(t, err)
	}
	if want := []string{"ann", "bob", "ann", "bob"}; !slices.Equal(slices.Sorted(slices.Values((*names)[:2])), want[:2]) || (*names)[0] != (*names)[2] || (*names)[1] != (*names)[3] {
		t.Errorf("it read in the names of %q", *names)
	}
}
