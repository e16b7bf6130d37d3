// Package lanes is the read model behind the relay's /v1/lanes: the nonce sequences of the signers, as
// their holders recorded them. It imports projections, the domain's lanes and eventlog alone.
package lanes

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Row is one lane in the read model. It follows from the events alone.
type Row struct {
	ID       chain.Sequence
	State    lane.State
	Position eventlog.Position // of its first event
	Version  eventlog.Version
	// OpenedAt is when the present holder opened it, SignedAt the time of the last attempt, and
	// UpdatedAt the time of the last event; zero: never. The first two are by the holder's clock, the
	// last by the store's.
	OpenedAt, SignedAt, UpdatedAt time.Time
}

// stored is the JSON of a row.
type stored struct {
	Chain     chain.ID          `json:"chain"`
	Signer    chain.Address     `json:"signer"`
	NonceKey  chain.NonceKey    `json:"nonceKey"`
	Schema    int               `json:"schema"`
	State     []byte            `json:"state"` // as [lane.State.Snapshot] writes it
	Position  eventlog.Position `json:"position"`
	Version   eventlog.Version  `json:"version"`
	OpenedAt  time.Time         `json:"openedAt,omitzero"`
	SignedAt  time.Time         `json:"signedAt,omitzero"`
	UpdatedAt time.Time         `json:"updatedAt,omitzero"`
}

func (r Row) MarshalJSON() ([]byte, error) {
	return json.Marshal(stored{r.ID.Chain, r.ID.Sender, r.ID.Key, lane.SnapshotSchema, r.State.Snapshot(), r.Position, r.Version, r.OpenedAt, r.SignedAt, r.UpdatedAt})
}

func (r *Row) UnmarshalJSON(text []byte) error {
	var s stored
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	if s.Schema != lane.SnapshotSchema {
		return fmt.Errorf("a row of snapshot format %d, and not %d: rebuild the read model %s", s.Schema, lane.SnapshotSchema, Name)
	}
	state, err := lane.Restore(s.State)
	*r = Row{chain.Sequence{Chain: s.Chain, Sender: s.Signer, Key: s.NonceKey}, state, s.Position, s.Version, s.OpenedAt, s.SignedAt, s.UpdatedAt}
	return err
}

// Evolve applies one recorded event. An event that the row already contains is skipped. A gap in the
// versions breaks an invariant of the store, and is an error.
func (r Row) Evolve(recorded eventlog.Recorded, codec eventlog.Codec[lane.Event]) (Row, error) {
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
		if r.ID, err = lane.ParseStream(recorded.Stream); err != nil {
			return r, err
		}
		r.Position = recorded.Position
	}
	switch e := e.(type) {
	case lane.Opened:
		r.OpenedAt = e.At
	case lane.Attempted:
		r.SignedAt = e.At
	}
	r.State, r.Version, r.UpdatedAt = r.State.Evolve(e), recorded.Version, recorded.At.UTC()
	return r, nil
}
