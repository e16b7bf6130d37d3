// Package intents is the read model behind the relay's /v1/intents: lists, and what was
// asked for by whom, under which key, and signed under which hash.
package intents

import (
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// Row is what is shown of one intent. It follows from the events alone.
//
// Of its request it lacks what is large or may be secret: the calls have no data, and of
// each webhook's URL there is the origin alone.
type Row struct {
	State    intent.State
	Position event.Position // of its Requested
	Version  event.Version
	// RequestedAt and UpdatedAt are by the store's clock.
	RequestedAt, UpdatedAt time.Time
}

// Evolve adds one recorded event. An event that the row has already is skipped;
// one that leaves a gap is a broken invariant of the store and an error.
func (r Row) Evolve(recorded event.Recorded, codec event.Codec[intent.Event]) (Row, error) {
	switch {
	case recorded.Version <= r.Version:
		return r, nil
	case recorded.Version != r.Version+1:
		return r, fmt.Errorf("%s: version %d follows %d", recorded.Stream, recorded.Version, r.Version)
	}
	e, err := codec.Decode(recorded.Name, recorded.Data)
	if err != nil {
		return r, err
	}
	if requested, ok := e.(intent.Requested); ok {
		requested.Request = outline(requested.Request)
		e = requested
	}
	if r.Version == 0 {
		r.Position, r.RequestedAt = recorded.Position, recorded.At
	}
	r.State, r.Version, r.UpdatedAt = r.State.Evolve(e), recorded.Version, recorded.At
	return r, nil
}

// outline is a request without what a row lacks.
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

// Request is what was asked for, in outline.
func (r Row) Request() intent.Request { return r.State.Requested.Request }

// Signer is who signs: who has it, or else who is to have it. Of one that was asked of a
// pool it is nil until one of the pool has it.
func (r Row) Signer() *chain.Address {
	if p := r.State.Place; p != nil {
		return &p.Signer
	}
	return r.Request().Signer
}
