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

// Payment is who pays a fee, and in what.
type Payment struct {
	// Token is what it is paid in; nil leaves it to the payer's account, or the chain.
	Token *chain.Address
	// Payer pays in the sender's place; nil if the sender does.
	Payer *chain.Address
}

// Payment is who pays for what a sender signs, as an intent wants it: in this token, or
// any; sponsored, or not. The refusals are [ErrToken] and [ErrSponsor].
func (p Policy) Payment(sender chain.Address, token *chain.Address, sponsored bool) (pay Payment, err error) {
	switch {
	case token != nil && !slices.Contains(p.Tokens, *token):
		return pay, ErrToken.Because("%s", token)
	case sponsored && p.Sponsor == nil:
		return pay, ErrSponsor
	case sponsored && *p.Sponsor == sender:
		// Source: tempoxyz/tempo, which refuses a fee payer that is the sender.
		return pay, ErrSponsor.Because("%s cannot pay for itself", sender)
	}
	pay.Token = token
	if token == nil && len(p.Tokens) > 0 {
		pay.Token = &p.Tokens[0]
	}
	if sponsored {
		pay.Payer = p.Sponsor
	}
	return pay, nil
}

// Put writes an offer into a transaction, as its type has it.
func Put(tx *chain.Unsigned, offer chain.Fee, pay Payment) {
	tx.GasPrice, tx.MaxFee, tx.MaxPriorityFee = nil, nil, nil
	if tx.Type == 0 {
		tx.GasPrice = offer.MaxFee.Int()
	} else {
		tx.MaxFee, tx.MaxPriorityFee = offer.MaxFee.Int(), offer.MaxPriorityFee.Int()
	}
	tx.FeeToken, tx.Sponsored = pay.Token, pay.Payer != nil
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
