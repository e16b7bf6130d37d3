package esdbcluster

// Pending is an append that was begun. Its methods may be called by several goroutines.
type Pending struct {
	c      *Cluster
	node   *node // at which it was begun
	order  int   // rises with each append
	done   chan struct{}
	cancel func() // its timeout

	ended  bool
	orphan bool // no answer can reach it any more
	last   *Record
	err    error
	then   []func(last *Record, err error)
}

// Done is closed when the append has an answer, or ended without one.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Outcome returns the result, once Done is closed: the last of the appended events in the
// log, or an error. It is nil, nil for an append without events to a stream without
// events. After ErrCommitTimeout and ErrGone the write may have been written, and may still
// commit.
func (p *Pending) Outcome() (last *Record, err error) {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	return p.last, p.err
}

// Then calls f with the outcome: now if there is one, else when Done is closed. f must not
// call the cluster.
func (p *Pending) Then(f func(last *Record, err error)) {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	if p.ended {
		f(p.last, p.err)
		return
	}
	p.then = append(p.then, f)
}

// Append begins an append at a node.
//
// The leader writes the events to a stream that is as expected. If the stream is further,
// and has the same events at the expected place, the append is a repeat and has the
// original's outcome. Otherwise its outcome is a [ConflictError].
func (c *Cluster) Append(number int, requiresLeader bool, stream string, e Expectation, events []Proposal) *Pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[number-1]
	c.begun++
	p := &Pending{c: c, node: n, order: c.begun, done: make(chan struct{})}
	if err := c.admit(n, requiresLeader || !c.s.Forward); err != nil {
		c.end(p, nil, err)
		return p
	}
	if n != c.leader {
		c.met.Forwarded++
	}
	n.pending[p] = struct{}{}
	c.decide(p, stream, e, events)
	if !p.ended {
		p.cancel = c.after(c.s.CommitTimeout, func() {
			if !p.ended {
				c.met.CommitTimeouts++
				c.end(p, nil, ErrCommitTimeout)
			}
		})
	}
	return p
}

// decide has the leader write, repeat or refuse an append.
func (c *Cluster) decide(p *Pending, stream string, e Expectation, events []Proposal) {
	ahead := c.ahead(stream)
	place := e.place(ahead)
	switch {
	case place == len(ahead) && len(events) == 0:
		c.end(p, lastOf(ahead), nil)
	case place == len(ahead):
		c.accept(p, stream, events)
	case place >= 0 && sameEvents(ahead[place:], events):
		last := ahead[place+len(events)-1]
		w := c.uncommitted(last)
		switch {
		case w == nil:
			c.end(p, last, nil)
		case c.s.DropRepeats:
			c.met.DroppedRepeats++
		default:
			w.waiting = append(w.waiting, answer{pending: p, last: last})
		}
	default:
		c.refuse(p, ahead)
	}
}

// accept writes an append, and now and then an event of the server's own with it.
func (c *Cluster) accept(p *Pending, stream string, events []Proposal) {
	w := c.write(stream, events)
	last := lastOf(w.records)
	if c.accepted++; c.s.StatsEvery > 0 && c.accepted%c.s.StatsEvery == 0 {
		w.records = append(w.records, c.records("$stats-0.0.0.0:2113", last.end(), []Proposal{own("$statsCollected")})...)
	}
	w.waiting = append(w.waiting, answer{pending: p, last: last})
	c.replicate()
}

// refuse answers an append with a conflict.
func (c *Cluster) refuse(p *Pending, ahead []*Record) {
	last := lastOf(ahead)
	if last == nil {
		c.end(p, nil, &ConflictError{})
		return
	}
	conflict := &ConflictError{Exists: true, Revision: last.Revision}
	w := c.uncommitted(last)
	switch {
	case w == nil:
		c.end(p, nil, conflict)
	case c.s.ConflictsAhead:
		c.met.ConflictsAhead++
		w.conflicted = true
		c.end(p, nil, conflict)
	default:
		w.waiting = append(w.waiting, answer{pending: p, err: conflict})
	}
}

func lastOf(records []*Record) *Record {
	if len(records) == 0 {
		return nil
	}
	return records[len(records)-1]
}

// end gives an append its outcome, unless it has one.
func (c *Cluster) end(p *Pending, last *Record, err error) {
	if p.ended {
		return
	}
	p.ended, p.last, p.err = true, last, err
	delete(p.node.pending, p)
	if p.cancel != nil {
		p.cancel()
	}
	close(p.done)
	for _, f := range p.then {
		f(last, err)
	}
}
