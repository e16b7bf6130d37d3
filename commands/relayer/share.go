package relayer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/signer"
)

// part is a lane's place among those of its process that may claim the same intents.
type part struct {
	told   bool // it was
	sender chain.Address
	key    chain.NonceKey
	// onlyAsked is [Lane.OnlyAsked].
	onlyAsked bool
	pools     []string
	signer.Share
}

// mayClaim reports whether an intent is one for the lane.
func (p part) mayClaim(w intent.Waiting) bool {
	if !intent.TakesKey(p.key, p.onlyAsked, w.Key) {
		return false
	}
	if w.From.Signer != nil {
		return *w.From.Signer == p.sender
	}
	return slices.Contains(p.pools, w.From.Pool)
}

// tellPart lets the other lanes know what this one has to do.
func (n *News) tellPart(of *inbox, p part) {
	n.mu.Lock()
	defer n.mu.Unlock()
	of.part = p
}

// Wake has lanes look whether there are intents to claim: for each fresh one the lane that
// has least to do of those it is for; and if there may be more, all of them. It never
// blocks.
func (n *News) Wake(fresh []intent.Waiting, more bool) {
	n.init()
	n.mu.Lock()
	defer n.mu.Unlock()
	called, row := map[*inbox]int{}, map[*inbox]bool{}
	for _, w := range fresh {
		switch {
		case w.Chain != n.Chain:
		case w.Row != (intent.Row{}): // the queue knows which of them it is for
			for _, b := range n.boxes {
				row[b] = row[b] || b.part.mayClaim(w)
			}
		default:
			if b := n.least(w, called); b != nil {
				called[b]++
			}
		}
	}
	for _, b := range n.boxes {
		if more || called[b] > 0 || row[b] || !b.part.told {
			b.call()
		}
	}
}

// least is the lane that has least to do of those that may claim an intent and have room,
// by turns; nil when there is none. Called is how many each is going to get beside.
func (n *News) least(w intent.Waiting, called map[*inbox]int) *inbox {
	best, at := (*inbox)(nil), 0
	for i := range n.boxes {
		k := (n.first + i) % len(n.boxes)
		b := n.boxes[k]
		if !b.part.mayClaim(w) || called[b] >= b.part.Room {
			continue
		}
		if best == nil || b.part.InFlight+called[b] < best.part.InFlight+called[best] {
			best, at = b, k
		}
	}
	if best != nil {
		n.first = at + 1
	}
	return best
}

// others are the parts of the other lanes that may claim what this one may.
func (n *News) others(of *inbox) (others []signer.Share) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, b := range n.boxes {
		if b != of && b.part.sharesWith(of.part) {
			others = append(others, b.part.Share)
		}
	}
	return others
}

// sharesWith reports whether two lanes may claim the same intents.
func (p part) sharesWith(of part) bool {
	return p.key == of.key && slices.ContainsFunc(p.pools, func(pool string) bool { return slices.Contains(of.pools, pool) })
}

// wakeOthers has the other lanes look whether there are intents to claim that have room, and
// may claim what this one may.
func (n *News) wakeOthers(of *inbox) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, b := range n.boxes {
		if b != of && (b.part.Room > 0 && b.part.sharesWith(of.part) || !b.part.told) {
			b.call()
		}
	}
}

// call has the lane look whether there are intents to claim.
func (b *inbox) call() {
	b.mu.Lock()
	b.claim = true
	b.mu.Unlock()
	b.ring()
}

// tellPart tells the others what this lane has to do. What room it had was looked at last
// when it had so many in flight.
func (a *actor) tellPart() {
	load := a.held.State.InFlight()
	room := 0
	if a.roomy > 0 {
		room = min(max(a.roomy+a.loaded-load, 0), a.Settings.Budget)
	}
	a.News.tellPart(a.box, part{true, a.ID.Sender, a.ID.Key, a.OnlyAsked, a.Pools, signer.Share{InFlight: load, Room: room}})
}

// claimShare claims what is the lane's to carry out, of which there may be so much: all that is
// for its signer alone, and of what its pools are asked for as much as brings it up to
// where the other lanes of this process stand. What it leaves to them, and they have not
// taken after [Settings.Poll], it takes all the same. Between processes, who gets on best
// takes most; and so it is while more waits than a lane has room for.
func (a *actor) claimShare(ctx context.Context, room int) ([]intent.Claimed, error) {
	mine, others := signer.Share{InFlight: a.held.State.InFlight(), Room: room}, a.News.others(a.box)
	pools, now := a.Pools, a.Now()
	if len(others) > 0 && signer.Claim(1, mine, others) == 0 && now.Sub(a.shared) < a.Settings.Poll && !a.hasRows() && a.wider == 0 {
		pools = nil // others have less to do
		if a.called {
			defer a.News.wakeOthers(a.box)
		}
	} else {
		a.shared = now
	}
	claimed, err := a.Queue.Claim(ctx, intent.Claim{Lane: a.ID, Pools: pools, Holder: a.holder(), TTL: a.Settings.Claim, Limit: a.reach(room), After: a.after(), Turn: a.served, OnlyAsked: a.OnlyAsked})
	if err != nil {
		a.claims++
		return nil, fmt.Errorf("claim intents: %w", err)
	}
	a.idle.found(len(claimed))
	if n := len(claimed); n > 0 {
		a.served = claimed[n-1].Client
	}
	a.claim = len(claimed) == a.reach(room)
	if pools == nil || len(others) == 0 || a.claim {
		return claimed, nil
	}
	mine.Room = a.reach(room) // it may be more than there is room for, of which the rest is given back
	kept, left := a.split(claimed, mine, others, now)
	if len(left) == 0 {
		return kept, nil
	}
	if err := a.giveBack(ctx, left); err != nil {
		return kept, err
	}
	a.News.wakeOthers(a.box)
	return kept, nil
}

// idle counts polls of a lane for whose nonce key intents have to ask. A client may open
// many such lanes, and most have nothing to do: they claim at each poll at first, and less
// often the longer nothing comes. News of an intent wakes them at once.
type idle struct {
	polls  int // since the last claim
	claims int // in a row that found nothing
}

// idleMax bounds how many polls pass between two claims, as a power of two.
const idleMax = 3

func (i *idle) found(n int) {
	if i.claims = min(i.claims+1, idleMax); n > 0 {
		i.claims = 0
	}
	i.polls = 0
}

// isDue reports whether the lane claims at this poll.
func (a *actor) isDue() bool {
	a.idle.polls++
	return !a.OnlyAsked || a.idle.polls >= 1<<a.idle.claims
}

// split is what a lane keeps of its claim, and what it leaves to others: the last ones, of
// those that others may carry out. A row stays together.
func (a *actor) split(claimed []intent.Claimed, mine signer.Share, others []signer.Share, now time.Time) (kept []intent.Claimed, left []chain.IntentID) {
	since, free := map[chain.IntentID]time.Time{}, 0
	for _, c := range claimed {
		first, seen := a.since[c.ID]
		switch {
		case c.From.Signer != nil || c.Row.Order != "" || seen && now.Sub(first) >= a.Settings.Poll: // it is this lane's
		case seen:
			since[c.ID], free = first, free+1
		default:
			since[c.ID], free = now, free+1
		}
	}
	mine.InFlight += len(claimed) - free
	mine.Room -= len(claimed) - free
	share := signer.Claim(free, mine, others)
	for _, c := range claimed {
		delete(a.since, c.ID)
		_, shared := since[c.ID]
		if shared && share <= 0 {
			left = append(left, c.ID)
			continue
		}
		if shared {
			share--
			delete(since, c.ID)
		}
		kept = append(kept, c)
	}
	for id, first := range a.since { // others have it, and may yet give it back
		if now.Sub(first) <= 2*a.Settings.Claim && len(since) < putOffMax {
			since[id] = first
		}
	}
	a.since = since
	return kept, left
}

// hasRows reports whether any intent of a row is open in the lane: the next ones of those
// rows can be claimed by it alone.
func (a *actor) hasRows() bool {
	for _, j := range a.jobs {
		if j.intent.State.Requested.Request.Order != "" {
			return true
		}
	}
	return false
}
