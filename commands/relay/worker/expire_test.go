package worker

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// freeze stops the blocks that delivery remembers, as if no watcher ran.
func (w *world) freeze() {
	w.t.Helper()
	var err error
	w.board, err = w.Blocks(w.t.Context(), moderato)
	must(w.t, err)
}

// within sets a deadline from now.
func (w *world) within(d time.Duration) func(*intent.Request) {
	return func(r *intent.Request) { r.Deadline = uint64(w.clock.now().Add(d).Unix()) }
}

// carriedOut counts the attempts of an intent that are not no-ops, and how many of them
// were handed to delivery.
func (w *world) carriedOut(id chain.IntentID) (made, handed int) {
	w.t.Helper()
	accepted := w.accepted()
	for _, at := range w.intent(id).Attempts {
		if at.Kind == intent.NoOp {
			continue
		}
		made++
		for _, s := range accepted {
			if s.Accepted.Hash == at.Hash {
				handed++
			}
		}
	}
	return made, handed
}

// The deadline of an intent passes while no process runs. The next process neither signs
// for it nor hands over its attempts, wherever the previous one died. The same holds if
// delivery remembers only blocks before the deadline, and if no node answers. Intents
// without a deadline continue.
func TestDeadlineOverWhenNobodyRan(t *testing.T) {
	for _, away := range []bool{false, true} {
		for _, point := range []string{"", "budget.reserved", "lane.reserved", "intents.assigned", "attempts.kept", "lane.attempted", "intents.told"} {
			name := cmp.Or(point, "not claimed")
			if away {
				name += ", and no node answers"
			}
			t.Run(name, func(t *testing.T) {
				w := newWorld(t)
				first := w.ask(w.request(0))[0]
				w.until(w.worker(), "the lane knows where it is", w.ended(intent.StatusCompleted, first))
				ids := w.ask(w.request(1, w.within(10*time.Second)), w.request(2))
				if point != "" {
					l, ln := w.live(0, false)
					l.point = point
					w.doomed(l, ln, func() bool { return false })
				}
				w.freeze()
				for range 20 {
					w.block()
				}
				a, signed := w.worker(), len(w.attempted())
				if away {
					w.away = errAway
					for range 3 {
						_ = w.turns(a, 1) // it returns the nodes' error
					}
					if made, _ := w.carriedOut(ids[1]); made != 1 {
						t.Errorf("%d attempts for what has no deadline", made)
					}
					w.away = nil
					w.clock.pass(w.settings.Poll) // it reads the chain again at the next poll
				}
				w.until(a, "the other is done", w.ended(intent.StatusCompleted, ids[1]))
				if s := w.intent(ids[0]); s.Status() != intent.StatusFailed || s.End.Reason != intent.Deadline {
					t.Errorf("%s, %+v", s.Status(), s.End)
				}
				made, handed := w.carriedOut(ids[0])
				if handed > 0 || made > min(signed-1, 1) {
					t.Errorf("%d attempts for what is void, of which %d were handed over", made, handed)
				}
				w.judge()
			})
		}
	}
}

// No watcher runs, or it has yet to catch up, while lanes are worked on: deadlines are
// judged by the nodes' answers.
func TestDeadlineWhenNobodyWatches(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	must(t, w.turns(a, 1))
	w.freeze()
	for range 20 {
		w.block()
	}
	past := func(r *intent.Request) { r.Deadline = w.chain.Head().Time - 5 }
	late := w.request(1, past)
	w.wish(late.ID(), intent.Create{Request: late, At: w.clock.now().Add(-time.Minute)})
	w.feed()
	must(t, w.turns(a, 1))
	for n := w.board[len(w.board)-1].Number; n < w.chain.Head().Number-5; n++ {
		next, _ := w.chain.Canonical(n + 1)
		w.board = append(w.board, next)
		w.clock.pass(time.Second)
		other := w.request(int(n)+10, past)
		w.wish(other.ID(), intent.Create{Request: other, At: w.clock.now().Add(-time.Minute)})
		w.feed()
		must(t, w.turns(a, 1))
	}
	if n := len(w.attempted()); n != 0 {
		t.Errorf("%d attempts for what is void", n)
	}
	if s := w.intent(late.ID()); s.Status() != intent.StatusFailed || s.End.Reason != intent.Deadline {
		t.Errorf("%s, %+v", s.Status(), s.End)
	}
}

// On a halted chain, time stands still: an intent with a deadline is executed when the
// chain continues.
func TestDeadlineOnAChainThatStands(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	must(t, w.turns(a, 1))
	w.clock.pass(10 * time.Minute)
	request := w.request(1, func(r *intent.Request) { r.Deadline = w.chain.Head().Time + 700 })
	id := w.ask(request)[0]
	must(t, w.turns(a, 2))
	if _, handed := w.carriedOut(id); handed != 1 {
		t.Errorf("it was handed over %d times", handed)
	}
	w.until(a, "it is done", w.ended(intent.StatusCompleted, id))
	w.judge()
}

// Nodes are not asked for the time while blocks arrive in time.
func TestDeadlineAsksNobody(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	must(t, w.turns(a, 1))
	before := w.asked
	var ids []chain.IntentID
	for n := range 30 {
		w.block()
		ids = append(ids, w.ask(w.request(n, w.within(time.Minute)))...)
		must(t, w.turns(a, 1))
	}
	if n := w.asked - before; n > 0 {
		t.Errorf("nodes were asked %d times", n)
	}
	w.until(a, "they are done", w.ended(intent.StatusCompleted, ids...))
	w.judge()
}

// Blocks that delivery remembers may be of a branch that the chain has left while no
// process ran: they complete no intent.
func TestTrustsNoOldBranch(t *testing.T) {
	w := newWorld(t)
	w.settings.Trusted = 1
	id := w.ask(w.request(1))[0]
	_, ln := w.live(0, false)
	first, err := w.opened(ln)
	must(t, err)
	must(t, w.turns(first, 1))
	w.block()
	w.freeze()
	must(t, w.chain.Reorg(1, true))
	a := w.worker()
	must(t, w.turns(a, 3))
	if s := w.intent(id); s.Receipt == nil || s.End != nil {
		t.Errorf("it is %s by blocks that are not the chain's, with the receipt %+v", s.Status(), s.Receipt)
	}
	w.watch()
	w.board = nil
	w.until(a, "it has come out", func() bool { return w.intent(id).End != nil })
	if s := w.intent(id); s.Status() != intent.StatusCompleted || slices.ContainsFunc(s.Told, func(b chain.Block) bool {
		at, _ := w.chain.Canonical(b.Number)
		return at.Hash != b.Hash
	}) {
		t.Errorf("%s, told of %+v", s.Status(), s.Told)
	}
	w.until(a, "the lane is empty", w.ended(intent.StatusCompleted, id))
	w.judge()
}

// Nodes that answer more slowly than currentFor are not asked for each nonce again. The
// lane would stand still meanwhile, also for intents without a deadline.
func TestDeadlinesWhenNodesAreSlow(t *testing.T) {
	const many = 30
	w := newWorld(t)
	a := w.worker()
	must(t, w.turns(a, 1))
	var requests []intent.Request
	for n := range many {
		requests = append(requests, w.request(n, w.within(time.Hour)))
	}
	ids := w.ask(requests...)
	w.slow = currentFor + time.Second
	for range 3 {
		w.clock.pass(currentFor)
		w.asked = 0
		must(t, w.turns(a, 1))
		if w.asked > 5 {
			t.Errorf("nodes were asked %d times in a turn", w.asked)
		}
	}
	w.slow = 0
	w.until(a, "all are done", w.ended(intent.StatusCompleted, ids...))
	w.judge()
}
