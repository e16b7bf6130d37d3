package esdbcluster

// View is the committed log as a node shows it at one moment.
type View struct {
	c       *Cluster
	records []*Record
}

// View returns the log as a node shows it now.
func (c *Cluster) View(number int, requiresLeader bool) (View, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[number-1]
	if err := c.admit(n, requiresLeader); err != nil {
		return View{}, err
	}
	if n.readable < len(c.all) {
		c.met.StaleReads++
	}
	return View{c: c, records: c.all[:n.readable:n.readable]}, nil
}

// All returns the records of all streams in order of position.
func (v View) All() []*Record { return v.records }

// Stream returns the records of a stream, none if it does not exist.
func (v View) Stream(name string) []*Record {
	v.c.mu.Lock()
	stream := v.c.streams[name]
	v.c.mu.Unlock()
	if len(v.records) == 0 {
		return nil
	}
	n, exact := find(stream, v.records[len(v.records)-1].Position)
	if exact {
		n++
	}
	return stream[:n:n]
}

// Find returns the index in All of the first record at or above a position, and whether
// it is at the position.
func (v View) Find(position uint64) (i int, exact bool) { return find(v.records, position) }

// Has reports whether a committed record is at a position, whichever node shows it.
func (c *Cluster) Has(position uint64) bool {
	_, exact := find(c.Committed(), position)
	return exact
}
