package esdbcluster

import "slices"

// Subscription is a cursor over the log as a node shows it, and follows its growth. One
// goroutine may use it.
type Subscription struct {
	c      *Cluster
	node   *node
	passes func(*Record) bool

	next    int  // index in Cluster.all of the next record
	live    bool // it has had all records once
	waiting int  // while live: records that pass the filter and were not taken
	err     error
}

// News is the next step of a subscription. At most one field is set.
type News struct {
	Records  []*Record       // the next records, whether or not they pass the filter
	CaughtUp bool            // there are no more records; from now on the subscription is live
	More     <-chan struct{} // closed when there may be news; call Next again
}

// Subscribe begins a subscription to the records at or above a position. Records that do
// not pass the filter do not count for SlowLimit.
func (c *Cluster) Subscribe(number int, requiresLeader bool, from uint64, passes func(*Record) bool) (*Subscription, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[number-1]
	if err := c.admit(n, requiresLeader); err != nil {
		return nil, err
	}
	s := &Subscription{c: c, node: n, passes: passes}
	s.next, _ = find(c.all, from)
	n.subs = append(n.subs, s)
	return s, nil
}

// Next returns the next step: up to most records, but one at a time while live. An error
// is the subscription's end.
func (s *Subscription) Next(most int) (News, error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	left := s.node.readable - s.next
	switch {
	case s.err != nil:
		return News{}, s.err
	case left <= 0 && !s.live:
		s.live, s.waiting = true, 0
		return News{CaughtUp: true}, nil
	case left <= 0:
		return News{More: s.node.news}, nil
	case s.live:
		most = 1
	}
	records := s.c.all[s.next : s.next+min(left, most) : s.next+min(left, most)]
	s.next += len(records)
	if s.live && s.passes(records[0]) {
		s.waiting--
	}
	return News{Records: records}, nil
}

// Close ends the subscription.
func (s *Subscription) Close() {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.node.subs = slices.DeleteFunc(s.node.subs, func(other *Subscription) bool { return other == s })
}

// overrun counts the records from an index up to another, which are new at the node, and
// reports whether they end the subscription.
func (s *Subscription) overrun(from, to int) bool {
	if from = max(from, s.next); !s.live || from >= to {
		return false
	}
	for _, r := range s.c.all[from:to] {
		if s.passes(r) {
			s.waiting++
		}
	}
	met, limit := &s.c.met, s.c.s.SlowLimit
	switch {
	case limit == 0 || s.waiting <= limit:
		return false
	case s.c.s.ResumeSlow:
		s.live = false
		met.SlowResumes++
		return false
	}
	met.SlowDrops++
	s.err = ErrSlow
	return true
}
