package rpc

import (
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

const (
	// paceMax is over how many of the last blocks at most their pace is taken, at least
	// half as many once so many were seen. Headers tell whole seconds, so it is known to
	// that share of one.
	paceMax = 256
	// stepShare is how exactly it is found out when blocks become known, as a share of
	// the time between two.
	stepShare = 16
	// driftShare is how much less is known of that with each block, as a share of it,
	// though the pace is known: clocks differ.
	driftShare = 8
	// questionPause is the shortest between two questions: a poll that is no longer is
	// kept to as it is.
	questionPause = 100 * time.Millisecond
	// stepMost is how exactly at least it is found out when blocks become known.
	stepMost = 125 * time.Millisecond
	// firstShare is how often is asked, as a share of the poll, as long as no pace is
	// known, for the first few questions.
	firstShare, firstMax = 4, 40
)

// cadence learns when the nodes of a chain come to know a new block, so that they are
// asked just then: not a poll later, and hardly more often. It goes by the pace that the
// blocks' own headers have, and by which questions a new block was the answer to.
type cadence struct {
	poll time.Duration // the longest pause
	now  func() time.Time

	mu         sync.Mutex
	since      chain.Block   // from here on the pace is taken
	half       chain.Block   // from here on it is going to be
	head       chain.Block   // the last one that was seen
	pace       time.Duration // between two blocks; 0 is not known
	doubt      time.Duration // by which the pace may be wrong
	questions  int
	asked      time.Time // last
	early      time.Time // the next block was not known then, or is not to be expected
	late       time.Time // by then it is expected
	overdue    int       // questions after that
	due        time.Time // to be asked again
	interested map[chan struct{}]struct{}
}

func newCadence(poll time.Duration, now func() time.Time) *cadence {
	return &cadence{poll: poll, now: now, interested: map[chan struct{}]struct{}{}}
}

// saw notes that this was the newest block when that was asked.
func (c *cadence) saw(asked time.Time, b chain.Block) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !asked.After(c.asked) {
		return // it was slower than one who was asked after it
	}
	if b.Hash == c.head.Hash {
		c.waits(asked)
	} else {
		c.meets(asked, b)
	}
	c.asked = asked
	c.questions++
	c.due = asked.Add(c.pause(asked))
	for ch := range c.interested {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// meets notes a new block, which was not there when it was asked before.
func (c *cadence) meets(asked time.Time, b chain.Block) {
	early := c.asked
	if b.Number == c.head.Number+1 && c.early.After(early) && c.early.Before(asked) {
		early = c.early
	}
	c.learn(b)
	c.overdue = 0
	c.early, c.late = early.Add(c.pace-c.doubt), asked.Add(c.pace)
}

// learn takes a block into the pace.
func (c *cadence) learn(b chain.Block) {
	if b.Number <= c.head.Number || c.head.Hash.IsZero() || b.Time < c.since.Time {
		c.since, c.half, c.pace = b, b, 0 // a fork, or the first one
	}
	c.head = b
	if b.Number-c.half.Number >= paceMax/2 {
		c.since, c.half = c.half, b
	}
	blocks := b.Number - c.since.Number
	if blocks == 0 {
		return
	}
	before := c.pace
	c.pace = time.Duration(b.Time-c.since.Time) * time.Second / time.Duration(blocks) //nolint:gosec // both are small
	c.doubt = time.Second / time.Duration(blocks)                                     //nolint:gosec // as above
	if c.pace == before && c.pace%time.Second == 0 {
		c.doubt = min(c.doubt, c.step()/driftShare) // of whole seconds headers leave none
	}
}

// waits notes that there was nothing new.
func (c *cadence) waits(asked time.Time) {
	if asked.After(c.early) {
		c.early = asked
	}
	if !asked.Before(c.late) {
		c.late = asked.Add(c.step() / 2 << min(c.overdue, 16))
		c.overdue++
	}
}

// step is how exactly it is found out when a block becomes known.
func (c *cadence) step() time.Duration {
	return max(min(c.pace/stepShare, stepMost), time.Millisecond)
}

// pause is how long to wait with the next question. While it is known only roughly when
// the block comes, it is asked half-way.
func (c *cadence) pause(asked time.Time) time.Duration {
	switch {
	case c.pace == 0 && c.questions < firstMax:
		return min(max(c.poll/firstShare, questionPause), c.poll)
	case c.pace == 0:
		return c.poll
	}
	next := c.late
	if open := c.late.Sub(c.early); c.overdue == 0 && open > c.step() {
		next = c.early.Add(open / 2)
	}
	return min(max(next.Sub(asked), questionPause), c.poll)
}

// wait is how long to wait from now on; a poll, when what was due is being asked.
func (c *cadence) wait() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.due.Sub(c.now()); d > 0 {
		return d
	}
	return c.poll
}

// left is how long to wait from now on for what has just been noted.
func (c *cadence) left() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.due.Sub(c.now()), 0)
}

// follow gives a channel that is told whenever something was noted, until it is ended.
func (c *cadence) follow() (changed <-chan struct{}, end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan struct{}, 1)
	c.interested[ch] = struct{}{}
	return ch, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.interested, ch)
	}
}
