package doctor

import (
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

// Diagnosis is the state of a lane, with findings.
type Diagnosis struct {
	Chain    chain.ID       `json:"chain"`
	Signer   chain.Address  `json:"signer"`
	NonceKey chain.NonceKey `json:"nonceKey"`
	// Well means that no fault was found.
	Well bool `json:"well"`

	Cursor  *uint64 `json:"cursor,omitempty"` // the next nonce to be reserved
	Wants   *uint64 `json:"wants,omitempty"`  // the next nonce on the chain
	Block   uint64  `json:"block,omitempty"`  // block at which Wants was read
	Agreed  int     `json:"agreed,omitempty"` // number of endpoints that agree, of those asked
	Asked   int     `json:"asked,omitempty"`
	Pending *uint64 `json:"pending,omitempty"`

	InFlight int        `json:"inFlight"`
	Room     int        `json:"room"` // maximum number of nonces in flight
	Holder   string     `json:"holder,omitempty"`
	Token    lane.Token `json:"token,omitempty"`
	Opened   time.Time  `json:"opened,omitzero"`
	Lease    Lease      `json:"lease"`

	Balance   *chain.Amount `json:"balance,omitempty"`
	Threshold chain.Amount  `json:"threshold"`
	Status    signer.Status `json:"signerStatus"`
	BaseFee   *chain.Price  `json:"baseFee,omitempty"` // of the next block
	Ceiling   chain.Price   `json:"feeCeiling"`

	Front    *Waiting  `json:"front,omitempty"`
	Holes    []Hole    `json:"holes,omitempty"`
	Findings []Finding `json:"findings"`
}

// Waiting is the first nonce that waits for the chain.
type Waiting struct {
	Nonce    uint64         `json:"nonce"`
	Intent   chain.IntentID `json:"intent,omitzero"`
	Status   intent.Status  `json:"status,omitempty"`
	Since    time.Time      `json:"since"`
	Attempts []Attempt      `json:"attempts"`
}

// Attempt is an attempt at the first waiting nonce.
type Attempt struct {
	Hash   chain.Hash `json:"hash"`
	NoOp   bool       `json:"noOp,omitempty"`
	Fee    chain.Fee  `json:"fee"`
	At     time.Time  `json:"at"`
	Status tx.Status  `json:"status,omitempty"` // delivery's status of the transaction
	NextAt time.Time  `json:"nextAt,omitzero"`
	Known  *bool      `json:"known,omitempty"` // whether any node asked knows it
}

// Hole is a nonce gap: a nonce without an attempt below a nonce with an attempt.
type Hole struct {
	lane.Hole
	// Fill describes filling the hole; Why is the reason if it cannot be filled.
	Fill *Filling `json:"fill,omitempty"`
	Why  string   `json:"why,omitempty"`
}

// Filling describes how a hole would be filled.
type Filling struct {
	Nonce  uint64         `json:"nonce"`
	Intent chain.IntentID `json:"intent"` // gives the nonce back, and keeps waiting
	Gas    uint64         `json:"gas"`
	Fee    chain.Fee      `json:"fee"`  // per unit of gas, at this moment
	Cost   chain.Amount   `json:"cost"` // maximum
}

// Finding is a fact about a lane that an operator should know.
type Finding struct {
	Code string `json:"code"`
	Says string `json:"says"`
	// Next is the automatic next step; Do is the operator's possible action.
	Next string `json:"next,omitempty"`
	Do   string `json:"do,omitempty"`
}

// Diagnose derives a lane's diagnosis from its facts.
func Diagnose(f Facts) Diagnosis {
	d := Diagnosis{
		Chain: f.ID.Chain, Signer: f.ID.Sender, NonceKey: f.ID.Key, Pending: f.Pending,
		InFlight: f.Lane.InFlight(), Room: f.Rules.Budget, Holder: f.Lane.Holder, Token: f.Lane.Token, Opened: f.Opened, Lease: f.Lease,
		Balance: f.Balance, Threshold: f.Signer.Threshold, Status: f.Signer.Status(), BaseFee: f.BaseFee, Ceiling: f.Rules.Policy.Ceiling,
	}
	if f.Lane.Known {
		d.Cursor = &f.Lane.Next
	}
	if f.NodeErr == nil {
		w := f.Witness
		d.Wants, d.Block, d.Agreed, d.Asked = &w.Nonce, w.Block.Number, len(w.Endpoints), w.Asked
	}
	if front, waits := Front(f.Lane); waits {
		d.Front = f.waiting(front)
	}
	d.Holes = f.holes()
	for _, look := range []func(Facts) []Finding{chainUnknown, unheld, held, cursor, holes, front, full, waits} {
		d.Findings = append(d.Findings, look(f)...)
	}
	d.Well = len(d.Findings) == 0
	if d.Well {
		d.Findings = []Finding{}
	}
	return d
}

func (f Facts) waiting(slot lane.Slot) *Waiting {
	w := &Waiting{Nonce: slot.Nonce, Intent: slot.Intent, Status: f.Intents[slot.Intent].Status(), Since: slot.Since, Attempts: []Attempt{}}
	for _, made := range slot.Attempts {
		t := f.Txs[made.Hash]
		w.Attempts = append(w.Attempts, Attempt{made.Hash, made.Intent.IsZero(), made.Fee, made.At, t.Status, t.NextAt, t.Known})
	}
	return w
}

// holes lists the lane's holes, and how each would be filled.
func (f Facts) holes() (all []Hole) {
	for _, hole := range f.Lane.Holes() {
		h := Hole{Hole: hole}
		offer, err := f.again(lane.Slot{})
		switch {
		case hole.Intent.IsZero():
			h.Why = "no intent holds it: the lane's holder fills it automatically"
		case f.rowIsSigned(hole):
			h.Why = "signed intents of the same ordering group have higher nonces: the group would be mined in another order"
		case err != nil:
			h.Why = "no no-op can be signed now: " + err.Error()
		default:
			gas := f.Rules.NoOpGas
			if hole.Nonce == 0 {
				gas += f.Rules.First
			}
			h.Fill = &Filling{hole.Nonce, hole.Intent, gas, offer, chain.Amount(offer.MaxFee).Times(gas)}
		}
		all = append(all, h)
	}
	return all
}

// rowIsSigned reports whether a transaction above a hole was signed for another intent of the
// hole's ordering group, whose intents must land in order.
func (f Facts) rowIsSigned(hole lane.Hole) bool {
	row := f.Intents[hole.Intent].Requested.Request.Waiting(0).Row
	return row.Order != "" && slices.ContainsFunc(f.slots(), func(s lane.Slot) bool {
		return s.Nonce > hole.Nonce && len(s.Attempts) > 0 && f.Intents[s.Intent].Requested.Request.Waiting(0).Row == row
	})
}

// Fillings lists the holes that can be filled on demand.
func (d Diagnosis) Fillings() (all []Filling) {
	for _, h := range d.Holes {
		if h.Fill != nil {
			all = append(all, *h.Fill)
		}
	}
	return all
}
