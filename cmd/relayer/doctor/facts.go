// Package doctor says in plain words how a lane does: what the log and the chain tell of
// it, what keeps it, what happens next by itself, and what somebody can do. It is pure:
// who asks brings the facts.
package doctor

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/budget"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/fee"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/lane"
	"github.com/tempo-watchtower/watchtower/domain/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/signer"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Facts are what is known of a lane at one moment.
type Facts struct {
	ID  chain.Sequence
	Now time.Time

	Lane   lane.State
	Opened time.Time // when it was opened last; zero never
	Lease  Lease

	// Witness is what the chain wants next, and who says so; NodeErr why that is not known.
	Witness lane.Witness
	NodeErr error
	// Pending is the nonce after what one node's pool has of the signer; nil is not known,
	// or there is no such thing under this nonce key.
	Pending *uint64
	// BaseFee is that of the next block; nil where there is none. MarketErr says why
	// nothing is known of what gas costs.
	BaseFee   *chain.Price
	Market    chain.Market
	MarketErr error
	Balance   *chain.Amount // nil is not known

	Signer   signer.State
	Switches safeguard.State
	Budget   budget.State // the chain's

	// Waits are the oldest of the intents that wait for a nonce, and may get one of this lane.
	Waits []Wait

	// Txs are the attempts at the first nonce that waits for the chain, and Intents those
	// that hold nonces which wait for something.
	Txs     map[chain.Hash]Tx
	Intents map[chain.IntentID]intent.State

	Rules Rules
}

// Wait is an intent that waits for a nonce.
type Wait struct {
	ID    chain.IntentID
	Since time.Time
	Why   error // what the lane's holder would hear if it asked now; nil is nothing
}

// Lease is who may work on a lane.
type Lease struct {
	Where  string    `json:"where,omitempty"` // it was looked for
	Holder string    `json:"holder,omitempty"`
	Until  time.Time `json:"until,omitzero"` // by the clock of who keeps the leases
	Runs   bool      `json:"runs"`
	// Unknown is why nothing is known of it.
	Unknown string `json:"unknown,omitempty"`
}

// Tx is an attempt as delivery knows it.
type Tx struct {
	tx.State
	Last   *tx.Rejected // the last refusal by nodes, unless one has taken it since
	NextAt time.Time    // when it is sent again; zero is not known
	Known  *bool        // whether any node that was asked has it; nil is not known
}

// Rules are the settings that the lane is worked on by.
type Rules struct {
	Policy  fee.Policy
	Legacy  bool
	NoOpGas uint64
	First   uint64 // how much more a sequence's first transaction needs
	Budget  int
	Stall   time.Duration
	Look    time.Duration
	Claim   time.Duration // after so long an intent that waits is looked at again
}

// slots are the open nonces.
func (f Facts) slots() (all []lane.Slot) {
	for s := range f.Lane.Slots() {
		all = append(all, s)
	}
	return all
}

// Front is the first open nonce that waits for the chain; false when none does.
func Front(s lane.State) (lane.Slot, bool) {
	for slot := range s.Slots() {
		if slot.Landed == nil && !slot.IsFree() {
			return slot, true
		}
	}
	return lane.Slot{}, false
}

// terms are those of an intent's attempts.
func (f Facts) terms(it intent.State) fee.Terms {
	gas := it.Requested.Request.Gas
	return fee.Terms{
		Legacy: f.Rules.Legacy, Urgency: fee.Urgency(gas.Urgency), Floor: chain.Price(it.Floor),
		MaxFee: chain.Price(gas.MaxFee), MaxPriorityFee: chain.Price(gas.MaxPriorityFee), Gas: gas.Limit, Sender: f.ID.Sender,
	}
}

// again is what would be offered at a nonce now, over what was signed for it: for its
// intent, or a no-op if that is to end, or nobody wants the nonce.
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
