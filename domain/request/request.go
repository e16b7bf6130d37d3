// Package request is what is remembered of requests that clients may repeat: what
// was asked under a client's key, and what was answered.
package request

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Name is a digest of who asks and of the key that they gave the request.
type Name [32]byte

// Print is a digest of all that is asked.
type Print [32]byte

// Claim is the right to carry a request out, and until when it holds: whoever has
// not ended by then is taken for dead, and the next who asks gets the claim.
type Claim struct {
	ID   event.ID
	Name Name
	Print
	Client string // that asks
	Hold   time.Duration
	Keep   time.Duration // the request is forgotten after so long
}

// Bounds say how many requests are remembered.
type Bounds struct {
	Most  int // of all clients
	Share int // of one client; 0 is no bound
	Limit int // of each kind, that are removed at once
}

// Forgotten is what became of the requests that were too old or too many.
type Forgotten struct {
	Removed int
	Largest int // how many are remembered of the client with the most, after that
}

// Answer is what was answered.
type Answer struct {
	Status int
	Media  string // Content-Type
	Body   []byte
}

// Stage is how far a request has come.
type Stage int

const (
	Claimed  Stage = iota // it is the claimer's to carry out
	Running               // another is carrying it out
	Answered              // it was carried out
	Differs               // the name was given to a request that asked something else
)
