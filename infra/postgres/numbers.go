package postgres

import "math"

// clamp limits a 64-bit number to the range of a bigint.
func clamp(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// flip converts a number to a bigint, keeping the order of all 64-bit numbers: n - 2^63.
func flip(n uint64) int64 { return int64(n ^ 1<<63) }

// unflip is the inverse of flip.
func unflip(n int64) uint64 { return uint64(n) ^ 1<<63 }
