//go:build !chaos

package rlptest

// mutations is the number of mutations tried in each decoder's test. thorough checks every
// accepted mutation.
const (
	mutations = 25_000
	thorough  = false
)
