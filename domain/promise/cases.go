package promise

// Cases are how often each promise was held against something that could have shown it to be
// broken: a promise that nothing was held against has not been judged. An event that no rule
// speaks of is no case. The zero Cases are ready.
type Cases [P36 + 1]uint64

// Add counts a case of a promise.
func (c *Cases) Add(n Number) { c[n]++ }

// Merge counts what another judge has counted.
func (c *Cases) Merge(others Cases) {
	for n, count := range others {
		c[n] += count
	}
}

// Judged are the promises that had a case, and how many.
func (c *Cases) Judged() map[Number]uint64 {
	all := map[Number]uint64{}
	for n, count := range c {
		if count > 0 {
			all[Number(n)] = count
		}
	}
	return all
}
