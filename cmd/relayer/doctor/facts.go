// Package doctor explains the state of a lane in plain words: the state in the log and on the
// chain, the obstacles, the automatic next step, and the operator's possible actions. It is
// pure: the caller supplies the facts.
package doctor

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

// Facts are the known state of a lane at one moment.
type Facts struct {
	ID  chain.Sequence
	Now time.Time

	Lane   lane.State
	Opened time.Time // time of the last opening; zero: never opened
	Lease  Lease

	// Witness is the chain's next nonce and the endpoints that agree; NodeErr is why it is
	// unknown.
	Witness lane.Witness
	NodeErr error
	// Pending is the nonce after the signer's transactions in one node's pool. It is nil if
	// unknown, or if the pool has no such nonce under this nonce key.
	Pending *uint64
	// BaseFee is the base fee of the next block; nil on chains without one. MarketErr is why the
	// gas price is unknown.
	BaseFee   *chain.Price
	Market    chain.Market
	MarketErr error
	Balance   *chain.Amount // nil: unknown

	Signer   signer.State
	Switches safeguard.State
	Budget   budget.State // of the chain

	// Waits are the oldest intents that wait for a nonce and may get one in this lane.
	Waits []Wait

	// Txs are the attempts at the first waiting nonce. Intents are the intents of the waiting
	// nonces.
	Txs     map[chain.Hash]Tx
	Intents map[chain.IntentID]intent.State

	Rules Rules
}

// Wait is an intent that waits for a nonce.
type Wait struct {
	ID    chain.IntentID
	Since time.Time
	Why   error // obstacle that the lane's holder would meet at this moment; nil: none
}

// Lease is the holder of a lane's lease.
type Lease struct {
	Where  string    `json:"where,omitempty"` // the store that was asked
	Holder string    `json:"holder,omitempty"`
	Until  time.Time `json:"until,omitzero"` // by the clock of the store that keeps the leases
	Runs   bool      `json:"runs"`
	// Unknown is why the lease could not be read.
	Unknown string `json:"unknown,omitempty"`
}

// Tx is an attempt in delivery's state.
type Tx struct {
	tx.State
	Last   *tx.Rejected // last refusal by nodes, unless a node has accepted it since
	NextAt time.Time    // next send; zero: unknown
	Known  *bool        // whether any node asked knows it; nil: unknown
}

// Rules are the settings of the lane.
type Rules struct {
	Policy  fee.Policy
	Legacy  bool
	NoOpGas uint64
	First   uint64 // additional gas for a sequence's first transaction
	Budget  int
	Stall   time.Duration
	Look    time.Duration
	Claim   time.Duration // time after which a waiting intent is tried again
}

// slots lists the open nonces.
func (f Facts) slots() (all []lane.Slot) {
	for s := range f.Lane.Slots() {
		all = append(all, s)
	}
	return all
}

// Front is the first open nonce that waits for the chain; false if there is none.
func Front(s lane.State) (lane.Slot, bool) {
	for slot := range s.Slots() {
		if slot.Landed == nil && !slot.IsFree() {
			return slot, true
		}
	}
	return lane.Slot{}, false
}

// terms are the terms of an intent's attempts.
func (f Facts) terms(it intent.State) fee.Terms {
	gas := it.Requested.Request.Gas
	return fee.Terms{
		Legacy: f.Rules.Legacy, Urgency: fee.Urgency(gas.Urgency), Floor: chain.Price(it.Floor),
		MaxFee: chain.Price(gas.MaxFee), MaxPriorityFee: chain.Price(gas.MaxPriorityFee), Gas: gas.Limit, Sender: f.ID.Sender,
	}
}

// again is the offer for a nonce at this moment, above its previous attempts. It is for the
// nonce's intent, or for a no-op if the intent is canceled or the nonce has no intent.
func (f Facts) again(slot lane.Slot) (chain.Fee, error) {
	t := fee.Terms{NoOp: true, Legacy: f.Rules.Legacy, Sender: f.ID.Sender}
	if it, n := f.Intents[slot.Intent], len(slot.Attempts); n > 0 && !slot.Attempts[n-1].Intent.IsZero() && it.Place != nil && it.Stop.Reason == "" {
		t = f.terms(it)
	}
	for _, made := range slot.Attempts {
		t = t.After(made.Fee, f.Txs[made.Hash].Status == tx.StatusAbsent)
	}
	if f.MarketErr != nil {
		return chain.Fee{}, f.MarketErr
	}
	o, err := f.Rules.Policy.Offer(f.Market, t)
	return o.Fee, err
}
