package simulation

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"sync"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/canceler"
	"github.com/tempo-watchtower/watchtower/commands/notifier"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
)

// points are the crash points of a replica, with or without a relay half.
func points(relayed bool) []string {
	all := append(commands.CrashPoints(), canceler.CrashPoints()...)
	if relayed {
		all = append(relayPoints(), all...)
	}
	return all
}

// relayPoints are the crash points of the relay half only.
func relayPoints() []string { return append(worker.CrashPoints(), notifier.CrashPoints()...) }

// crashes are the armed crash points. A point is armed for whichever replica passes it next, not
// for a chosen replica: a replica passes most points only while it holds a lease.
type crashes struct {
	deck []string // the points in arming order, cyclic

	mu     sync.Mutex
	passed map[string]int // number of passes
	armed  map[string]int // passes left until a replica crashes there
}

// pointsFirst is the number of points that a world arms first according to its seed. The others
// are random.
const pointsFirst = 2

// newCrashes draws the order of the points. The points armed first rotate over the seeds: some
// twenty consecutive worlds begin with every point that must be crashed at, even with few
// crashes in each.
func newCrashes(p Plan) *crashes {
	all, turns := points(p.Relay.Signers > 0), relayPoints()
	if p.Relay.Signers == 0 {
		turns = all
	}
	if p.Cluster.Nodes > 0 {
		all, turns = append(all, eventstoredb.CrashPoints()...), append(eventstoredb.CrashPoints(), turns...)
	}
	r := rand.New(rand.NewPCG(p.Seed, 0xdeca))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	n := uint64(len(turns))
	c := &crashes{passed: map[string]int{}, armed: map[string]int{}}
	for i := range uint64(pointsFirst) {
		c.deck = append(c.deck, turns[(pointTurn(p.Seed)+i*(n/pointsFirst))%n])
	}
	c.deck = append(c.deck, all...)
	return c
}

// pointless: one seed in pointless has a relay world without crashes at points.
const pointless = 4

// pointTurn counts the seeds below seed whose relay worlds crash at points.
func pointTurn(seed uint64) uint64 { return seed - seed/pointless }

// arm arms the next point, and further points up to a point that this world has already passed.
// So a world that never passes a point still crashes at another.
func (c *crashes) arm() {
	const not = 2 // not at once: first let work begin
	c.mu.Lock()
	defer c.mu.Unlock()
	for range c.deck {
		point := c.deck[0]
		c.deck = append(c.deck[1:], point)
		c.armed[point] = cmp.Or(c.armed[point], not)
		if c.passed[point] > 0 {
			return
		}
	}
}

// disarm removes all armed points.
func (c *crashes) disarm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.armed)
}

// pass counts a replica's pass of a point, and reports whether the replica crashes there.
func (c *crashes) pass(point string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed[point]++
	left, armed := c.armed[point]
	switch {
	case !armed:
		return false
	case left > 1:
		c.armed[point]--
		return false
	}
	delete(c.armed, point)
	return true
}

// counts are the passes of each point.
func (c *crashes) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.passed)
}
