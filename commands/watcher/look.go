package watcher

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Sight is what [Watcher.Look] found about one transaction.
type Sight struct {
	Over  bool   // a verdict was recorded
	Wants uint64 // the next nonce the chain wants in its sequence, if Known
	Known bool
}

// Look asks the chain about one open transaction and records the verdict if there
// is one: the receipt first, then the nonce, then the time, all as of one block.
// It needs no lease: what it records would bear two.
func (w *Watcher) Look(ctx context.Context, s tx.State) (Sight, error) {
	head, err := w.Node.Head(ctx)
	if err != nil {
		return Sight{}, fmt.Errorf("head: %w", err)
	}
	sight := Sight{}
	sequence := chain.Sequence{Chain: s.Accepted.Chain, Sender: s.Accepted.Sender, Key: s.Accepted.NonceKey}
	if !sequence.Key.IsExpiring() {
		// The nonce is read before the receipt is looked for: had we been mined
		// between the two, the receipt would be there.
		nonces, err := w.Node.Nonces(ctx, head, []chain.Sequence{sequence})
		if err != nil {
			return Sight{}, fmt.Errorf("nonce: %w", err)
		}
		sight.Wants, sight.Known = nonces[0], true
	}
	used := sight.Known && sight.Wants > s.Accepted.Nonce
	closed := s.Accepted.Window.ClosedAt(head.Time)
	if sight.Known && !used && !closed {
		return sight, nil // the nonce is free: no block can hold the transaction
	}
	receipt, err := w.Node.FindReceipt(ctx, s.Accepted.Hash, head)
	if err != nil {
		return Sight{}, fmt.Errorf("receipt: %w", err)
	}
	var news tx.Command
	switch {
	case receipt != nil:
		news = tx.SeeReceipt{Receipt: *receipt, At: w.Now()}
	case used:
		news = tx.SeeNonce{Block: head, Current: sight.Wants, At: w.Now()}
	case closed:
		news = tx.SeeTime{Block: head, At: w.Now()}
	default:
		return sight, nil
	}
	sight.Over = true
	return sight, w.command(ctx, s.Accepted.Hash, news)
}
