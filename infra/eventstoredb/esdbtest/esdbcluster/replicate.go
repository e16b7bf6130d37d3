package esdbcluster

import "slices"

// write is the records of one append. They commit or vanish together.
type write struct {
	epoch     int // of the leader that wrote it
	records   []*Record
	waiting   []answer // given at the commit
	committed bool
	vanished  bool // counted in Met
	// conflicted: a conflict was answered that counted this write while it was uncommitted
	conflicted bool
	end        int // length of Cluster.all after it; set at the commit
}

// answer is the result of an append that waits for a commit.
type answer struct {
	pending *Pending
	last    *Record
	err     error
}

// write adds a write to the leader's log.
func (c *Cluster) write(stream string, events []Proposal) *write {
	w := &write{epoch: c.epoch, records: c.records(stream, c.leader.end(), events)}
	c.leader.log = append(c.leader.log, w)
	return w
}

// records makes records for the end of a stream as the leader has it.
func (c *Cluster) records(stream string, position uint64, events []Proposal) []*Record {
	return records(c.s.Now(), stream, uint64(len(c.ahead(stream))), position, events)
}

// ahead returns a stream as the leader has written it, uncommitted writes included.
func (c *Cluster) ahead(stream string) []*Record {
	all := c.streams[stream]
	all = all[:len(all):len(all)]
	for _, w := range c.leader.log[len(c.committed):] {
		for _, r := range w.records {
			if r.Stream == stream {
				all = append(all, r)
			}
		}
	}
	return all
}

// uncommitted returns the write that holds a record, or nil if it is committed.
func (c *Cluster) uncommitted(r *Record) *write {
	for _, w := range c.leader.log[len(c.committed):] {
		if slices.Contains(w.records, r) {
			return w
		}
	}
	return nil
}

// replicate gets the leader's log, as long as it is now, onto the disks of all nodes.
func (c *Cluster) replicate() {
	for _, n := range c.nodes {
		if n.alive {
			c.replicateTo(n)
		}
	}
}

func (c *Cluster) replicateTo(n *node) {
	epoch, life, upTo := c.epoch, n.life, len(c.leader.log)
	c.after(c.s.CommitDelay.draw(c.s.Rand), func() {
		if c.leader == nil || c.epoch != epoch || n.life != life {
			return
		}
		if len(n.log) < upTo {
			n.log = append(n.log, c.leader.log[len(n.log):upTo]...)
		}
		n.stored = max(n.stored, upTo)
		c.tell(n, n.told)
		c.advance()
	})
}

// quorum is the number of nodes that must have a write, or take part in an election.
func (c *Cluster) quorum() int { return len(c.nodes)/2 + 1 }

// advance commits the writes that a quorum has on disk. As in Raft, a write of an earlier
// leader commits together with a write of the present one.
func (c *Cluster) advance() {
	stored := make([]int, len(c.nodes))
	for i, n := range c.nodes {
		stored[i] = n.stored
	}
	slices.Sort(stored)
	upTo := stored[len(stored)-c.quorum()]
	if upTo <= len(c.committed) || c.leader.log[upTo-1].epoch != c.epoch {
		return
	}
	for _, w := range c.leader.log[len(c.committed):upTo] {
		c.commit(w)
	}
	for _, n := range c.nodes {
		switch {
		case n == c.leader:
			c.tell(n, upTo)
		case n.alive:
			c.tellLater(n, upTo)
		}
	}
}

// commit makes a write part of the log for ever, and answers its appends.
func (c *Cluster) commit(w *write) {
	w.committed = true
	c.committed = append(c.committed, w)
	err := c.s.Keep(w.records)
	c.index(w)
	if w.epoch != c.epoch {
		c.met.Inherited++
	}
	late := false
	for _, a := range w.waiting {
		late = late || a.pending.ended || a.pending.orphan
		if err != nil {
			a.last, a.err = nil, err
		}
		if !a.pending.orphan {
			c.end(a.pending, a.last, a.err)
		}
	}
	if w.waiting = nil; late {
		c.met.LateCommits++
	}
	c.supersede(len(c.committed) - 1)
}

// index adds the records of a write to the log and to their streams.
func (c *Cluster) index(w *write) {
	for _, r := range w.records {
		c.all = append(c.all, r)
		c.streams[r.Stream] = append(c.streams[r.Stream], r)
	}
	w.end = len(c.all)
}

// supersede counts the writes of dead nodes that can never commit, because another write
// is committed in the place of the first of them.
func (c *Cluster) supersede(place int) {
	for _, n := range c.nodes {
		if place >= len(n.log) || n.log[place] == c.committed[place] {
			continue
		}
		for _, w := range n.log[place:] {
			c.vanish(w)
		}
	}
}

// vanish counts a write that can never commit, once.
func (c *Cluster) vanish(w *write) {
	if w.committed || w.vanished {
		return
	}
	w.vanished = true
	c.met.Vanished++
	if w.conflicted {
		c.met.ConflictsVanished++
	}
}

// tellLater tells a follower after its lag how far the log is committed.
func (c *Cluster) tellLater(n *node, upTo int) {
	life := n.life
	c.after(c.s.FollowerLag.draw(c.s.Rand), func() {
		if n.life == life {
			c.tell(n, upTo)
		}
	})
}

// tell tells a node how far the log is committed. It shows as much of that as it has.
func (c *Cluster) tell(n *node, upTo int) {
	n.told = max(n.told, upTo)
	has := min(n.told, len(n.log))
	if has == 0 || c.committed[has-1].end <= n.readable {
		return
	}
	from := n.readable
	n.readable = c.committed[has-1].end
	n.subs = slices.DeleteFunc(n.subs, func(s *Subscription) bool { return s.overrun(from, n.readable) })
	n.wake()
}
