package notice

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// ErrDisabled refuses a redelivery to a disabled endpoint.
const ErrDisabled = eventlog.Refusal("endpoint-disabled")

// EndpointID identifies a client's endpoint.
type EndpointID [16]byte

// EndpointOf returns an endpoint's id: the same URL of two clients is two endpoints.
func EndpointOf(client, url string) (id EndpointID) {
	digest := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(client), client, url))
	copy(id[:], digest[:])
	return id
}

// String returns 32 hex digits.
func (id EndpointID) String() string { return hex.EncodeToString(id[:]) }

// Key identifies a notice.
type Key struct {
	Endpoint EndpointID
	Intent   chain.IntentID
	Seq      uint64 // of the intent's events, from 1 without gaps; at most 2^63-1
}

// Compare orders keys by endpoint, intent and sequence.
func (k Key) Compare(other Key) int {
	return cmp.Or(bytes.Compare(k.Endpoint[:], other.Endpoint[:]), bytes.Compare(k.Intent[:], other.Intent[:]), cmp.Compare(k.Seq, other.Seq))
}

// MessageID returns the event's id for receivers: the same at every endpoint and in every
// attempt.
func (k Key) MessageID() string { return fmt.Sprintf("msg_%x_%d", k.Intent[:], k.Seq) }

// Stage is a notice's progress.
//
//	Queued ⇄ Delivering ─→ Settled
//	  ↑           └──────→ Dead
//	  └── redelivered ──────┘ (a settled one too)
//
// Of one intent's notices to one endpoint, only the first queued one is sent. Notices of other
// intents do not wait for it.
type Stage string

const (
	Queued     Stage = "queued"     // waits for its time, or for an earlier notice of its intent
	Delivering Stage = "delivering" // queued, and leased by a worker
	Settled    Stage = "delivered"  // the endpoint has accepted it
	Dead       Stage = "dead"       // dead letter: retries are used up, kept for redelivery
)

// News is an event to deliver to an endpoint. Without a sequence it only records that an intent
// names the endpoint.
type News struct {
	Key
	Client string // owner of the endpoint
	URL    string
	Body   []byte
}

// Notice is the delivery of one event to one endpoint.
type Notice struct {
	Key
	Body     []byte
	Stage    Stage
	Attempts int       // since it was queued
	NextAt   time.Time // earliest time of the next attempt
	Last     Outcome   // of the last attempt, without RetryAfter
	LastAt   time.Time // zero: no attempt yet
}

// Reason is why an endpoint is disabled.
type Reason string

const (
	Enabled    Reason = ""
	SaidGone   Reason = "gone"     // it answered 410 Gone
	FailedLong Reason = "failing"  // it has failed for the policy's DisableAfter
	Operator   Reason = "operator" // disabled by an operator
)

// Sweep is a change to all notices of an endpoint, made in batches so that other endpoints'
// notices do not wait for it.
type Sweep string

const (
	NoSweep   Sweep = ""
	GivingUp  Sweep = "give-up"   // queued notices become dead
	Requeuing Sweep = "redeliver" // dead notices are queued
)

// UseFor is how long an endpoint stays in use after the last intent that named it. It also stays
// in use while notices for it are queued. A disabled endpoint is not in use.
const UseFor = time.Hour

// Endpoint is an endpoint's delivery state.
type Endpoint struct {
	ID           EndpointID
	Client       string    // owner of the endpoint; empty also if unknown
	URL          string    // may contain a secret
	Failures     int       // failed attempts since the last success
	FailingSince time.Time // time of the first of them; zero: none
	PausedUntil  time.Time // earliest time of the next attempt; zero: not paused
	Disabled     Reason    // nothing is sent, and queued notices become dead
	DisabledAt   time.Time
	// Attempts and Delivered are the numbers of all attempts, and of the successful ones. Last is
	// the outcome of the last one, without RetryAfter, and LastAt its time; zero: no attempt yet.
	Attempts, Delivered int
	Last                Outcome
	LastAt              time.Time
}

// Redeliverable refuses a redelivery ([ErrDisabled]) while the endpoint is disabled.
func (e Endpoint) Redeliverable() error {
	if e.Disabled == Enabled {
		return nil
	}
	return ErrDisabled.Because("it is disabled (%s): enable it first", e.Disabled)
}

// Sending is a leased notice with its destination.
type Sending struct {
	Notice
	URL    string
	Client string
}

// Report is the outcome of an attempt.
type Report struct {
	Key     Key
	Outcome Outcome
}
