package worker

import (
	"context"
	"errors"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// Turns report that the first nonce stalls, and that the chain used nonces unknown here,
// until the cause is known. The end of the work on a lane is reported too.
func TestTurnsAreTold(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	var last Turn
	a.Relayer.Told = func(turn Turn) { last = turn }
	turn := func() Turn {
		t.Helper()
		began := w.clock.now()
		err := w.turns(a, 1)
		a.report(began, err)
		if must(t, err); last.Troubled {
			t.Error("a turn in which all went well is told as one with trouble")
		}
		return last
	}
	w.hold = true
	w.ask(w.request(1), w.request(2))
	if got := turn(); got.Lane != w.lane || got.State.InFlight() != 2 || got.Drift != 0 || got.Stalled || got.Budget != w.settings.Budget {
		t.Errorf("two are in flight: %+v", got)
	}
	w.clock.pass(w.settings.Stall)
	if got := turn(); got.Stalled {
		t.Error("it stalls as soon as it waits")
	}
	w.clock.pass(w.settings.Stall)
	if got := turn(); !got.Stalled {
		t.Error("the first nonce does not stall")
	}
	if got := turn(); got.Stalled {
		t.Error("it stalls in every turn")
	}

	// The chain reports that another transaction has used the first nonce.
	head := w.chain.Head()
	w.lied = &lane.Witness{Nonce: 1, Block: head, Endpoints: []string{"a", "b"}, Needed: 2, Asked: 3}
	w.clock.pass(w.settings.Look)
	if got := turn(); got.Drift != 1 {
		t.Errorf("a drift of %d", got.Drift)
	}
	w.lied, w.hold = nil, false
	for range 3 { // ours is mined after all, and the chain has not been asked since
		w.block()
		turn()
	}
	if last.Drift != 0 {
		t.Errorf("a drift of %d when it is known what used the nonce", last.Drift)
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	_, ln := w.live(0, false)
	ln.News.init()
	close(ln.News.ready)
	ln.Relayer.Told = func(turn Turn) {
		last = turn
		stop() // after the first
	}
	if err := ln.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if !last.Over || last.Lane != w.lane {
		t.Errorf("the end is told as %+v", last)
	}
}
