//go:build !race

package rlptest

// slower is the slowdown factor of the race detector.
const slower = 1
