// Package intents is the read model behind the relay's /v1/intents. It lists intents, and finds
// them by client, key, signer and hash.
package intents

import (
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Row is one intent in the read model. It follows from the events alone.
//
// Its request omits parts that are large or may be secret: calls have no data, and webhook URLs
// are cut to their origin.
type Row struct {
	State    intent.State
	Position eventlog.Position // of its Requested
	Version  eventlog.Version
	// RequestedAt and UpdatedAt are times of the store's clock.
	RequestedAt, UpdatedAt time.Time
}

// Evolve applies one recorded event. An event that the row already contains is skipped. A gap
// in the versions breaks an invariant of the store, and is an error.
func (r Row) Evolve(recorded eventlog.Recorded, codec eventlog.Codec[intent.Event]) (Row, error) {
	if recorded.Version <= r.Version {
		return r, nil
	}
	e, err := codec.Decode(recorded.Name, recorded.Data)
	if err != nil {
		return r, err
	}
	return r.Apply(recorded, e)
}

// Apply applies a recorded event that the caller has decoded, like [Row.Evolve].
func (r Row) Apply(recorded eventlog.Recorded, e intent.Event) (Row, error) {
	switch {
	case recorded.Version <= r.Version:
		return r, nil
	case recorded.Version != r.Version+1:
		return r, fmt.Errorf("%s: version %d follows %d", recorded.Stream, recorded.Version, r.Version)
	}
	if requested, ok := e.(intent.Requested); ok {
		requested.Request = outline(requested.Request)
		if requested.Origin == (intent.Origin{}) { // an event from before it existed
			requested.Origin = intent.OriginOf(recorded.Meta)
		}
		e = requested
	}
	if r.Version == 0 {
		r.Position, r.RequestedAt = recorded.Position, recorded.At
	}
	r.State, r.Version, r.UpdatedAt = r.State.Evolve(e), recorded.Version, recorded.At
	return r, nil
}

// outline returns a request without the parts that a row omits.
func outline(r intent.Request) intent.Request {
	r.Calls, r.Webhooks = slices.Clone(r.Calls), slices.Clone(r.Webhooks)
	for i := range r.Calls {
		r.Calls[i].Data = nil
	}
	for i, w := range r.Webhooks {
		r.Webhooks[i].URL = w.Origin()
	}
	return r
}

// Request is the intent's request, in outline.
func (r Row) Request() intent.Request { return r.State.Requested.Request }

// Signer is the assigned signer, or else the requested one. For an intent requested from a pool
// it is nil until a signer of the pool is assigned.
func (r Row) Signer() *chain.Address {
	if p := r.State.Place; p != nil {
		return &p.Signer
	}
	return r.Request().Signer
}
