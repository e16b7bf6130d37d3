package watcher

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Sight is what [Watcher.Look] found about one transaction.
type Sight struct {
	Over  bool   // a verdict was recorded
	Wants uint64 // the next nonce the chain wants in its sequence, if Known
	Known bool
}

// Look asks the chain about one open transaction and records the verdict if there
// is one. It needs no lease: what it records would bear two.
func (w *Watcher) Look(ctx context.Context, s tx.State) (Sight, error) {
	sight, news, err := w.see(ctx, s)
	if err != nil || news == nil {
		return sight, err
	}
	sight.Over = true
	return sight, w.command(ctx, s.Accepted.Hash, news)
}

// Stale is for an owner who has used a transaction's nonce otherwise and wants that
// recorded now: it asks the chain, records what that leads to, and returns the state.
// [tx.ErrNonceCurrent] refuses while the chain still wants this nonce or a lower one,
// [tx.ErrSettled] when the transaction has ended in another way, as one that turns
// out to be mined has. After [commands.ErrChainAway] nothing has changed.
func (w *Watcher) Stale(ctx context.Context, hash chain.Hash, meta event.Meta) (tx.State, error) {
	stream := tx.Stream(w.Chain, hash)
	r, err := w.Transactions.Load(ctx, stream)
	switch {
	case err != nil:
		return r.State, err
	case r.State.Status == tx.StatusAbsent:
		return r.State, tx.ErrUnknown
	}
	if r.State.Sendable() {
		sight, news, err := w.see(ctx, r.State)
		if err != nil {
			return r.State, fmt.Errorf("%w: %w", commands.ErrChainAway, err)
		}
		if news == nil {
			news = tx.SeeNonce{Current: sight.Wants, At: w.Now()} // which is refused, with the reason
		}
		origin, err := commands.Begin(w.Random, meta)
		if err != nil {
			return r.State, err
		}
		if r, err = w.Transactions.HandleFrom(ctx, stream, r, news, origin); err != nil {
			return r.State, err
		}
	}
	if r.State.Status != tx.StatusStale {
		return r.State, tx.ErrSettled.Because("it is %s", r.State.Status)
	}
	return r.State, nil
}

// see asks the chain about an open transaction, all as of one block: the nonce, and
// unless that is still free the receipt, which goes before the nonce and the time in
// what follows. The command is nil when there is no news; an error is the chain's.
func (w *Watcher) see(ctx context.Context, s tx.State) (Sight, tx.Command, error) {
	head, err := w.Node.Head(ctx)
	if err != nil {
		return Sight{}, nil, fmt.Errorf("head: %w", err)
	}
	sight := Sight{}
	sequence := chain.Sequence{Chain: s.Accepted.Chain, Sender: s.Accepted.Sender, Key: s.Accepted.NonceKey}
	if !sequence.Key.IsExpiring() {
		// The nonce is read before the receipt is looked for: had we been mined
		// between the two, the receipt would be there.
		nonces, err := w.Node.Nonces(ctx, head, []chain.Sequence{sequence})
		if err != nil {
			return Sight{}, nil, fmt.Errorf("nonce: %w", err)
		}
		sight.Wants, sight.Known = nonces[0], true
	}
	used := sight.Known && sight.Wants > s.Accepted.Nonce
	closed := s.Accepted.Window.ClosedAt(head.Time)
	if sight.Known && !used && !closed {
		return sight, nil, nil // the nonce is free: no block can hold the transaction
	}
	receipt, err := w.receiptOf(ctx, s.Accepted.Hash, head)
	switch {
	case err != nil:
		return Sight{}, nil, fmt.Errorf("receipt: %w", err)
	case receipt != nil:
		return sight, tx.SeeReceipt{Receipt: *receipt, At: w.Now()}, nil
	case used:
		return sight, tx.SeeNonce{Block: head, Current: sight.Wants, At: w.Now()}, nil
	case closed:
		if err := w.Node.Shown(ctx, head); err != nil {
			return Sight{}, nil, fmt.Errorf("head: %w", err)
		}
		return sight, tx.SeeTime{Block: head, At: w.Now()}, nil
	}
	return sight, nil, nil
}
