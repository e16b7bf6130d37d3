package worker

import (
	"context"
	"errors"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

func inRow(r *intent.Request) { r.Order = "row" }

// rising checks that the nonces of intents rise.
func (w *world) rising(ids ...chain.IntentID) {
	w.t.Helper()
	for i, id := range ids[1:] {
		if before, after := w.intent(ids[i]).Place.Nonce, w.intent(id).Place.Nonce; after <= before {
			w.t.Errorf("nonce %d comes after %d", after, before)
		}
	}
}

// mine mines blocks without updating the queue.
func (w *world) mine(n int) {
	w.t.Helper()
	for range n {
		_, err := w.chain.Mine()
		must(w.t, err)
		w.watch()
	}
}

// steps runs some steps of a turn.
func (w *world) steps(a *actor, steps ...func(context.Context) error) {
	w.t.Helper()
	a.box.all, a.claim = true, true
	for _, step := range steps {
		must(w.t, step(w.t.Context()))
	}
}

// The queue shows a nonce in the lane for the first intent of an ordering group, and is out
// of date. The intents behind it get no nonce until the queue catches up, and nothing is
// recorded however often they are claimed meanwhile. Then they follow it, or continue
// without it.
func TestRowBehindStaleHead(t *testing.T) {
	for name, c := range map[string]struct {
		becomes func(w *world, a *actor, head chain.IntentID) *actor // returns the actor that continues
		want    intent.Status
	}{
		"it was given back": {func(w *world, a *actor, head chain.IntentID) *actor {
			w.halt(everything)
			if err := a.sign(w.t.Context()); !isKept(err) {
				w.t.Fatal(err)
			}
			w.resume(everything)
			return a
		}, intent.StatusCompleted},
		"it was given back, and the lane's next holder claims": {func(w *world, a *actor, head chain.IntentID) *actor {
			w.halt(everything)
			if err := a.sign(w.t.Context()); !isKept(err) {
				w.t.Fatal(err)
			}
			w.resume(everything)
			return w.worker()
		}, intent.StatusCompleted},
		"it was canceled": {func(w *world, a *actor, head chain.IntentID) *actor {
			w.wish(head, intent.Cancel{At: w.clock.now()})
			w.steps(a, a.refresh, a.place)
			return a
		}, intent.StatusCanceled},
		"somebody else has used its nonce": {func(w *world, a *actor, head chain.IntentID) *actor {
			w.steps(a, a.sign, a.record, a.hand)
			_, err := w.chain.Mine(w.rival(w.intent(head).Place.Nonce))
			must(w.t, err)
			w.mine(3) // until that is final
			w.steps(a, a.poll, a.refresh, a.settle)
			return a
		}, intent.StatusCompleted},
		"it is mined for good": {func(w *world, a *actor, head chain.IntentID) *actor {
			w.steps(a, a.sign, a.record, a.hand)
			w.send()
			w.mine(4)
			w.steps(a, a.poll, a.refresh, a.settle)
			return a
		}, intent.StatusCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.worker()
			head := w.ask(w.request(1, inRow))[0]
			w.steps(a, a.poll, a.look, a.take, a.place)
			behind := w.ask(w.request(2, inRow), w.request(3, inRow))
			a = c.becomes(w, a, head)
			w.steps(a, a.refresh, a.square)
			if slot, holds := w.state().Held(head); holds {
				t.Fatalf("it has nonce %d", slot.Nonce)
			}
			before, err := w.db.Log().Head(t.Context())
			must(t, err)
			for range 5 {
				w.steps(a, a.refresh, a.take, a.place, a.square)
			}
			if after, err := w.db.Log().Head(t.Context()); err != nil || after != before {
				t.Errorf("%d events were recorded: %v", after-before, err)
			}
			for _, id := range behind {
				if slot, holds := w.state().Held(id); holds {
					t.Errorf("%s has got nonce %d", id, slot.Nonce)
				}
			}
			w.feed()
			w.until(a, "those behind it are done", w.ended(intent.StatusCompleted, behind...))
			w.is(head, c.want)
			row := behind
			if c.want == intent.StatusCompleted {
				row = append([]chain.IntentID{head}, behind...)
			}
			w.rising(row...)
			w.judge()
		})
	}
}

// The first intent of an ordering group has a nonce in the lane and may still lose it. The
// next one gets a higher nonce at once, unless it is unknown whether the first keeps its
// own.
func TestRowBehindHeldHead(t *testing.T) {
	requeue := intent.Requeue{Assignment: 1, Token: 1, Evidence: intent.Evidence{Kind: intent.Released}}
	for name, c := range map[string]struct {
		becomes func(w *world, a *actor, away *string, head chain.IntentID)
		waits   bool // for the head
	}{
		"it is to be signed for": {func(*world, *actor, *string, chain.IntentID) {}, false},
		"it is in a block": {func(w *world, a *actor, _ *string, _ chain.IntentID) {
			w.steps(a, a.sign, a.record, a.hand)
			w.send()
			w.mine(1)
			w.steps(a, a.poll, a.refresh, a.settle)
		}, false},
		"its block has left the chain": {func(w *world, a *actor, _ *string, _ chain.IntentID) {
			w.steps(a, a.sign, a.record, a.hand)
			w.send()
			w.mine(1)
			w.steps(a, a.poll, a.refresh, a.settle)
			must(w.t, w.chain.Reorg(1, false))
			w.watch()
			w.steps(a, a.poll, a.refresh, a.settle)
		}, false},
		"the lane's last holder has given it back": {func(w *world, _ *actor, _ *string, head chain.IntentID) {
			w.wish(head, requeue)
		}, true},
		"and that cannot be read": {func(w *world, _ *actor, away *string, head chain.IntentID) {
			w.wish(head, requeue)
			*away = string(intent.Stream(head))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, l := w.live(0, false)
			away := ""
			l.Relayer.Intents.Store = mute{l.Relayer.Intents.Store, &away}
			a, err := w.opened(l)
			must(t, err)
			head := w.ask(w.request(1, inRow))[0]
			w.steps(a, a.poll, a.look, a.take, a.place)
			behind := w.ask(w.request(2, inRow), w.request(3, inRow))
			c.becomes(w, a, &away, head)
			a.box.all, a.claim = true, true
			if err := a.refresh(t.Context()); err != nil && !errors.Is(err, errAway) {
				t.Fatal(err)
			}
			must(t, a.take(t.Context()))
			for _, id := range behind {
				if _, holds := w.state().Held(id); holds == c.waits {
					t.Errorf("%s holds a nonce: %t", id, holds)
				}
			}
			away = ""
			row := append([]chain.IntentID{head}, behind...)
			w.until(a, "the row is done", w.ended(intent.StatusCompleted, row...))
			w.rising(row...)
			w.judge()
		})
	}
}

// A holder that died had reserved nonces for an ordering group. The intent with the first
// nonce is elsewhere, or cannot be read: those behind it do not get theirs.
func TestRowReservedBefore(t *testing.T) {
	there := intent.Place{Signer: chain.Address{0x77}, Nonce: 5}
	for name, c := range map[string]struct {
		becomes func(w *world, away *string, head chain.IntentID)
		goesOn  bool // in this lane
	}{
		"the first is in another lane": {func(w *world, _ *string, head chain.IntentID) {
			w.wish(head, intent.Assign{Assignment: 1, Place: there, Token: 1, At: w.clock.now()})
		}, false},
		"the first cannot be read": {func(_ *world, away *string, head chain.IntentID) { *away = string(intent.Stream(head)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first, ln := w.live(0, false)
			first.point = "lane.reserved"
			row := w.ask(w.request(1, inRow), w.request(2, inRow), w.request(3, inRow))
			if !w.doomed(first, ln, func() bool { return false }) {
				t.Fatal("it did not die")
			}
			_, l := w.live(0, false)
			away := ""
			l.Relayer.Intents.Store = mute{l.Relayer.Intents.Store, &away}
			a, err := w.opened(l)
			must(t, err)
			c.becomes(w, &away, row[0])
			if err := w.turns(a, 1); err != nil && !errors.Is(err, errAway) {
				t.Fatal(err)
			}
			for _, id := range row[1:] {
				if p := w.intent(id).Place; p != nil {
					t.Errorf("%s has got %+v", id, *p)
				}
			}
			if !c.goesOn {
				return
			}
			away = ""
			w.until(a, "the row is done", w.ended(intent.StatusCompleted, row...))
			w.rising(row...)
			w.judge()
		})
	}
}

// jammed is a log that refuses appends to one stream.
type jammed struct {
	port.Store
	of eventlog.Stream
}

func (j jammed) Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	if stream == j.of {
		return eventlog.Appended{}, errAway
	}
	return j.Store.Append(ctx, stream, expected, events...)
}

// An ordering group returns its nonces from its end. If one intent cannot, the intents
// before it keep theirs, whichever holder continues.
func TestRowGivenBackInPart(t *testing.T) {
	for at := range 3 {
		w := newWorld(t)
		_, l := w.live(0, false)
		a, err := w.opened(l)
		must(t, err)
		row := w.ask(w.request(1, inRow), w.request(2, inRow), w.request(3, inRow))
		w.steps(a, a.poll, a.look, a.take, a.place)
		w.halt(everything)
		a.Intents.Store = jammed{a.Intents.Store, intent.Stream(row[at])}
		if err := a.sign(t.Context()); !errors.Is(err, errAway) {
			t.Fatal(err)
		}
		for i, id := range row {
			if placed := w.intent(id).Place != nil; placed != (i <= at) {
				t.Errorf("%d could not, and %d has a nonce: %t", at, i, placed)
			}
		}
		w.resume(everything)
		w.feed()
		w.until(w.worker(), "the row is done", w.ended(intent.StatusCompleted, row...))
		w.rising(row...)
		w.judge()
	}
}

// A former holder that does not know that it lost the lane tries to release nonces that the
// new holder is about to sign, at various moments. The ordering group is mined in order,
// and no nonce is wasted.
func TestRowGivenBackByFormerHolder(t *testing.T) {
	for name, after := range map[string]int{"at once": 0, "when the new one has read it": 1, "when the new one has told it": 2, "when it is signed": 3} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			former := w.worker()
			row := w.ask(w.request(1, inRow), w.request(2, inRow), w.request(3, inRow))
			w.steps(former, former.poll, former.look, former.take, former.place)
			a := w.worker()
			for i, step := range []func(context.Context) error{a.refresh, a.place, a.sign, a.record, a.hand} {
				if i == after {
					// Only the intent refuses it: the lane is asked after that.
					if err := former.release(t.Context(), reasonMarket, former.slots()[:1]); err == nil {
						t.Error("the lane has taken that")
					}
				}
				w.steps(a, step)
			}
			w.until(a, "the row is done", w.ended(intent.StatusCompleted, row...))
			w.rising(row...)
			for slot := range w.state().Slots() {
				t.Errorf("nonce %d is open", slot.Nonce)
			}
			if next := w.state().Next; next != uint64(len(row)) {
				t.Errorf("%d nonces were used", next)
			}
			w.judge()
		})
	}
}
