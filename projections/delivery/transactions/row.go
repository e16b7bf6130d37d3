// Package transactions is the read model behind /v1/transactions. It imports domain, eventlog and
// projections, and no other read model.
package transactions

import (
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Row is one transaction in the read model. It follows from the events alone.
type Row struct {
	State    tx.State
	Position eventlog.Position // of its Accepted
	Version  eventlog.Version
	// AcceptedAt and UpdatedAt are times of the store's clock. A submission of the same bytes
	// by another client is no update: it changes nothing for the earlier owners.
	AcceptedAt, UpdatedAt time.Time
	// LastAnswers are the endpoints' answers to the last recorded attempt. LastError is their
	// combined error; empty if a node accepted the bytes.
	LastAnswers     []tx.Answer `json:",omitempty"`
	LastError       string      `json:",omitempty"`
	LastBroadcastAt time.Time   `json:",omitzero"`
}

// Evolve applies one recorded event. An event that the row already contains is skipped. A gap
// in the versions breaks an invariant of the store, and is an error.
func (r Row) Evolve(recorded eventlog.Recorded, codec eventlog.Codec[tx.Event]) (Row, error) {
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
	if r.Version == 0 {
		r.Position, r.AcceptedAt = recorded.Position, recorded.At
	}
	r.State, r.Version = r.State.Evolve(e), recorded.Version
	if _, another := e.(tx.Resubmitted); !another {
		r.UpdatedAt = recorded.At
	}
	switch e := e.(type) {
	case tx.Broadcast:
		r.LastAnswers, r.LastError, r.LastBroadcastAt = e.Answers, "", e.At
	case tx.Rejected:
		o := tx.Outcome{Class: e.Class, Cause: e.Cause, Message: e.Reason}
		r.LastAnswers, r.LastError, r.LastBroadcastAt = e.Answers, o.String(), e.At
	default: // the state has everything about the other events
	}
	return r, nil
}
