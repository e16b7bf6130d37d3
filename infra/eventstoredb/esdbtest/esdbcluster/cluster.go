package esdbcluster

import (
	"sync"
	"time"
)

// Cluster is the nodes of a cluster and their state. Nodes are numbered from 1; node 1
// leads first. It is safe for use by several goroutines.
type Cluster struct {
	s Settings

	mu        sync.Mutex
	nodes     []*node
	leader    *node // nil: none
	epoch     int   // grows with each leader
	vacancy   int   // grows with each loss of a leader; an election of an earlier one is void
	committed []*write
	all       []*Record // of committed writes, in order of position
	streams   map[string][]*Record
	begun     int // appends, so far
	accepted  int // appends written, so far
	known     []Member
	met       Met
}

// New returns a cluster that has committed the kept writes on every node.
func New(s Settings) *Cluster {
	c := &Cluster{s: s.withDefaults(), streams: map[string][]*Record{}, epoch: 1}
	for _, kept := range c.s.Kept {
		c.committed = append(c.committed, &write{records: kept, epoch: c.epoch, committed: true})
		c.index(c.committed[len(c.committed)-1])
	}
	for i := range c.s.Nodes {
		n := &node{number: i + 1, alive: true, news: make(chan struct{}), pending: map[*Pending]struct{}{}}
		n.log = append(n.log, c.committed...)
		n.stored, n.told, n.readable = len(n.log), len(n.log), len(c.all)
		c.nodes = append(c.nodes, n)
	}
	c.leader = c.nodes[0]
	c.known = c.members()
	return c
}

// after runs f, under the lock, once d has passed. It runs it now if d is zero.
func (c *Cluster) after(d time.Duration, f func()) (cancel func()) {
	if d <= 0 {
		f()
		return func() {}
	}
	return c.s.After(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		f()
	})
}

// SetCommitDelay replaces the setting for writes from now on.
func (c *Cluster) SetCommitDelay(r Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.CommitDelay = r
}

// Met returns the counts so far.
func (c *Cluster) Met() Met {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.met
}

// Committed returns the records of all committed writes, whichever node shows them.
func (c *Cluster) Committed() []*Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[:len(c.all):len(c.all)]
}

// admit checks whether a node serves a call.
func (c *Cluster) admit(n *node, leaderOnly bool) error {
	switch {
	case !n.alive:
		return ErrGone
	case c.leader == nil:
		c.met.NotReady++
		return ErrNotReady
	case leaderOnly && n != c.leader:
		c.met.NotLeader++
		return &NotLeaderError{Leader: c.leader.number}
	}
	return nil
}
