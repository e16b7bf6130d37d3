package esdbcluster

import "slices"

// Member is a node as another node knows it.
type Member struct {
	Node  int
	State State
}

// State is the state of a node.
type State int

// The states of a node.
const (
	Dead State = iota
	Electing
	Follower
	Leader
)

// String returns the state in lower case.
func (s State) String() string {
	return [...]string{"dead", "electing", "follower", "leader"}[s]
}

// Members returns all nodes as one node knows them: itself as it is now, the others as
// they were GossipLag ago.
func (c *Cluster) Members(number int) []Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := slices.Clone(c.known)
	known[number-1] = c.members()[number-1]
	return known
}

// State returns all nodes as they are now.
func (c *Cluster) State() []Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members()
}

func (c *Cluster) members() []Member {
	all := make([]Member, len(c.nodes))
	for i, n := range c.nodes {
		all[i] = Member{Node: n.number}
		switch {
		case !n.alive:
		case c.leader == nil:
			all[i].State = Electing
		case n == c.leader:
			all[i].State = Leader
		default:
			all[i].State = Follower
		}
	}
	return all
}

// changed spreads the nodes' states.
func (c *Cluster) changed() {
	now := c.members()
	c.after(c.s.GossipLag, func() { c.known = now })
}
