package worker

import (
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

// part is a lane's load and scope, by which the lanes of a process share intents.
type part struct {
	told   bool // the lane has reported it
	sender chain.Address
	key    chain.NonceKey
	// onlyAsked is [Lane.OnlyAsked].
	onlyAsked bool
	pools     []string
	signer.Share
}

// mayClaim reports whether the lane may claim an intent.
func (p part) mayClaim(w intent.Waiting) bool {
	if !intent.TakesKey(p.key, p.onlyAsked, w.Key) {
		return false
	}
	if w.From.Signer != nil {
		return *w.From.Signer == p.sender
	}
	return slices.Contains(p.pools, w.From.Pool)
}

// tellPart publishes a lane's load to the other lanes.
func (n *News) tellPart(of *inbox, p part) {
	n.mu.Lock()
	defer n.mu.Unlock()
	of.part = p
}

// Wake makes lanes check for intents to claim: for each fresh intent the least loaded lane
// that may claim it, and all lanes if more is set. It never blocks.
func (n *News) Wake(fresh []intent.Waiting, more bool) {
	n.init()
	n.mu.Lock()
	defer n.mu.Unlock()
	called, row := map[*inbox]int{}, map[*inbox]bool{}
	for _, w := range fresh {
		switch {
		case w.Chain != n.Chain:
		case w.Row != (intent.Row{}): // the queue decides which lane it is for
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

// Call makes lanes check for intents to claim.
func (n *News) Call(lanes []chain.Sequence) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, b := range n.boxes {
		called := func(id chain.Sequence) bool { return id.Sender == b.part.sender && id.Key == b.part.key }
		if len(lanes) > 0 && (!b.part.told || slices.ContainsFunc(lanes, called)) {
			b.call()
		}
	}
}

// least returns the least loaded lane that may claim an intent and has room, in turns among
// equals; nil if there is none. called counts the intents that each lane was already woken
// for.
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

// others returns the loads of the other lanes that may claim the same intents.
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

// wakeOthers makes the other lanes with room that may claim the same intents check for
// them.
func (n *News) wakeOthers(of *inbox) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, b := range n.boxes {
		if b != of && (b.part.Room > 0 && b.part.sharesWith(of.part) || !b.part.told) {
			b.call()
		}
	}
}

// call makes the lane check for intents to claim.
func (b *inbox) call() {
	b.mu.Lock()
	b.claim = true
	b.mu.Unlock()
	b.ring()
}

// resume makes the lane continue with an intent whose estimate has arrived.
func (b *inbox) resume() {
	b.mu.Lock()
	b.measured = true
	b.mu.Unlock()
	b.ring()
}

// tellPart publishes this lane's load. Its room is the last known room, less the nonces
// added since.
func (a *actor) tellPart() {
	load := a.held.State.InFlight()
	room := 0
	if a.roomy > 0 {
		room = min(max(a.roomy+a.loaded-load, 0), a.Settings.Budget)
	}
	a.News.tellPart(a.box, part{true, a.ID.Sender, a.ID.Key, a.OnlyAsked, a.Pools, signer.Share{InFlight: load, Room: room}})
}

// idle counts the polls of an OnlyAsked lane. A client may open many such lanes, and most
// have nothing to do: they claim at each poll at first, and less often the longer no intent
// comes. News of an intent wakes them: see [calls].
type idle struct {
	polls  int // since the last claim
	claims int // consecutive claims that found nothing
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
