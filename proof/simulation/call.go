package simulation

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// kind is the purpose of a call, which determines its possible faults.
type kind int

const (
	reading kind = iota // from the store
	writing             // to the store
	asking              // a node
	viewing             // a transaction or query on the read models
	signing             // by a key's custodian
	posting             // to a webhook receiver
	telling             // to the world: no caller waits, and nothing fails
)

// call is a replica's request to the world.
type call struct {
	replica *replica
	order   uint64 // of admission
	by      string // the name and incarnation of the replica, or a client
	kind    kind
	name    string // describes the call completely
	do      func() // executes it
	ready   func() bool
	log     bool                // to a log in a cluster
	until   func(answer func()) // calls answer once there is one; nil: as soon as do has returned
	fate    fate

	carried bool
	err     error // error instead of an answer
	done    chan struct{}
	left    atomic.Bool // the caller no longer waits
}

// fate is the outcome of a call.
type fate struct {
	name   string        // name of the fault; empty: none
	wait   time.Duration // delay before it is executed
	lost   bool          // it is not executed
	cut    bool          // the answer is lost
	late   bool          // it is executed even if the caller no longer waits
	twice  bool          // it is executed twice
	never  bool          // no answer ever arrives
	reply  time.Duration // delay of the answer
	commit int           // fault of the commit of a read-model transaction: see dbtx
	err    error         // the answer if it is lost or cut
}

// Errors of a remote store.
var (
	errRefused = errors.New("simulated store: connection refused")
	errCut     = errors.New("simulated store: connection cut, outcome unknown")
	errCrashed = errors.New("simulated replica: crashed")
)

// call asks the world to execute do, which it does once, not at all, or without an answer. The
// caller may read do's results only after a nil error.
func (r *replica) call(ctx context.Context, k kind, name string, do func()) error {
	return r.callWhen(ctx, k, name, nil, do)
}

// callWhen is call for an action that must wait until ready returns true.
func (r *replica) callWhen(ctx context.Context, k kind, name string, ready func() bool, do func()) error {
	return r.ask(ctx, &call{kind: k, name: name, do: do, ready: ready})
}

// ask hands a call over to the world and waits for its answer.
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

// tell hands an action over to the world without waiting for it.
func (r *replica) tell(name string, do func()) {
	if r.dead.Load() {
		return
	}
	r.world.agenda.park(&call{replica: r, by: r.id, kind: telling, name: name, do: do, done: make(chan struct{})})
}

// admit draws the fate of a call and schedules it.
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

// carryOut executes a call, according to its fate.
func (w *world) carryOut(c *call) {
	r := c.replica
	if r != nil && !r.parked[c] {
		return // already buried
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

// reply answers a call after the answer's delay.
func (w *world) reply(c *call) {
	if c.fate.reply > 0 {
		w.agenda.after(c.fate.reply, "", func() { w.answer(c) })
		return
	}
	w.answer(c)
}

// answer resumes the caller.
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

// bury ends a call of a crashed replica. The call may have been executed all the same.
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
