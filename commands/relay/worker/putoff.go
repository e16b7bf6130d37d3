package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Lanes claim from the head of the queue. Blocked intents there, with unknown gas, too low
// a fee limit, or no permission to be signed now, would be claimed again and again while
// the intents behind them wait. So a blocked intent is returned to the queue at first, in
// case the error is transient. If it stays blocked, it keeps its claim until that lapses.
//
// While no claimed intent can continue, each claim doubles in size. At the maximum, every
// other claim sweeps on behind the blocked intents, to the end of the queue.
//
// The cause may lie with this lane's signer alone, for example too low a balance. So an
// intent that other signers of a pool may execute is returned again after its claim has
// lapsed, for long enough that they can claim it.

// putOffMax bounds how many blocked intents are remembered.
const putOffMax = 10 * claimMax

// delay is when an intent was first and last found blocked.
type delay struct{ first, last time.Time }

// putOff notes that an intent is blocked, and reports whether it has been for so long that
// it is to keep its claim.
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

// unclear is the error of a waiting intent that keeps its claim.
type unclear struct {
	why   error
	since time.Time
	until time.Time
}

// waits remembers the error of a waiting intent that keeps its claim: the first one of
// several, for tellEvery.
func (a *actor) waits(why error) {
	now := a.Now()
	if !now.Before(a.unclear.until) || now.Sub(a.unclear.since) >= tellEvery {
		a.unclear.why, a.unclear.since = why, now
	}
	a.unclear.until = now.Add(a.Settings.Claim)
}

// remind returns the error of intents that are not looked at before their claims lapse.
func (a *actor) remind(context.Context) error {
	if !a.Now().Before(a.unclear.until) {
		return nil
	}
	return fmt.Errorf("intents wait, one of them because %w", a.unclear.why)
}

// sweep is a pass through the queue behind blocked intents.
type sweep struct {
	at  eventlog.Position // end of the last swept claim; 0: the sweep begins with the next claim
	due bool              // the next claim continues the sweep instead of starting at the queue's head
}

// swept returns the position up to which a sweep has left no intent: the last position of
// the client that got least far.
func swept(claimed []intent.Claimed) eventlog.Position {
	last := map[string]eventlog.Position{}
	for _, c := range claimed {
		last[c.Client] = max(last[c.Client], c.Position)
	}
	return slices.Min(slices.Collect(maps.Values(last)))
}

// after returns the position at which the next claim begins.
func (a *actor) after() eventlog.Position {
	if a.sweep.due {
		return a.sweep.at
	}
	return 0
}

// reach returns the size of the next claim.
func (a *actor) reach(room int) int { return min(max(room, a.wider), claimMax) }

// widen enlarges the next claim if this claim was full and none of its intents can
// continue.
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

// fit returns intents in a.ready beyond the room to the queue.
func (a *actor) fit(ctx context.Context, room int) error {
	if len(a.ready) <= room {
		return nil
	}
	more := idsOf(a.ready[room:])
	a.ready = a.ready[:room]
	return a.giveBack(ctx, more)
}

// leave starts a new claimed set if ordering groups wait among the claims. The claims stay,
// so that the intents behind them wait in all lanes.
func (a *actor) leave() {
	if a.leaves {
		a.claims, a.leaves = a.claims+1, false
	}
}
