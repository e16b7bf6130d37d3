package doctor

import (
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/lane"
	"github.com/tempo-watchtower/watchtower/domain/signer"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Diagnosis is how a lane does.
type Diagnosis struct {
	Chain    chain.ID       `json:"chain"`
	Signer   chain.Address  `json:"signer"`
	NonceKey chain.NonceKey `json:"nonceKey"`
	// Well means that nothing is wrong, as far as could be seen.
	Well bool `json:"well"`

	Cursor  *uint64 `json:"cursor,omitempty"` // the next nonce that was never handed out
	Wants   *uint64 `json:"wants,omitempty"`  // the next one that the chain wants
	Block   uint64  `json:"block,omitempty"`  // as of which it does
	Agreed  int     `json:"agreed,omitempty"` // of how many endpoints that were asked
	Asked   int     `json:"asked,omitempty"`
	Pending *uint64 `json:"pending,omitempty"`

	InFlight int        `json:"inFlight"`
	Room     int        `json:"room"` // nonces that may be in flight
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

// Attempt is one at the first nonce.
type Attempt struct {
	Hash   chain.Hash `json:"hash"`
	NoOp   bool       `json:"noOp,omitempty"`
	Fee    chain.Fee  `json:"fee"`
	At     time.Time  `json:"at"`
	Status tx.Status  `json:"status,omitempty"` // that delivery gives it
	NextAt time.Time  `json:"nextAt,omitzero"`
	Known  *bool      `json:"known,omitempty"` // to any node that was asked
}

// Hole is a nonce for which nothing was signed, below one for which something was.
type Hole struct {
	lane.Hole
	// Fill is what would be done to it, if it can be; else why it cannot.
	Fill *Filling `json:"fill,omitempty"`
	Why  string   `json:"why,omitempty"`
}

// Filling is what filling a hole comes to.
type Filling struct {
	Nonce  uint64         `json:"nonce"`
	Intent chain.IntentID `json:"intent"` // that gives the nonce back, and goes on waiting
	Gas    uint64         `json:"gas"`
	Fee    chain.Fee      `json:"fee"`  // for a unit of gas, as of now
	Cost   chain.Amount   `json:"cost"` // at most
}

// Finding is something about a lane that somebody has to know.
type Finding struct {
	Code string `json:"code"`
	Says string `json:"says"`
	// Next is what happens by itself, and Do what somebody can do.
	Next string `json:"next,omitempty"`
	Do   string `json:"do,omitempty"`
}

// Diagnose says how a lane does.
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

// holes are those of the lane, and what filling them comes to.
func (f Facts) holes() (all []Hole) {
	for _, hole := range f.Lane.Holes() {
		h := Hole{Hole: hole}
		offer, err := f.again(lane.Slot{})
		switch {
		case hole.Intent.IsZero():
			h.Why = "nobody holds it: the lane's holder fills it by itself"
		case f.rowIsSigned(hole):
			h.Why = "others of its intent's row have higher nonces and are signed for: the row would land in another order"
		case err != nil:
			h.Why = "no no-op is signed now: " + err.Error()
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

// rowIsSigned reports whether something was signed above a hole for another intent of its
// row, which has to land in the order of asking.
func (f Facts) rowIsSigned(hole lane.Hole) bool {
	row := f.Intents[hole.Intent].Requested.Request.Waiting(0).Row
	return row.Order != "" && slices.ContainsFunc(f.slots(), func(s lane.Slot) bool {
		return s.Nonce > hole.Nonce && len(s.Attempts) > 0 && f.Intents[s.Intent].Requested.Request.Waiting(0).Row == row
	})
}

// Fillings are the holes that can be filled on demand, and what that comes to.
func (d Diagnosis) Fillings() (all []Filling) {
	for _, h := range d.Holes {
		if h.Fill != nil {
			all = append(all, *h.Fill)
		}
	}
	return all
}
