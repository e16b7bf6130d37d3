// Package lanes decides whether the promises about nonces were kept: P4 to P7, and what
// P8, P10 and P17 say of a signer's own attempts. It is fed the events of the log in their
// order and names the first bad one at once, as package promise does for transactions;
// the two can be fed side by side. A lane's life is followed by rules of its own, not
// by those of package lane: what is judged does not judge itself. What is kept of a lane
// is its open nonces, and where its cursor jumped.
package lanes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/lane"
	"github.com/tempo-watchtower/watchtower/domain/promise"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Settings say by which measure lanes are judged.
type Settings struct {
	// Hole is how long a nonce may keep others above it from landing because nothing
	// was signed for it; 0 leaves that out.
	Hole time.Duration
	// Attempts is how many of one nonce there may be within a minute; 0 leaves that out.
	Attempts int
}

// Judge judges the lanes of one history. It is not safe for use by several goroutines.
type Judge struct {
	s     Settings
	codec event.Codec[lane.Event]
	txs   event.Codec[tx.Event]
	lanes map[event.Stream]*course
	cases promise.Cases
	found []promise.Violation // by the event at hand
}

// New makes a judge of a history that begins with the first event of a log.
func New(s Settings) *Judge {
	return &Judge{s: s, codec: lane.Codec(), txs: tx.Codec(), lanes: map[event.Stream]*course{}}
}

// course is what the events of one lane have said.
type course struct {
	stream event.Stream
	holder string
	token  lane.Token
	known  bool
	next   uint64
	jumps  []lane.Span // over which the cursor went, without what was reclaimed
	open   map[uint64]*nonce
	holds  map[chain.IntentID]uint64
}

// nonce is one that was handed out and is not closed.
type nonce struct {
	intent   chain.IntentID // zero when it is free, or for a no-op
	noop     bool
	attempts []attempt
	landed   chain.Block // zero when it has not
	by       chain.Hash
	since    time.Time // it is a hole; zero when it is none
	told     bool      // that it has been one for too long
}

type attempt struct {
	intent chain.IntentID
	hash   chain.Hash
	fee    chain.Fee
	at     time.Time
	token  lane.Token
	// delivered means that the relay has handed it to delivery, under that token of the lane.
	delivered bool
	under     lane.Token
}

func (n *nonce) free() bool { return n.intent.IsZero() && !n.noop }

// broken notes a violation.
func (j *Judge) broken(p promise.Number, r event.Recorded, format string, args ...any) {
	j.found = append(j.found, promise.Violation{Promise: p, Stream: r.Stream, Position: r.Position, Evidence: fmt.Sprintf(format, args...)})
}

// Cases are those of each promise so far.
func (j *Judge) Cases() promise.Cases { return j.cases }

// Event judges the next event of the log. Of those of other aggregates only what the relay
// has delivered is looked at.
func (j *Judge) Event(r event.Recorded) []promise.Violation {
	j.found = nil
	if !strings.HasPrefix(string(r.Stream), lane.StreamPrefix) {
		j.delivered(r)
		return j.found
	}
	if _, err := lane.ParseStream(r.Stream); err != nil {
		j.broken(promise.P30, r, "%v", err)
	}
	e, err := j.codec.Decode(r.Name, r.Data)
	if err != nil {
		j.broken(promise.P30, r, "%v", err)
		return j.found
	}
	c := j.lanes[r.Stream]
	if c == nil {
		c = &course{stream: r.Stream, open: map[uint64]*nonce{}, holds: map[chain.IntentID]uint64{}}
		j.lanes[r.Stream] = c
	}
	j.fenced(c, r, e)
	j.judge(c, r, e)
	j.holes(c, r, r.At)
	return j.found
}

// Finish judges what only a whole history can show; now is its end, by the store's clock.
func (j *Judge) Finish(now time.Time) []promise.Violation {
	j.found = nil
	streams := make([]event.Stream, 0, len(j.lanes))
	for s := range j.lanes {
		streams = append(streams, s)
	}
	slices.Sort(streams)
	for _, s := range streams {
		j.holes(j.lanes[s], event.Recorded{Stream: s}, now)
	}
	return j.found
}

// fenced is P7: a token is one more than the last, and no fact bears another than the
// last one.
func (j *Judge) fenced(c *course, r event.Recorded, e lane.Event) {
	o, opens := e.(lane.Opened)
	if c.token > 1 || opens && c.token > 0 { // somebody has held it before, and may believe to still
		j.cases.Add(promise.P7)
	}
	if opens {
		if o.Token != c.token+1 {
			j.broken(promise.P7, r, "%s opens with token %d, the last was %d", o.Holder, o.Token, c.token)
		}
		c.holder, c.token = o.Holder, max(c.token, o.Token)
		return
	}
	if token := tokenOf(e); token != c.token {
		j.broken(promise.P7, r, "%s bears token %d, %s holds the lane with %d", r.Name, token, c.holder, c.token)
	}
}

// tokenOf is the token that a fact bears.
func tokenOf(e lane.Event) lane.Token {
	switch e := e.(type) {
	case lane.Opened:
		return e.Token
	case lane.Advanced:
		return e.Token
	case lane.Reserved:
		return e.Token
	case lane.Released:
		return e.Token
	case lane.Filled:
		return e.Token
	case lane.Attempted:
		return e.Token
	case lane.Landed:
		return e.Token
	case lane.Unlanded:
		return e.Token
	case lane.Lost:
		return e.Token
	case lane.Reclaimed:
		return e.Token
	}
	panic(fmt.Sprintf("lanes: unknown event %T", e))
}

func (j *Judge) judge(c *course, r event.Recorded, e lane.Event) {
	switch e := e.(type) {
	case lane.Opened: // was judged with its token
	case lane.Advanced:
		j.advanced(c, r, e)
	case lane.Reserved:
		j.reserved(c, r, e)
	case lane.Reclaimed:
		j.reclaimed(c, r, e)
	case lane.Released:
		j.released(c, r, e)
	case lane.Filled:
		j.filled(c, r, e)
	case lane.Attempted:
		j.attempted(c, r, e)
	case lane.Landed:
		j.landed(c, r, e)
	case lane.Unlanded:
		j.unlanded(c, r, e)
	case lane.Lost:
		j.lost(c, r, e)
	}
}

// holes is P5 for nonces that keep others waiting: each is told of once.
func (j *Judge) holes(c *course, r event.Recorded, now time.Time) {
	if j.s.Hole == 0 {
		return
	}
	var late []uint64
	for n, slot := range c.open {
		if !slot.told && !slot.since.IsZero() && now.Sub(slot.since) > j.s.Hole {
			slot.told, late = true, append(late, n)
		}
	}
	slices.Sort(late)
	for _, n := range late {
		j.broken(promise.P5, r, "nothing has been signed for nonce %d since %s, and others wait for it", n, c.open[n].since.UTC().Format(time.RFC3339))
	}
}
