// Package rate counts how often somebody asks.
package rate

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Bucket counts what one may ask for. All that there is to know of it is when it is full
// again (the generic cell rate algorithm).
type Bucket struct {
	ID       chain.Hash    // tells nothing of whose it is
	Interval time.Duration // that one request is worth
	Window   time.Duration // an empty one is full again after so long
}

// BucketOf is the bucket of whoever these texts name. None of them has a zero byte.
func BucketOf(interval, window time.Duration, whose ...string) Bucket {
	text := []byte("watchtower.rate.v1")
	for _, part := range whose {
		text = append(append(text, 0), part...)
	}
	return Bucket{chain.Keccak(text), interval, window}
}
