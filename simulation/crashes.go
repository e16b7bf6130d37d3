package simulation

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"sync"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/canceler"
	"github.com/tempo-watchtower/watchtower/commands/notifier"
	"github.com/tempo-watchtower/watchtower/commands/relayer"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
)

// points are where a replica can be made to crash, and where one with a relay half can.
func points(relayed bool) []string {
	all := append(commands.CrashPoints(), canceler.CrashPoints()...)
	if relayed {
		all = append(relayPoints(), all...)
	}
	return all
}

// relayPoints are those that only a replica with a relay half passes.
func relayPoints() []string { return append(relayer.CrashPoints(), notifier.CrashPoints()...) }

// crashes are the points at which replicas are to crash: not one of them that is chosen
// before, but whoever passes a point that is armed, for most of what a replica passes it
// passes only as long as it holds a lease.
type crashes struct {
	deck []string // the points, in the order in which they are armed, again and again

	mu     sync.Mutex
	passed map[string]int // how often
	armed  map[string]int // how often it is passed until whoever passes it crashes
}

// pointsFirst is how many points a world arms first that are its seed's by turn. The others
// come by chance.
const pointsFirst = 2

// newCrashes draws the order of the points. Those that are armed first go by turn over the
// seeds: some twenty worlds one after the other begin with each point that has to be crashed at
// in some of them, however few crashes there are in each.
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

// pointless is that each of so many seeds is one whose world with a relay half does not crash
// at points.
const pointless = 4

// pointTurn counts the seeds before one whose worlds with a relay half crash at points.
func pointTurn(seed uint64) uint64 { return seed - seed/pointless }

// arm arms the next point, and those after it up to one that has been passed in this world: in
// a world in which nobody passes a point somebody crashes at another.
func (c *crashes) arm() {
	const not = 2 // at the first: let it come to something
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

// disarm has nobody crash at a point any more.
func (c *crashes) disarm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.armed)
}

// pass counts that a replica has passed a point, and reports whether it crashes there.
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

// counts are how often each point was passed.
func (c *crashes) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.passed)
}
