package promises

// Cases counts, for each promise, the checks that could have found it broken. A promise without
// such a check has not been judged. An event that no rule covers is no case. The zero Cases are
// ready to use.
type Cases [P36 + 1]uint64

// Add counts a case of a promise.
func (c *Cases) Add(n Number) { c[n]++ }

// Merge adds the counts of another judge.
func (c *Cases) Merge(others Cases) {
	for n, count := range others {
		c[n] += count
	}
}

// Judged returns the promises with cases, and their counts.
func (c *Cases) Judged() map[Number]uint64 {
	all := map[Number]uint64{}
	for n, count := range c {
		if count > 0 {
			all[Number(n)] = count
		}
	}
	return all
}
