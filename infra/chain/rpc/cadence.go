package rpc

import (
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

const (
	// paceMax is the number of blocks over which the pace is averaged, at most; at least half
	// as many once that many were seen. Headers give whole seconds, so the pace's error is one
	// second divided by the number of blocks.
	paceMax = 256
	// stepShare is the precision of the arrival time, as a share of the block time.
	stepShare = 16
	// driftShare is the growth of the uncertainty per block, as a share of step, although the
	// pace is known: clocks differ.
	driftShare = 8
	// questionPause is the minimum between two questions. A shorter poll overrides it.
	questionPause = 100 * time.Millisecond
	// stepMost bounds the precision of the arrival time.
	stepMost = 125 * time.Millisecond
	// firstShare is the divisor of the poll interval for the first firstMax questions, while no
	// pace is known.
	firstShare, firstMax = 4, 40
)

// cadence predicts when the nodes of a chain learn of a new block, so that they are asked just
// then: not a poll interval later, and with few extra questions. It uses the pace in the block
// headers, and which questions returned a new block.
type cadence struct {
	poll time.Duration // the longest pause
	now  func() time.Time

	mu         sync.Mutex
	since      chain.Block   // the pace is measured from this block
	half       chain.Block   // the next start of the measurement
	head       chain.Block   // the newest block seen
	pace       time.Duration // time between two blocks; 0 if unknown
	doubt      time.Duration // the possible error of the pace
	questions  int
	asked      time.Time // time of the last question
	early      time.Time // the next block was unknown then, or is not expected before
	late       time.Time // it is expected by then
	overdue    int       // questions asked after late
	due        time.Time // time of the next question
	interested map[chan struct{}]struct{}
}

func newCadence(poll time.Duration, now func() time.Time) *cadence {
	return &cadence{poll: poll, now: now, interested: map[chan struct{}]struct{}{}}
}

// saw records that b was the newest block in the answer to the question asked at that time.
func (c *cadence) saw(asked time.Time, b chain.Block) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !asked.After(c.asked) {
		return // the answer is older than the last one recorded
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

// meets records a new block that was absent from the previous answer.
func (c *cadence) meets(asked time.Time, b chain.Block) {
	early := c.asked
	if b.Number == c.head.Number+1 && c.early.After(early) && c.early.Before(asked) {
		early = c.early
	}
	c.learn(b)
	c.overdue = 0
	c.early, c.late = early.Add(c.pace-c.doubt), asked.Add(c.pace)
}

// learn updates the pace with a block.
func (c *cadence) learn(b chain.Block) {
	if b.Number <= c.head.Number || c.head.Hash.IsZero() || b.Time < c.since.Time {
		c.since, c.half, c.pace = b, b, 0 // a fork, or the first block
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
		c.doubt = min(c.doubt, c.step()/driftShare) // headers have no rounding error if the pace is whole seconds
	}
}

// waits records an answer without a new block.
func (c *cadence) waits(asked time.Time) {
	if asked.After(c.early) {
		c.early = asked
	}
	if !asked.Before(c.late) {
		c.late = asked.Add(c.step() / 2 << min(c.overdue, 16))
		c.overdue++
	}
}

// step is the precision with which the arrival time is measured.
func (c *cadence) step() time.Duration {
	return max(min(c.pace/stepShare, stepMost), time.Millisecond)
}

// pause is the time until the next question. While the arrival time is uncertain by more than a
// step, the next question falls half-way.
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

// wait is the time from now to the next question. It is a poll interval if that question is
// already due.
func (c *cadence) wait() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.due.Sub(c.now()); d > 0 {
		return d
	}
	return c.poll
}

// left is the time from now to the next question; 0 if it is due.
func (c *cadence) left() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.due.Sub(c.now()), 0)
}

// follow returns a channel that is signalled after every record, until end is called.
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
