package esdbcluster

import "slices"

// vacate leaves the cluster without a leader until an election is over. The election
// passes over a node that has resigned if there is another.
func (c *Cluster) vacate(resigned *node) {
	c.leader = nil
	c.vacancy++
	if c.living() < c.quorum() {
		return // Start begins the election
	}
	vacancy := c.vacancy
	c.after(c.s.Election.draw(c.s.Rand), func() {
		if c.vacancy == vacancy && c.leader == nil && c.living() >= c.quorum() {
			c.elect(resigned)
		}
	})
}

// elect makes one of the living nodes with the longest log the leader. Among a quorum
// that is a node with every committed write. Without the node that resigned it may not
// be: then that node leads again.
func (c *Cluster) elect(resigned *node) {
	var best []*node
	for _, n := range c.nodes {
		if !n.alive || n == resigned || !c.complete(n) {
			continue
		}
		switch {
		case len(best) == 0 || longer(n, best[0]):
			best = []*node{n}
		case !longer(best[0], n):
			best = append(best, n)
		}
	}
	if len(best) == 0 {
		if resigned != nil && resigned.alive && c.complete(resigned) {
			c.lead(resigned)
		}
		return
	}
	c.lead(best[c.s.Rand.IntN(len(best))])
}

// complete reports whether a node has every committed write.
func (c *Cluster) complete(n *node) bool {
	last := len(c.committed) - 1
	return len(n.log) > last && n.log[last] == c.committed[last]
}

// longer reports whether a node's log goes further: it ends with a write of a later
// leader, or is longer.
func longer(a, b *node) bool {
	if x, y := a.log[len(a.log)-1].epoch, b.log[len(b.log)-1].epoch; x != y {
		return x > y
	}
	return len(a.log) > len(b.log)
}

// Lead makes a living node with every committed write the leader, without an election. It
// reports whether the node leads.
func (c *Cluster) Lead(number int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[number-1]
	if n == c.leader {
		return true
	}
	if !n.alive || !c.complete(n) || c.living() < c.quorum() {
		return false
	}
	c.lead(n)
	return true
}

// lead makes a node the leader. The other nodes cut their logs back to its log.
func (c *Cluster) lead(l *node) {
	c.leader = l
	c.epoch++
	c.vacancy++
	c.met.Elections++
	l.stored = len(l.log)
	c.tell(l, len(c.committed))
	for _, n := range c.nodes {
		switch {
		case n == l:
		case n.alive:
			c.follow(n)
		default:
			n.stored = shared(n.log, l.log)
		}
	}
	c.changed()
	c.write("$epoch-information", []Proposal{own("$epoch-information")})
	c.replicate()
}

// follow cuts a node's log back to the leader's.
func (c *Cluster) follow(n *node) {
	n.stored = shared(n.log, c.leader.log)
	cut := n.log[n.stored:]
	n.log = slices.Clone(n.log[:n.stored])
	if len(cut) > 0 {
		c.met.Truncations++
		c.lose(cut)
	}
}

// lose counts the writes that no node's log holds any more.
func (c *Cluster) lose(cut []*write) {
	for _, w := range cut {
		held := slices.ContainsFunc(c.nodes, func(n *node) bool { return slices.Contains(n.log[min(len(n.log), len(c.committed)):], w) })
		if !held {
			c.vanish(w)
		}
	}
}
