// Package request defines the stored record of idempotent HTTP requests: the request under a
// client's key, and its response.
package request

import (
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Name is a digest of the client and its idempotency key.
type Name [32]byte

// Print is a digest of the request's content.
type Print [32]byte

// Claim is the right to carry a request out. If the claimer has not finished after Hold, it
// counts as dead, and the next caller gets the claim.
type Claim struct {
	ID   eventlog.ID
	Name Name
	Print
	Client string // the requesting client
	Hold   time.Duration
	Keep   time.Duration // after which the record is deleted
	// Share is how many records of the client are kept; 0: no bound. A store may delete the
	// client's oldest records beyond it with the claim, except records of running requests.
	Share int
}

// Usage is the number of stored records.
type Usage struct {
	All     int     // of all clients
	Largest int     // of the client with the most
	Beyond  []Count // of each client with more than its share
}

// Count is the number of stored records of one client.
type Count struct {
	Client  string
	Records int
}

// Oldest selects the records to delete: the first ones to expire. The record of a running request
// (held and not answered) is never deleted, even if it has expired.
type Oldest struct {
	Expired bool    // only records whose time is over
	Client  *string // only records of this client; nil: of all clients
	Limit   int     // at most this many
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
