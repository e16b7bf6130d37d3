package esdbcluster

import (
	"maps"
	"slices"
)

// node is one node's disk and state.
type node struct {
	number   int
	alive    bool
	life     int      // number of kills; a timer of an earlier life is void
	log      []*write // on disk
	stored   int      // leading writes of the leader's log that count as on this node's disk
	told     int      // committed writes that this node knows to be committed
	readable int      // records of Cluster.all that this node shows
	news     chan struct{}
	subs     []*Subscription
	pending  map[*Pending]struct{} // begun at this node
}

// wake tells readers that wait at this node to look again.
func (n *node) wake() {
	close(n.news)
	n.news = make(chan struct{})
}

// end returns the position after the last record of the node's log.
func (n *node) end() uint64 {
	for _, w := range slices.Backward(n.log) {
		if len(w.records) > 0 {
			return w.records[len(w.records)-1].end()
		}
	}
	return 0
}

// shared returns the number of leading writes that two logs have in common.
func shared(a, b []*write) int {
	n := min(len(a), len(b))
	for n > 0 && a[n-1] != b[n-1] {
		n--
	}
	return n
}

// Kill stops a node at once, as kill -9 does. Its connections break; its disk stays.
func (c *Cluster) Kill(number int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[number-1]
	if !n.alive {
		return
	}
	n.alive = false
	n.life++
	inOrder := func(a, b *Pending) int { return a.order - b.order }
	for _, p := range slices.SortedFunc(maps.Keys(n.pending), inOrder) {
		c.end(p, nil, ErrGone)
	}
	for _, s := range n.subs {
		s.err = ErrGone
	}
	n.subs = nil
	n.wake()
	if n == c.leader {
		c.orphan(n)
		c.vacate(nil)
	}
	if c.leader != nil && c.living() < c.quorum() {
		epoch := c.epoch
		c.after(c.s.StepDown, func() {
			if c.leader != nil && c.epoch == epoch && c.living() < c.quorum() {
				c.vacate(nil)
				c.changed()
			}
		})
	}
	c.changed()
}

// orphan leaves the forwarded appends of a dead leader without an answer: their followers
// wait for it in vain until CommitTimeout.
func (c *Cluster) orphan(leader *node) {
	for _, w := range leader.log[len(c.committed):] {
		for _, a := range w.waiting {
			a.pending.orphan = true
		}
	}
}

// Start starts a killed node. It takes over the leader's log, or takes part in an election.
func (c *Cluster) Start(number int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[number-1]
	if n.alive {
		return
	}
	n.alive = true
	switch {
	case c.leader != nil:
		c.follow(n)
		c.replicateTo(n)
		c.tellLater(n, len(c.committed))
	case c.living() == c.quorum():
		c.vacate(nil)
	}
	c.changed()
}

// Resign has a node give up the lead. Its connections stay. It reports whether the node led.
func (c *Cluster) Resign(number int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[number-1]
	if n != c.leader {
		return false
	}
	c.vacate(n)
	c.changed()
	return true
}

// living returns the number of nodes that run.
func (c *Cluster) living() (count int) {
	for _, n := range c.nodes {
		if n.alive {
			count++
		}
	}
	return count
}
