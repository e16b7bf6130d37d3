//go:build !race

package rlptest

// slower is how many times slower everything is for the race detector.
const slower = 1
