// Package lanes checks the promises about nonces: P4 to P7, and P8, P10 and P17 for the relay's
// own attempts. It gets the log's events in order and reports a violation at once, like package
// promise for transactions; both can run side by side. It follows a lane by rules of its own,
// independent of package lane, so that the judged code does not judge itself. Per lane it keeps
// the open nonces and the jumped-over spans.
package lanes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// Settings are the limits for lanes.
type Settings struct {
	// Hole is how long an unsigned nonce may keep later ones from landing; 0 skips the check.
	Hole time.Duration
	// Attempts is the number of attempts allowed at one nonce per minute; 0 skips the check.
	Attempts int
}

// Judge judges the lanes of one history. It is not safe for concurrent use.
type Judge struct {
	s     Settings
	codec eventlog.Codec[lane.Event]
	txs   eventlog.Codec[tx.Event]
	lanes map[eventlog.Stream]*course
	cases promises.Cases
	found []promises.Violation // by the current event
}

// New returns a judge of a history that begins with the first event of a log.
func New(s Settings) *Judge {
	return &Judge{s: s, codec: lane.Codec(), txs: tx.Codec(), lanes: map[eventlog.Stream]*course{}}
}

// course is the judge's state of a lane.
type course struct {
	stream eventlog.Stream
	holder string
	token  lane.Token
	known  bool
	next   uint64
	jumps  []lane.Span // spans that the cursor jumped over, less reclaimed nonces
	open   map[uint64]*nonce
	holds  map[chain.IntentID]uint64
}

// nonce is a nonce that was reserved and is not closed.
type nonce struct {
	intent   chain.IntentID // zero: free, or for a no-op
	noop     bool
	attempts []attempt
	landed   chain.Block // zero: not landed
	by       chain.Hash
	since    time.Time // since when it is a hole; zero: no hole
	told     bool      // reported as a hole for too long
}

type attempt struct {
	intent chain.IntentID
	hash   chain.Hash
	fee    chain.Fee
	at     time.Time
	token  lane.Token
	// delivered means that the relay delivered it, while the lane had token under.
	delivered bool
	under     lane.Token
}

func (n *nonce) free() bool { return n.intent.IsZero() && !n.noop }

// broken records a violation.
func (j *Judge) broken(p promises.Number, r eventlog.Recorded, format string, args ...any) {
	j.found = append(j.found, promises.Violation{Promise: p, Stream: r.Stream, Position: r.Position, Evidence: fmt.Sprintf(format, args...)})
}

// Cases returns the cases of each promise so far.
func (j *Judge) Cases() promises.Cases { return j.cases }

// Event judges the next event of the log. In streams of other aggregates it checks only the
// relay's deliveries.
func (j *Judge) Event(r eventlog.Recorded) []promises.Violation {
	j.found = nil
	if !strings.HasPrefix(string(r.Stream), lane.StreamPrefix) {
		j.delivered(r)
		return j.found
	}
	if _, err := lane.ParseStream(r.Stream); err != nil {
		j.broken(promises.P30, r, "%v", err)
	}
	e, err := j.codec.Decode(r.Name, r.Data)
	if err != nil {
		j.broken(promises.P30, r, "%v", err)
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

// Finish makes the checks that need the whole history; now is its end, by the store's clock.
func (j *Judge) Finish(now time.Time) []promises.Violation {
	j.found = nil
	streams := make([]eventlog.Stream, 0, len(j.lanes))
	for s := range j.lanes {
		streams = append(streams, s)
	}
	slices.Sort(streams)
	for _, s := range streams {
		j.holes(j.lanes[s], eventlog.Recorded{Stream: s}, now)
	}
	return j.found
}

// fenced checks P7: a new token is one more than the last, and every event has the last token.
func (j *Judge) fenced(c *course, r eventlog.Recorded, e lane.Event) {
	o, opens := e.(lane.Opened)
	if c.token > 1 || opens && c.token > 0 { // an earlier holder may still act
		j.cases.Add(promises.P7)
	}
	if opens {
		if o.Token != c.token+1 {
			j.broken(promises.P7, r, "%s opens with token %d, the last was %d", o.Holder, o.Token, c.token)
		}
		c.holder, c.token = o.Holder, max(c.token, o.Token)
		return
	}
	if token := tokenOf(e); token != c.token {
		j.broken(promises.P7, r, "%s has token %d, but %s holds the lane with %d", r.Name, token, c.holder, c.token)
	}
}

// tokenOf returns an event's token.
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

func (j *Judge) judge(c *course, r eventlog.Recorded, e lane.Event) {
	switch e := e.(type) {
	case lane.Opened: // fenced has judged it
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

// holes checks P5 for nonces that later ones wait for: each is reported once.
func (j *Judge) holes(c *course, r eventlog.Recorded, now time.Time) {
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
		j.broken(promises.P5, r, "nothing has been signed for nonce %d since %s, and later nonces wait for it", n, c.open[n].since.UTC().Format(time.RFC3339))
	}
}
