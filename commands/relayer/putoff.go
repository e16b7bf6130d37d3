package relayer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// The queue is claimed from its head. What stands there and cannot be carried on, as its gas
// is not known, or it may not pay enough or not be signed for now, would be claimed again and
// again while what stands behind it waits. So it is given back at first, as it may have been a
// moment's trouble, and keeps its claim until that lapses when it was not one; and while
// nothing of what is claimed can be carried on, the next claim is for twice as much, and in the
// end every other one for what stands behind it, and so on to the queue's end. It may be
// the trouble of this lane's signer alone, who lacks the value, say: so what others of a pool
// may carry out is given back again once its claim has lapsed, for as long as they need to
// come by.

// putOffMax bounds how many intents are kept in mind that could not be carried on.
const putOffMax = 10 * claimMax

// delay is since when an intent could not be carried on, and until when.
type delay struct{ first, last time.Time }

// putOff notes that an intent cannot be carried on, and reports whether that has been so for
// long, by which it is to keep its claim.
func (a *actor) putOff(id chain.IntentID, from intent.From) bool {
	now := a.Now()
	over := func(_ chain.IntentID, d delay) bool { return now.Sub(d.last) > 2*a.Settings.Claim }
	if len(a.delayed) >= putOffMax {
		maps.DeleteFunc(a.delayed, over)
	}
	d, known := a.delayed[id]
	switch {
	case known && !over(id, d):
	case len(a.delayed) >= putOffMax:
		return true
	default:
		d.first = now
	}
	d.last = now
	a.delayed[id] = d
	long := now.Sub(d.first) >= a.Settings.Poll
	if long && from.Signer == nil {
		delete(a.delayed, id)
	}
	return long
}

// unclear is what could not be found out about an intent that keeps its claim.
type unclear struct {
	why   error
	since time.Time
	until time.Time
}

// waits keeps in mind why an intent waits that keeps its claim: of several the first, for
// as long as the log is told of it once.
func (a *actor) waits(why error) {
	now := a.Now()
	if !now.Before(a.unclear.until) || now.Sub(a.unclear.since) >= tellEvery {
		a.unclear.why, a.unclear.since = why, now
	}
	a.unclear.until = now.Add(a.Settings.Claim)
}

// remind tells of the trouble of intents that are not looked at before their claims lapse.
func (a *actor) remind(context.Context) error {
	if !a.Now().Before(a.unclear.until) {
		return nil
	}
	return fmt.Errorf("intents have to wait, one because %w", a.unclear.why)
}

// sweep is a way through what stands in the queue behind what cannot be carried on.
type sweep struct {
	at  event.Position // what stands up to there was claimed; 0: it begins with the next
	due bool           // the next claim goes on with it, and not at the queue's head
}

// swept is up to where nothing is left to be claimed by a sweep: up to the last of the client
// that has come least far.
func swept(claimed []intent.Claimed) event.Position {
	last := map[string]event.Position{}
	for _, c := range claimed {
		last[c.Client] = max(last[c.Client], c.Position)
	}
	return slices.Min(slices.Collect(maps.Values(last)))
}

// after is where the next claim begins.
func (a *actor) after() event.Position {
	if a.sweep.due {
		return a.sweep.at
	}
	return 0
}

// reach is for how many intents the next claim is.
func (a *actor) reach(room int) int { return min(max(room, a.wider), claimMax) }

// widen has the next claim reach further if this one was for as many as there may be, and
// none of them can be carried on.
func (a *actor) widen(room int, claimed []intent.Claimed) {
	n := len(claimed)
	switch full, vain := n >= a.reach(room), len(a.ready) == 0; {
	case a.sweep.due:
		if a.sweep.due = false; !full {
			a.sweep.at = 0
		} else if vain {
			a.sweep.at = swept(claimed)
		}
	case !full || !vain:
		a.wider, a.sweep = 0, sweep{}
	default:
		if a.sweep.due = n == claimMax; a.sweep.due && a.sweep.at == 0 {
			a.sweep.at = swept(claimed)
		}
		a.wider = 2 * n
	}
}

// fit gives back what is ready and beyond the room that there is.
func (a *actor) fit(ctx context.Context, room int) error {
	if len(a.ready) <= room {
		return nil
	}
	more := idsOf(a.ready[room:])
	a.ready = a.ready[:room]
	return a.giveBack(ctx, more)
}

// leave ends what this holder may do with its claims of rows that wait, which keep their
// claims: those behind them wait too, here as elsewhere.
func (a *actor) leave() {
	if a.leaves {
		a.claims, a.leaves = a.claims+1, false
	}
}
