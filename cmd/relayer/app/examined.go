package app

import (
	"context"

	"github.com/tempo-watchtower/watchtower/cmd/relayer/doctor"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

// readLog reads a lane, its signer and the operators' settings from the log.
func readLog(ctx context.Context, log streamed, f *doctor.Facts) error {
	id := f.ID
	err := fold(ctx, log, lane.Stream(id), lane.Codec(), func(e lane.Event) {
		if opened, is := e.(lane.Opened); is {
			f.Opened = opened.At
		}
		f.Lane = f.Lane.Evolve(e)
	})
	if err != nil {
		return err
	}
	err = fold(ctx, log, signer.Stream(id.Chain, id.Sender), signer.Codec(), func(e signer.Event) { f.Signer = f.Signer.Evolve(e) })
	if err != nil {
		return err
	}
	err = fold(ctx, log, safeguard.Stream, safeguard.Codec(), func(e safeguard.Event) { f.Switches = f.Switches.Evolve(e) })
	if err != nil {
		return err
	}
	return fold(ctx, log, budget.Stream(id.Chain), budget.Codec(), func(e budget.Event) { f.Budget = f.Budget.Evolve(e) })
}

// readFront reads the intents of the waiting nonces, and the attempts at the first nonce.
func (e *Examination) readFront(ctx context.Context, from sources, f *doctor.Facts) error {
	f.Intents, f.Txs = map[chain.IntentID]intent.State{}, map[chain.Hash]doctor.Tx{}
	for slot := range f.Lane.Slots() {
		if slot.Intent.IsZero() || slot.Landed != nil {
			continue
		}
		var it intent.State
		if err := fold(ctx, from.log, intent.Stream(slot.Intent), intent.Codec(), func(e intent.Event) { it = it.Evolve(e) }); err != nil {
			return err
		}
		f.Intents[slot.Intent] = it
	}
	front, waits := doctor.Front(f.Lane)
	if !waits {
		return nil
	}
	var refs []payload.Ref
	for i, made := range front.Attempts {
		t, err := readTx(ctx, from.log, f.ID.Chain, made.Hash)
		if err != nil {
			return err
		}
		if len(front.Attempts)-i <= knownMost && t.Sendable() && f.NodeErr == nil {
			t.Known = isKnown(ctx, e.pools[f.ID.Chain], made.Hash)
		}
		f.Txs[made.Hash] = t
		refs = append(refs, payload.Ref{Chain: f.ID.Chain, Hash: made.Hash})
	}
	work, err := from.work(ctx, refs)
	for ref, w := range work {
		if w.Phase == tx.Open {
			t := f.Txs[ref.Hash]
			t.NextAt = w.NextAt
			f.Txs[ref.Hash] = t
		}
	}
	return err
}

// readTx reads a transaction as recorded by delivery.
func readTx(ctx context.Context, log streamed, on chain.ID, hash chain.Hash) (t doctor.Tx, err error) {
	err = fold(ctx, log, tx.Stream(on, hash), tx.Codec(), func(e tx.Event) {
		switch e := e.(type) {
		case tx.Rejected:
			t.Last = &e
		case tx.Broadcast:
			t.Last = nil
		}
		t.State = t.State.Evolve(e)
	})
	return t, err
}
