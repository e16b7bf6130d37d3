package simulation

import (
	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// rival makes another sender use a signer's key, without the relay's knowledge.
func (w *world) rival() {
	w.faults["chain: a signer's nonce is used elsewhere"]++
	who := w.signers[w.agenda.rand.IntN(len(w.signers))]
	at := chain.Sequence{Chain: chainID, Sender: who.address}
	if lanes := w.lanes.of(who.address); len(lanes) > 0 {
		at.Key = lanes[w.agenda.rand.IntN(len(lanes))]
	}
	w.mine(wallet.Tempo{
		Chain: chainID, MaxFee: 1000 * gwei, MaxPriorityFee: gwei, Gas: 100_000, NonceKey: at.Key, Nonce: w.chain.Nonce(at),
		Calls: []chain.Call{{To: &who.address}},
	}.Sign(who.owner))
	w.rivals[at] = w.chain.Head()
}

// jumped records that a lane has moved beyond nonces that another sender used. Sometimes a fork
// then reverts these uses before they are final, so that the chain's next nonce is a nonce that
// the lane has skipped. Without help that is rare: lanes read the chain only now and then, and
// blocks are final soon.
func (w *world) jumped(at chain.Sequence) {
	used, is := w.rivals[at]
	if !is || w.healed || !w.agenda.chance(w.plan.Relay.Undo) {
		return
	}
	delete(w.rivals, at)
	w.agenda.after(w.agenda.between(0, w.plan.Block), "undo", func() {
		now, _ := w.chain.Canonical(used.Number)
		depth := w.chain.Head().Number - used.Number + 1
		if w.healed || now.Hash != used.Hash || used.Number <= w.chain.Final().Number || depth > w.plan.Finality {
			return
		}
		w.faults["chain: fork withdraws an external use"]++
		w.fork(int(depth), false, nil) //nolint:gosec // small
	})
}
