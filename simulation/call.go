package simulation

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// kind is what a call is for: what may become of it depends on that.
type kind int

const (
	reading kind = iota // from the store
	writing             // to the store
	asking              // a node
	viewing             // a transaction or query on the read models
	signing             // by who has a key
	posting             // to a receiver of webhooks
	telling             // the world: nobody waits, and nothing goes wrong
)

// call is something that a replica wants of the world.
type call struct {
	replica *replica
	order   uint64 // of admission
	by      string // the replica's name and incarnation, or a client's
	kind    kind
	name    string // says all of it
	do      func() // carries it out
	ready   func() bool
	log     bool                // it is of a log in a cluster
	until   func(answer func()) // calls answer when there is one; nil: as soon as do has returned
	fate    fate

	carried bool
	err     error // instead of an answer
	done    chan struct{}
	left    atomic.Bool // nobody waits any more
}

// fate is what becomes of a call.
type fate struct {
	name   string        // empty: nothing goes wrong
	wait   time.Duration // before it is carried out
	lost   bool          // it is not carried out
	cut    bool          // the answer is lost
	late   bool          // it is carried out even if nobody waits any more
	twice  bool          // it is carried out twice
	never  bool          // no answer ever comes
	reply  time.Duration // how long the answer takes
	commit int           // of a transaction on the read models: see dbtx
	err    error         // the answer when it is lost or cut
}

// Errors of a store that is far away.
var (
	errRefused = errors.New("simulated store: connection refused")
	errCut     = errors.New("simulated store: connection cut, outcome unknown")
	errCrashed = errors.New("simulated replica: crashed")
)

// call has the world carry something out, once, not at all, or without an answer. Only
// after nil may the caller look at what do has left for it.
func (r *replica) call(ctx context.Context, k kind, name string, do func()) error {
	return r.callWhen(ctx, k, name, nil, do)
}

// callWhen is call of what can only happen when ready says so.
func (r *replica) callWhen(ctx context.Context, k kind, name string, ready func() bool, do func()) error {
	return r.ask(ctx, &call{kind: k, name: name, do: do, ready: ready})
}

// ask leaves a call to the world and waits for its answer.
func (r *replica) ask(ctx context.Context, c *call) error {
	if r.dead.Load() {
		return errCrashed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.replica, c.by, c.done = r, r.id, make(chan struct{})
	r.world.agenda.park(c)
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
	}
	c.left.Store(true)
	return ctx.Err()
}

// tell leaves something to the world without waiting for it.
func (r *replica) tell(name string, do func()) {
	if r.dead.Load() {
		return
	}
	r.world.agenda.park(&call{replica: r, by: r.id, kind: telling, name: name, do: do, done: make(chan struct{})})
}

// admit draws the fate of a call and puts it on the agenda.
func (w *world) admit(c *call) {
	if c.replica != nil && c.replica.dead.Load() {
		w.bury(c)
		return
	}
	if c.ready != nil && !c.ready() {
		w.waiting = append(w.waiting, c)
		return
	}
	w.admitted++
	c.fate, c.order = w.draw(c), w.admitted
	if c.replica != nil {
		c.replica.parked[c] = true
	}
	w.agenda.after(c.fate.wait, "", func() { w.carryOut(c) })
}

// carryOut does what was asked, unless fate has it otherwise.
func (w *world) carryOut(c *call) {
	r := c.replica
	if r != nil && !r.parked[c] {
		return // buried
	}
	if r != nil && r.frozen.Load() {
		w.agenda.after(r.thaws-w.agenda.now()+w.agenda.between(0, 20*time.Millisecond), "", func() { w.carryOut(c) })
		return
	}
	left := c.left.Load()
	switch {
	case left && !c.fate.late, c.fate.lost:
	default:
		w.viewFate = c.fate
		c.carried = true
		c.do()
		if c.fate.twice {
			c.do()
		}
	}
	w.agenda.trace.add(c.by, c.name, c.fate.name, w.agenda.now().String())
	if c.fate.name != "" {
		w.faults[c.fate.name]++
	}
	if left {
		if c.fate.late {
			w.faults["done when nobody waited"]++
		}
		if r != nil {
			delete(r.parked, c)
		}
		return
	}
	if c.fate.lost || c.fate.cut {
		c.err = c.fate.err
	}
	if c.fate.never {
		return
	}
	if c.until != nil && c.carried && !c.fate.cut {
		c.until(func() { w.reply(c) })
		return
	}
	w.reply(c)
}

// reply answers a call after the time that its answer takes.
func (w *world) reply(c *call) {
	if c.fate.reply > 0 {
		w.agenda.after(c.fate.reply, "", func() { w.answer(c) })
		return
	}
	w.answer(c)
}

// answer lets the caller go on.
func (w *world) answer(c *call) {
	r := c.replica
	if r != nil {
		if !r.parked[c] {
			return
		}
		if r.frozen.Load() {
			w.agenda.after(r.thaws-w.agenda.now()+w.agenda.between(0, 20*time.Millisecond), "", func() { w.answer(c) })
			return
		}
		delete(r.parked, c)
	}
	close(c.done)
}

// bury ends a call of a replica that has crashed. What was under way may have been
// carried out all the same.
func (w *world) bury(c *call) {
	asked := c.kind == writing && (c.until == nil || !c.carried) || c.kind == posting && !c.carried && !c.left.Load()
	if c.replica.parked[c] && asked && !c.fate.lost && w.agenda.chance(0.5) {
		c.do()
		w.faults["done, and the asker has crashed"]++
		w.agenda.trace.add(c.by, c.name, "orphaned")
	}
	delete(c.replica.parked, c)
	c.err = errCrashed
	close(c.done)
}
