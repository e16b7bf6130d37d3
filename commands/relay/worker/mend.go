package worker

import (
	"context"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Mender records operators' commands about lanes. It does not write to lanes: the lane's
// holder reads the command and executes it.
type Mender struct {
	Lanes   Lanes
	Intents Intents
	Now     func() time.Time
}

// Given is a nonce that its intent returns, so that a no-op uses it up.
type Given struct {
	Nonce  uint64         `json:"nonce"`
	Intent chain.IntentID `json:"intent"`
}

// Fill makes the intents at some holes of a lane return their nonces, so that the lane's
// holder fills them with no-ops. It refuses all nonces if one is no hole (lane.ErrNoHole),
// or if a later intent of the same ordering group is signed at a higher nonce
// (intent.ErrLive). A hole without an intent is left to the lane's holder, and is not
// returned. A repeated Fill adds nothing.
func (m Mender) Fill(ctx context.Context, id chain.Sequence, nonces []uint64, reason string, meta eventlog.Meta) ([]Given, error) {
	held, err := m.Lanes.Load(ctx, lane.Stream(id))
	switch {
	case err != nil:
		return nil, err
	case held.State.Token == 0:
		return nil, lane.ErrUnknown.Because("%s was never opened", lane.Stream(id))
	}
	holes := held.State.Holes()
	given := []Given{}
	for _, nonce := range nonces {
		i := slices.IndexFunc(holes, func(h lane.Hole) bool { return h.Nonce == nonce })
		if i < 0 {
			return nil, lane.ErrNoHole.Because("nonce %d is not a nonce gap: an unsigned nonce below a signed one", nonce)
		}
		if !holes[i].Intent.IsZero() {
			given = append(given, Given{nonce, holes[i].Intent})
		}
	}
	for _, g := range given {
		if err := m.rowAllows(ctx, held.State, g); err != nil {
			return nil, err
		}
	}
	for _, g := range given {
		if err := m.yield(ctx, id, g, reason, meta); err != nil {
			return nil, err
		}
	}
	return given, nil
}

// rowAllows refuses to move an intent behind signed later intents of its ordering group.
func (m Mender) rowAllows(ctx context.Context, s lane.State, g Given) error {
	it, err := m.Intents.Load(ctx, intent.Stream(g.Intent))
	row := it.State.Requested.Request.Waiting(0).Row
	if err != nil || row.Order == "" {
		return err
	}
	for slot := range s.Slots() {
		if slot.Nonce <= g.Nonce || slot.Intent.IsZero() || len(slot.Attempts) == 0 {
			continue
		}
		other, err := m.Intents.Load(ctx, intent.Stream(slot.Intent))
		if err != nil {
			return err
		}
		if other.State.Requested.Request.Waiting(0).Row == row {
			return intent.ErrLive.Because("%s comes later in its ordering group, and is already signed at nonce %d", slot.Intent, slot.Nonce)
		}
	}
	return nil
}

func (m Mender) yield(ctx context.Context, id chain.Sequence, g Given, reason string, meta eventlog.Meta) error {
	it, err := m.Intents.Load(ctx, intent.Stream(g.Intent))
	if err != nil {
		return err
	}
	if p := it.State.Place; p == nil || *p != (intent.Place{Signer: id.Sender, NonceKey: id.Key, Nonce: g.Nonce}) {
		return intent.ErrNotAssigned.Because("%s does not have nonce %d yet, or has lost it", g.Intent, g.Nonce)
	}
	_, err = m.Intents.DoFrom(ctx, intent.Stream(g.Intent), it, intent.Yield{Assignment: it.State.Assignment, Detail: reason, At: m.Now()}, meta)
	return err
}
