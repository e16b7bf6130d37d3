package app

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// laneDemand is a lane of a nonce key other than 0 that a client's intents ask for.
type laneDemand struct {
	id     chain.Sequence
	client string
	first  eventlog.Position // of the earliest of these intents
	// waiting is the number of these intents without a nonce.
	waiting int
	// unfinished marks a lane without demand that has open nonces: it belongs to no client.
	unfinished bool
}

// heldLane is a lane that runs because of a laneDemand.
type heldLane struct {
	stop   context.CancelFunc
	client string    // client to which the lane is counted
	wanted time.Time // last time it was wanted
	looked time.Time // last time it was checked for eviction
	idle   bool      // no demand at present
	// waiting is the number of intents without a nonce that ask for it, when last counted.
	waiting int
}

// heldLanes are the lanes of nonce keys other than 0 that this process holds. Each client has at
// most share of them. An idle and settled lane is evicted when another lane is wanted.
type heldLanes struct {
	most, share int
	lanes       map[chain.Sequence]*heldLane
}

// limit is the number of lanes that a client may have. Without API keys all requests are of the
// nameless client, which shares with nobody.
func (h *heldLanes) limit(d laneDemand) int {
	if d.unfinished || d.client == "" {
		return h.most
	}
	return min(h.share, h.most)
}

// want records the lanes wanted at present. A lane counts for the client that it was opened for,
// until only other clients want it.
func (h *heldLanes) want(wanted []laneDemand, now time.Time) {
	by := map[chain.Sequence][]laneDemand{}
	for _, d := range wanted {
		by[d.id] = append(by[d.id], d)
	}
	for id, held := range h.lanes {
		demands := by[id]
		if held.idle = len(demands) == 0; held.idle {
			continue
		}
		held.wanted = now
		if !slices.ContainsFunc(demands, func(d laneDemand) bool { return d.client == held.client }) {
			held.client = slices.MinFunc(demands, byFirst).client
		}
	}
}

// fresh returns the lanes for which more intents wait than when it was called before. Another replica
// may have fed these intents to the queue: that wakes its own lanes alone, and an idle lane looks for
// intents at few polls.
func (h *heldLanes) fresh(wanted []laneDemand) (ids []chain.Sequence) {
	waiting := map[chain.Sequence]int{}
	for _, d := range wanted {
		waiting[d.id] += d.waiting
	}
	for id, held := range h.lanes {
		if waiting[id] > held.waiting {
			ids = append(ids, id)
		}
		held.waiting = waiting[id]
	}
	slices.SortFunc(ids, inOrder)
	return ids
}

func byFirst(a, b laneDemand) int {
	return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(a.first, b.first), cmp.Compare(a.client, b.client), bytes.Compare(a.id.Sender[:], b.id.Sender[:]), bytes.Compare(a.id.Key[:], b.id.Key[:]))
}

// last is 1 for lanes that come after the lanes with demand.
func last(d laneDemand) int {
	if d.unfinished {
		return 1
	}
	return 0
}

// opensMost is the number of lanes opened for a named client in one round: opening a lane writes to
// the log, and its first step asks nodes. The others wait for the next rounds.
const opensMost = 16

// next evicts lanes as needed, and returns the lanes to open. The client with the fewest lanes
// comes first, and of its lanes the lane whose intents have waited longest. evicts reports
// whether an idle lane has no open nonce.
func (h *heldLanes) next(wanted []laneDemand, evicts func(chain.Sequence) bool) (opens []laneDemand) {
	count, waiting := map[string]int{}, map[string][]laneDemand{}
	for _, held := range h.lanes {
		count[held.client]++
	}
	for _, d := range wanted {
		if h.lanes[d.id] == nil {
			waiting[d.client] = append(waiting[d.client], d)
		}
	}
	for _, of := range waiting {
		slices.SortFunc(of, byFirst)
	}
	total, begun, opened := len(h.lanes), map[chain.Sequence]bool{}, map[string]int{}
	for len(waiting) > 0 {
		d := h.turn(waiting, count)
		if waiting[d.client] = waiting[d.client][1:]; len(waiting[d.client]) == 0 {
			delete(waiting, d.client)
		}
		if begun[d.id] {
			continue
		}
		if d.client != "" && opened[d.client] == opensMost {
			delete(waiting, d.client)
			continue
		}
		own := count[d.client] >= h.limit(d)
		if own || total >= h.most {
			from, ok := h.evict(d.client, own, count, evicts)
			if !ok {
				delete(waiting, d.client)
				continue
			}
			count[from]--
			total--
		}
		begun[d.id] = true
		count[d.client]++
		opened[d.client]++
		total++
		opens = append(opens, d)
	}
	return opens
}

// turn returns the next demand to serve.
func (h *heldLanes) turn(waiting map[string][]laneDemand, count map[string]int) (next laneDemand) {
	found := false
	for client, of := range waiting {
		if !found || cmp.Or(cmp.Compare(count[client], count[next.client]), byFirst(of[0], next)) < 0 {
			next, found = of[0], true
		}
	}
	return next
}

// evict ends a lane that is idle and settled: the client's own if own is set, otherwise a lane
// of the client with the most lanes. Among these it ends the lane idle for longest. It returns
// the client that lost a lane.
func (h *heldLanes) evict(client string, own bool, count map[string]int, evicts func(chain.Sequence) bool) (from string, ok bool) {
	var idle []chain.Sequence
	for id, held := range h.lanes {
		if held.idle && (!own || held.client == client) {
			idle = append(idle, id)
		}
	}
	slices.SortFunc(idle, func(a, b chain.Sequence) int {
		x, y := h.lanes[a], h.lanes[b]
		return cmp.Or(cmp.Compare(count[y.client], count[x.client]), x.wanted.Compare(y.wanted), inOrder(a, b))
	})
	for _, id := range idle {
		if evicts(id) {
			held := h.lanes[id]
			held.stop()
			delete(h.lanes, id)
			return held.client, true
		}
	}
	return "", false
}

const (
	// evictLooks limits the idle lanes checked in one round, since each check reads the log.
	// evictEvery is the number of rounds before the same lane is checked again.
	evictLooks = 64
	evictEvery = 5
)

// evicting returns, for one round, the function that reports whether an idle lane has no open
// nonce.
func (r *relay) evicting(ctx context.Context, c *served, h *heldLanes, now time.Time) func(chain.Sequence) bool {
	looks := 0
	return func(id chain.Sequence) bool {
		held := h.lanes[id]
		if looks == evictLooks || now.Sub(held.looked) < evictEvery*r.settings.Lane.Poll {
			return false
		}
		looks++
		held.looked = now
		settled, err := c.settled(ctx, id)
		return err == nil && settled
	}
}

// fullest is the largest number of lanes of any named client.
func (h *heldLanes) fullest() (most int) {
	count := map[string]int{}
	for _, held := range h.lanes {
		if held.client != "" {
			count[held.client]++
			most = max(most, count[held.client])
		}
	}
	return most
}
