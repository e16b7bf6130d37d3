//go:build !chaos

package rlptest

// mutations is how many are tried in each decoder's test; thorough is whether every
// one that is taken is checked.
const (
	mutations = 25_000
	thorough  = false
)
