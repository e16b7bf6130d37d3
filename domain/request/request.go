// Package request defines the stored record of idempotent HTTP requests: the request under a
// client's key, and its response.
package request

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Name is a digest of the client and its idempotency key.
type Name [32]byte

// Print is a digest of the request's content.
type Print [32]byte

// Claim is the right to carry a request out. If the claimer has not finished after Hold, it
// counts as dead, and the next caller gets the claim.
type Claim struct {
	ID   event.ID
	Name Name
	Print
	Client string // the requesting client
	Hold   time.Duration
	Keep   time.Duration // after which the record is deleted
}

// Bounds limit the stored records.
type Bounds struct {
	Most  int // records of all clients
	Share int // records of one client; 0: no bound
	Limit int // deletions of each kind per call
}

// Forgotten is the result of deleting records that were too old or too many.
type Forgotten struct {
	Removed int
	Largest int // remaining records of the client with the most
}

// Answer is a stored response.
type Answer struct {
	Status int
	Media  string // Content-Type
	Body   []byte
}

// Stage is the progress of a request.
type Stage int

const (
	Claimed  Stage = iota // the caller carries it out
	Running               // another caller is carrying it out
	Answered              // it was carried out
	Differs               // the name belongs to a request with other content
)
