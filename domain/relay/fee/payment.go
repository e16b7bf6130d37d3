package fee

import (
	"slices"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// GasLimit returns a transaction's gas limit: the intent's, or if that is 0 the nodes' estimate
// plus the margin, up to the ceiling. The refusal is [ErrGas].
func (p Policy) GasLimit(asked, estimate uint64) (uint64, error) {
	if need := max(asked, estimate); need > p.GasCeiling {
		return 0, ErrGas.Because("it needs %d, but its limit is %d", need, p.GasCeiling)
	}
	if asked > 0 {
		return asked, nil
	}
	return min(raisedGas(estimate, p.GasMargin), p.GasCeiling), nil
}

// pay sets the offer's payer and token.
func (p Policy) pay(o *Offer, t Terms) error {
	switch {
	case t.Token != nil && !slices.Contains(p.Tokens, *t.Token):
		return ErrToken.Because("%s", t.Token)
	case t.Sponsored && p.Sponsor == nil:
		return ErrSponsor.Because("the relay has no fee payer on this chain")
	}
	o.Token = t.Token
	if t.Token == nil && len(p.Tokens) > 0 {
		o.Token = &p.Tokens[0]
	}
	// The fee payer's own transactions need no second signature. Source: tempoxyz/tempo, which
	// refuses a fee payer that is the sender.
	if t.Sponsored && *p.Sponsor != t.Sender {
		o.Payer = p.Sponsor
	}
	return nil
}

// Put sets a transaction's fee fields, by its type.
func (o Offer) Put(tx *chain.Unsigned) {
	tx.GasPrice, tx.MaxFee, tx.MaxPriorityFee = nil, nil, nil
	if tx.Type == 0 {
		tx.GasPrice = o.Fee.MaxFee.Int()
	} else {
		tx.MaxFee, tx.MaxPriorityFee = o.Fee.MaxFee.Int(), o.Fee.MaxPriorityFee.Int()
	}
	tx.FeeToken, tx.Sponsored = o.Token, o.Payer != nil
}

// Cost returns the highest cost of gas, in the chain's smallest unit; 2^256-1 on overflow.
func Cost(gas uint64, offer chain.Fee) *uint256.Int {
	cost, over := new(uint256.Int).MulOverflow(uint256.NewInt(gas), offer.MaxFee.Int())
	if over {
		cost.SetAllOne()
	}
	return cost
}

// attodollars is the number of attodollars per unit of a fee token; a dollar has 10^6 units.
const attodollars = 1_000_000_000_000

// TokenCost converts a cost in attodollars to units of a fee token, rounded up. Source:
// tempoxyz/tempo, crates/revm, calc_gas_balance_spending.
func TokenCost(cost *uint256.Int) *uint256.Int {
	units, rest := new(uint256.Int).DivMod(cost, uint256.NewInt(attodollars), new(uint256.Int))
	if !rest.IsZero() {
		units.AddUint64(units, 1)
	}
	return units
}
