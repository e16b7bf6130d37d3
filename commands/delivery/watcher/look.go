package watcher

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Sight is the result of [Watcher.Look] for one transaction.
type Sight struct {
	Over  bool   // a verdict was recorded
	Wants uint64 // the next nonce that the chain wants in its sequence, if Known
	Known bool
}

// Look asks the chain about one open transaction and records the verdict if there is one.
// It needs no lease: recording a verdict twice is harmless. It asks the chain through node, in the
// name of the transaction's client.
func (w *Watcher) Look(ctx context.Context, node Lookup, s tx.State) (Sight, error) {
	sight, news, err := w.see(ctx, node, s)
	if err != nil || news == nil {
		return sight, err
	}
	sight.Over = true
	return sight, w.command(ctx, s.Accepted.Hash, news)
}

// Stale records that a transaction's nonce was used otherwise, for an owner who does not
// want to wait. It asks the chain through node, in the owner's name, records the result, and returns the state. It refuses
// with [tx.ErrNonceCurrent] while the chain still wants this nonce or a lower one, and with
// [tx.ErrSettled] if the transaction has ended otherwise, for example because it was mined.
// After [commands.ErrChainAway] nothing has changed.
func (w *Watcher) Stale(ctx context.Context, node Lookup, hash chain.Hash, meta eventlog.Meta) (tx.State, error) {
	stream := tx.Stream(w.Chain, hash)
	r, err := w.Transactions.Load(ctx, stream)
	switch {
	case err != nil:
		return r.State, err
	case r.State.Status == tx.StatusAbsent:
		return r.State, tx.ErrUnknown
	}
	if r.State.Sendable() {
		sight, news, err := w.see(ctx, node, r.State)
		if err != nil {
			return r.State, fmt.Errorf("%w: %w", commands.ErrChainAway, err)
		}
		if news == nil {
			news = tx.SeeNonce{Current: sight.Wants, At: w.Now()} // refused, with the reason
		}
		if r, err = w.Transactions.DoFrom(ctx, stream, r, news, meta); err != nil {
			return r.State, err
		}
	}
	if r.State.Status != tx.StatusStale {
		return r.State, tx.ErrSettled.Because("it is %s", r.State.Status)
	}
	return r.State, nil
}

// see asks the chain about an open transaction, all as of one block: for the nonce and,
// unless that is still free, for the receipt. A receipt takes precedence over the nonce and
// the time. The command is nil if there is nothing to record. An error is the chain's.
func (w *Watcher) see(ctx context.Context, node Lookup, s tx.State) (Sight, tx.Command, error) {
	head, err := node.Head(ctx)
	if err != nil {
		return Sight{}, nil, fmt.Errorf("head: %w", err)
	}
	sight := Sight{}
	sequence := chain.Sequence{Chain: s.Accepted.Chain, Sender: s.Accepted.Sender, Key: s.Accepted.NonceKey}
	if !sequence.Key.IsExpiring() {
		// The nonce is read before the receipt: had the transaction been mined between the
		// two, the receipt would be there.
		nonces, err := node.Nonces(ctx, head, []chain.Sequence{sequence})
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
	receipt, err := w.receiptOf(ctx, node, s.Accepted.Hash, head)
	switch {
	case err != nil:
		return Sight{}, nil, fmt.Errorf("receipt: %w", err)
	case receipt != nil:
		return sight, tx.SeeReceipt{Receipt: *receipt, At: w.Now()}, nil
	case used:
		return sight, tx.SeeNonce{Block: head, Current: sight.Wants, At: w.Now()}, nil
	case closed:
		if err := node.Shown(ctx, head); err != nil {
			return Sight{}, nil, fmt.Errorf("head: %w", err)
		}
		return sight, tx.SeeTime{Block: head, At: w.Now()}, nil
	}
	return sight, nil, nil
}
