package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// hand gives delivery the recorded attempts that it does not have. It never signs again.
// For an intent that is to end it hands over only no-ops: the cancel may precede any
// hand-over of the other attempts.
func (a *actor) hand(ctx context.Context) error {
	var of []standing
	var missing []chain.Hash
	var raws [][]byte
	var clients []string
	var trouble error
	ask := a.askOnce(ctx)
	for _, s := range a.slots() {
		if _, _, executed := s.executed(); s.stale || s.halted != "" || executed {
			continue
		}
		for _, made := range s.Attempts {
			if s.txs[made.Hash].Status != tx.StatusAbsent || a.unsent(s, made) {
				continue
			}
			if late, err := a.isLate(s, made.Intent.IsZero(), ask); late || err != nil {
				trouble = errors.Join(trouble, err)
				continue
			}
			raw, err := a.bytes(ctx, made.Hash)
			switch {
			case errors.Is(err, payload.ErrGone) || errors.Is(err, payload.ErrSealed):
				s.job.gone[made.Hash] = true
				trouble = errors.Join(trouble, fmt.Errorf("attempt %s at nonce %d is lost, a new attempt follows: %w", made.Hash, s.Nonce, err))
				continue
			case err != nil:
				return errors.Join(trouble, fmt.Errorf("attempt %s: %w", made.Hash, err))
			}
			of, missing, raws = append(of, s), append(missing, made.Hash), append(raws, raw)
			clients = append(clients, s.clientOf(made))
		}
	}
	if len(missing) == 0 {
		return trouble
	}
	answers, err := a.Delivery.Batch(ctx, a.Chain, raws, func(i int) string { return clients[i] }, eventlog.Meta{Actor: lane.Actor})
	if err != nil {
		return errors.Join(trouble, fmt.Errorf("hand %d attempts to delivery: %w", len(raws), err))
	}
	a.crash("attempts.handed")
	for i, answer := range answers {
		if answer.Err != nil {
			trouble = errors.Join(trouble, fmt.Errorf("delivery of %s: %w", missing[i], answer.Err))
			continue
		}
		of[i].txs[missing[i]] = delivered{State: answer.State}
		delete(a.fresh, missing[i])
	}
	return trouble
}

// clientOf returns the client that owns an attempt in delivery: the client of its intent. A
// no-op has no client.
func (s standing) clientOf(made lane.Made) string {
	if made.Intent.IsZero() {
		return ""
	}
	return s.job.intent.State.Requested.Request.Client
}

// bytes returns the bytes of an attempt: just signed here, or from the vault.
func (a *actor) bytes(ctx context.Context, hash chain.Hash) ([]byte, error) {
	if raw, ok := a.fresh[hash]; ok {
		return raw, nil
	}
	return a.Vault.Bytes(ctx, payload.Ref{Chain: a.Chain, Hash: hash})
}
