package notice

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// ErrDisabled refuses to send again to an endpoint that is disabled.
const ErrDisabled = event.Refusal("endpoint-disabled")

// EndpointID names a client's endpoint.
type EndpointID [16]byte

// EndpointOf names an endpoint: the same URL is another endpoint with another client.
func EndpointOf(client, url string) (id EndpointID) {
	digest := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(client), client, url))
	copy(id[:], digest[:])
	return id
}

// String is 32 hex digits.
func (id EndpointID) String() string { return hex.EncodeToString(id[:]) }

// Key names a notice.
type Key struct {
	Endpoint EndpointID
	Intent   chain.IntentID
	Seq      uint64 // of the intent's events, from 1 without gaps; at most 2^63-1
}

// Compare orders keys by endpoint, intent and sequence.
func (k Key) Compare(other Key) int {
	return cmp.Or(bytes.Compare(k.Endpoint[:], other.Endpoint[:]), bytes.Compare(k.Intent[:], other.Intent[:]), cmp.Compare(k.Seq, other.Seq))
}

// MessageID is the id that receivers know the event by: the same at every endpoint
// and in every attempt.
func (k Key) MessageID() string { return fmt.Sprintf("msg_%x_%d", k.Intent[:], k.Seq) }

// Stage is how far a notice has come.
//
//	Queued ⇄ Delivering ─→ Settled
//	  ↑           └──────→ Dead
//	  └── redelivered ──────┘ (a settled one too)
//
// Of one intent's notices to one endpoint, only the first that is queued is sent. Those
// of other intents do not wait for it.
type Stage string

const (
	Queued     Stage = "queued"     // waits for its time, or for an earlier one of its intent
	Delivering Stage = "delivering" // somebody is sending it: queued, and leased
	Settled    Stage = "delivered"  // the endpoint has it
	Dead       Stage = "dead"       // given up, and kept to be redelivered
)

// News is an event that is to be told to an endpoint, or, without a sequence, only that an
// intent was asked for with it.
type News struct {
	Key
	Client string // whose endpoint it is
	URL    string
	Body   []byte
}

// Notice is one event that is told to one endpoint.
type Notice struct {
	Key
	Body     []byte
	Stage    Stage
	Attempts int       // since it was queued
	NextAt   time.Time // no attempt is made before
	Last     Outcome   // of the last attempt, without RetryAfter
	LastAt   time.Time // zero: none was made
}

// Reason is why an endpoint is disabled.
type Reason string

const (
	Enabled    Reason = ""
	SaidGone   Reason = "gone"     // it answered 410
	FailedLong Reason = "failing"  // it has only failed for as long as the policy bears
	Operator   Reason = "operator" // somebody wishes it so
)

// Sweep is what a queue does to all notices of an endpoint, some at a time, so that nobody
// else's notices wait for all of them.
type Sweep string

const (
	NoSweep   Sweep = ""
	GivingUp  Sweep = "give-up"   // what is queued becomes dead
	Requeuing Sweep = "redeliver" // what is dead is queued
)

// UseFor is how long an endpoint is in use after an intent was last asked for with it. It is
// in use as long as something is queued for it, too; one that is disabled is not.
const UseFor = time.Hour

// Endpoint is how an endpoint stands.
type Endpoint struct {
	ID           EndpointID
	Client       string    // whose intents are told there; empty also where that is not known yet
	URL          string    // may hold a secret
	Failures     int       // attempts without success since the last that had it
	FailingSince time.Time // the first of them; zero: none
	PausedUntil  time.Time // nothing is sent before; zero: not paused
	Disabled     Reason    // nothing is sent, and what is queued will be dead
	DisabledAt   time.Time
}

// Sending is a notice that somebody has leased, with where it goes.
type Sending struct {
	Notice
	URL    string
	Client string
}

// Report is what came of an attempt.
type Report struct {
	Key     Key
	Outcome Outcome
}
