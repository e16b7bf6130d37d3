package postgres

import "math"

// clamp brings a number that uses all 64 bits into a bigint.
func clamp(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// flip keeps a number's order when it becomes a bigint, whatever its size: n - 2^63.
func flip(n uint64) int64 { return int64(n ^ 1<<63) }

// unflip is the way back.
func unflip(n int64) uint64 { return uint64(n) ^ 1<<63 }
