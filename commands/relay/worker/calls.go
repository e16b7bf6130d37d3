package worker

import "time"

// A client calls the lanes that it asks for with each request, also with requests whose intents get
// no nonce. So after a call in vain, an OnlyAsked lane does not claim at the next calls for a while.
// It keeps these calls, and answers them when the pause is over or with an earlier claim.

// calls are the calls of an OnlyAsked lane to check for intents.
type calls struct {
	kept  bool          // a call waits for the end of the pause
	wait  time.Duration // length of the pause; 0: none
	until time.Time     // its end
}

// callsPerPoll is the shortest pause, as a part of [Settings.Poll], which is the longest one.
const callsPerPoll = 4

// left returns the rest of the pause. A clock that was set back does not prolong the pause.
func (c *calls) left(now time.Time) time.Duration {
	if left := c.until.Sub(now); left <= c.wait {
		return max(left, 0)
	}
	return 0
}

// take reports whether the lane answers its calls in this turn. called is set after a new call, and
// claims if the lane claims in this turn anyway.
func (c *calls) take(called, claims bool, now time.Time) bool {
	called = called || c.kept
	c.kept = called && !claims && c.left(now) > 0
	return called && !c.kept
}

// answered notes how a call was answered: in vain if no intent may get a nonce.
func (c *calls) answered(vain bool, now time.Time, poll time.Duration) {
	if !vain {
		c.wait = 0
		return
	}
	c.wait = min(max(2*c.wait, poll/callsPerPoll), poll)
	c.until = now.Add(c.wait)
}

// due returns a channel that is ready when the lane has to answer a call that it keeps; nil if it
// keeps none.
func (c *calls) due(now time.Time) <-chan time.Time {
	if !c.kept {
		return nil
	}
	return time.After(c.left(now))
}
