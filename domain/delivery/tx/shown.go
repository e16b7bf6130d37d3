package tx

import "github.com/tempo-watchtower/watchtower/domain/chain"

// Shown is a transaction's state in a message about one of its events: all that a receiver needs
// to act on the event without a look-up. It names no client, and has nothing of the signature and
// the calls.
type Shown struct {
	Chain      chain.ID       `json:"chainId"`
	Hash       chain.Hash     `json:"txHash"`
	Sender     chain.Address  `json:"sender"`
	FeePayer   *chain.Address `json:"feePayer,omitempty"`
	NonceKey   chain.NonceKey `json:"nonceKey"`
	Nonce      uint64         `json:"nonce"`
	Group      *chain.GroupID `json:"groupId,omitempty"`
	EligibleAt uint64         `json:"eligibleAt"`          // Unix seconds: earliest time to send
	ExpiresAt  uint64         `json:"expiresAt,omitempty"` // Unix seconds of block time; 0: never
	Status     Status         `json:"status"`
	// Finalized: the verdict's block is final, and the status does not change any more.
	Finalized bool           `json:"finalized"`
	Block     *chain.Block   `json:"block,omitempty"`   // the block on which the verdict rests
	Receipt   *chain.Receipt `json:"receipt,omitempty"` // of an executed transaction
	Attempts  int            `json:"attempts"`          // the last recorded broadcast attempt
	Canceled  bool           `json:"canceled,omitempty"`
}

// Shown returns the state as a message shows it. A group is left out while the sender is only
// claimed.
func (s State) Shown() Shown {
	a := s.Accepted
	out := Shown{
		Chain: a.Chain, Hash: a.Hash, Sender: a.Sender, FeePayer: a.FeePayer, NonceKey: a.NonceKey, Nonce: a.Nonce,
		EligibleAt: a.EligibleAt, ExpiresAt: a.Window.Before, Status: s.Status, Finalized: s.Sealed,
		Receipt: s.Receipt, Attempts: s.Attempt, Canceled: s.Canceled,
	}
	if !s.Claimed() {
		out.Group = a.Group
	}
	if s.Verdict != "" {
		out.Block = &s.Block
	}
	return out
}

// Size is about the number of bytes that the state takes in memory.
func (s State) Size() int {
	const fixed, recorded, owner = 900, 64, 48
	size := fixed + owner*len(s.Resubmitters)
	for outcome := range s.Recorded {
		size += recorded + len(outcome)
	}
	return size
}
