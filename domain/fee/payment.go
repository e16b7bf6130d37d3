package fee

import (
	"slices"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// GasLimit is the gas limit of a transaction: what the intent asks for, or if that is 0
// what nodes estimate and the margin, which the ceiling may cut. The refusal is [ErrGas].
func (p Policy) GasLimit(asked, estimate uint64) (uint64, error) {
	if need := max(asked, estimate); need > p.GasCeiling {
		return 0, ErrGas.Because("it needs %d, and may have %d", need, p.GasCeiling)
	}
	if asked > 0 {
		return asked, nil
	}
	return min(raisedGas(estimate, p.GasMargin), p.GasCeiling), nil
}

// pay says who pays, and in what.
func (p Policy) pay(o *Offer, t Terms) error {
	switch {
	case t.Token != nil && !slices.Contains(p.Tokens, *t.Token):
		return ErrToken.Because("%s", t.Token)
	case t.Sponsored && p.Sponsor == nil:
		return ErrSponsor.Because("the relay has nobody who pays on this chain")
	}
	o.Token = t.Token
	if t.Token == nil && len(p.Tokens) > 0 {
		o.Token = &p.Tokens[0]
	}
	// What the one who pays for others sends itself needs nobody's second signature.
	// Source: tempoxyz/tempo, which refuses a fee payer that is the sender.
	if t.Sponsored && *p.Sponsor != t.Sender {
		o.Payer = p.Sponsor
	}
	return nil
}

// Put writes an offer into a transaction, as its type has it.
func (o Offer) Put(tx *chain.Unsigned) {
	tx.GasPrice, tx.MaxFee, tx.MaxPriorityFee = nil, nil, nil
	if tx.Type == 0 {
		tx.GasPrice = o.Fee.MaxFee.Int()
	} else {
		tx.MaxFee, tx.MaxPriorityFee = o.Fee.MaxFee.Int(), o.Fee.MaxPriorityFee.Int()
	}
	tx.FeeToken, tx.Sponsored = o.Token, o.Payer != nil
}

// Cost is the most that gas can cost, in the chain's smallest unit; 2^256-1 if it is
// more than that.
func Cost(gas uint64, offer chain.Fee) *uint256.Int {
	cost, over := new(uint256.Int).MulOverflow(uint256.NewInt(gas), offer.MaxFee.Int())
	if over {
		cost.SetAllOne()
	}
	return cost
}

// attodollars are in one unit of a fee token, of which a dollar has 10^6.
const attodollars = 1_000_000_000_000

// TokenCost is a cost in attodollars as so many units of a fee token, rounded up.
// Source: tempoxyz/tempo, crates/revm, calc_gas_balance_spending.
func TokenCost(cost *uint256.Int) *uint256.Int {
	units, rest := new(uint256.Int).DivMod(cost, uint256.NewInt(attodollars), new(uint256.Int))
	if !rest.IsZero() {
		units.AddUint64(units, 1)
	}
	return units
}
