// Package rate defines rate limits.
package rate

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Bucket is a rate limit of one caller. Its only state is the time when it is full again (the
// generic cell rate algorithm).
type Bucket struct {
	ID       chain.Hash    // a digest that does not reveal the caller
	Interval time.Duration // the time in which one request is refilled
	Window   time.Duration // the time in which an empty bucket is refilled
}

// BucketOf returns the bucket of the caller named by these texts, which contain no zero byte.
func BucketOf(interval, window time.Duration, whose ...string) Bucket {
	text := []byte("watchtower.rate.v1")
	for _, part := range whose {
		text = append(append(text, 0), part...)
	}
	return Bucket{chain.Keccak(text), interval, window}
}
