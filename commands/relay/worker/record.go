package worker

import (
	"context"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// record records attempts with their intents.
func (a *actor) record(ctx context.Context) error {
	var untold []standing
	for _, s := range a.slots() {
		if !s.stale && a.placed(s) && slices.ContainsFunc(s.Attempts, func(m lane.Made) bool { return !a.known(s, m.Hash) }) {
			untold = append(untold, s)
		}
	}
	if len(untold) == 0 {
		return nil
	}
	err := each(a, untold, func(s standing) error {
		for i, made := range s.Attempts {
			kind := intent.Bump
			switch {
			case a.known(s, made.Hash):
				continue
			case made.Intent.IsZero():
				kind = intent.NoOp
			case i == 0:
				kind = intent.First
			}
			err := a.tellIntent(ctx, s.job, intent.Attempt{Assignment: s.job.intent.State.Assignment, Kind: kind, Hash: made.Hash, Fee: made.Fee, At: a.Now()})
			// A refusal means that the intent has lost the place: a no-op will use the
			// nonce.
			if unlessRefused(err) != nil {
				return err
			}
		}
		return nil
	})
	a.crash("intents.told")
	return err
}

// unsent reports whether delivery does not have an attempt and will not get it here: its
// intent does not know it or is to end, or its bytes are gone.
func (a *actor) unsent(s standing, made lane.Made) bool {
	stopped := s.job.intent.State.ToNoOp()
	return s.txs[made.Hash].Status == tx.StatusAbsent && (!a.known(s, made.Hash) || stopped && !made.Intent.IsZero() || s.gone[made.Hash])
}
