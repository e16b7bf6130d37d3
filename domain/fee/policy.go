// Package fee is what the relay offers for gas: how much, when more, and when nothing.
//
// A [Policy] is an operator's, for one chain. With what the chain's blocks have shown
// ([chain.Market]) and an intent's [Terms] it makes an offer:
//
//   - The fee covers the next base fee, as much above it as the urgency says, and a tip
//     that the newest blocks were content with, at the urgency's percentile.
//   - It never exceeds a ceiling, the operator's or the intent's. Where the market is
//     above it, nothing is offered ([ErrMarket]): what is signed then would lie about
//     unmined, and hold its nonce.
//   - What an intent wants stays so far below the operator's ceiling ([Policy.Most]) that a
//     no-op can replace it once more: else whoever withdraws an intent could not be obeyed
//     where its attempt stands at the ceiling.
//   - What replaces an earlier attempt offers so much more, in both fields, that pools
//     take it. Where that does not fit under the ceiling, nothing is offered
//     ([ErrCeiling]): the earlier attempt stands, and somebody has to be told. What no pool
//     can have need not be outbid: else the nonce of an attempt that is withheld, or whose
//     bytes are lost, would be used by nobody, and all above it would wait for ever.
//
// All of it is a pure function of its arguments, and defined for whatever a market says:
// nodes lie, and a figure of 2^256-1 must neither overflow nor be paid.
package fee

import (
	"fmt"
	"math"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Urgency says how soon an attempt should be mined, at what price. Empty is [Normal].
type Urgency string

const (
	Slow   Urgency = "slow"
	Normal Urgency = "normal"
	Fast   Urgency = "fast"
)

// Level is what an urgency means.
type Level struct {
	// Percentile is where among the tips of a block its own is, counted from the lowest.
	Percentile float64
	// Headroom is how many percent of the next base fee are offered above it. A base fee
	// rises by an eighth with a full block: 50 % outlast three of them, 100 % five.
	Headroom uint64
	// Premium is how many percent are offered above the gas price that nodes suggest, on
	// a chain without base fees. All of that is paid.
	Premium uint64
}

// Policy is how fees are chosen on one chain.
type Policy struct {
	Slow, Normal, Fast Level
	// History is of how many of the newest blocks is asked what they were content with.
	History int
	// Ceiling is the highest fee per gas, and TipCeiling the highest tip within it;
	// 0 is as high as the fee. Intents are offered for at [Policy.Most].
	Ceiling, TipCeiling chain.Price
	// MinFee and MinTip are the least that the chain's pools take.
	MinFee, MinTip chain.Price
	// Bump is how many percent a replacement offers more than what it replaces.
	Bump uint64
	// GasMargin is how many percent a gas limit is above what nodes estimate, and
	// GasCeiling the highest limit.
	GasMargin, GasCeiling uint64
	// MaxPerTransaction is the highest gas limit × fee of one transaction; 0 is no limit.
	// Nodes refuse to take more from their users than a limit of their own.
	MaxPerTransaction chain.Amount
	// Tokens are what fees may be paid in, the first one unless the intent names one;
	// none leaves it to the account, or the chain. Tempo has fee tokens.
	Tokens []chain.Address
	// Sponsor pays the fees of intents that want to be sponsored; nil if nobody does.
	Sponsor *chain.Address
}

// Bounds of settings.
const (
	percentMax = 1000
	BumpMin    = 10      // percent: below that no pool takes a replacement
	GasMin     = 21_000  // what any transaction takes
	GasMax     = 1 << 40 // as much as an intent may ask for
	HistoryMax = 100     // blocks
)

// Default is a policy for a chain whose smallest unit is a wei, or an attodollar. Its
// least tip is what go-ethereum asks for by default (eth/ethconfig, Defaults, Miner
// GasPrice: 0.001 gwei), and its most gas what Ethereum lets a transaction have
// (EIP-7825). Its most for a transaction is what go-ethereum and reth take by default
// (eth/ethconfig, Defaults, RPCTxFeeCap: 1 ether).
func Default() Policy {
	const gwei, ether = 1_000_000_000, 1_000_000_000_000_000_000
	return Policy{
		Slow:       Level{Percentile: 10, Headroom: 25},
		Normal:     Level{Percentile: 50, Headroom: 50, Premium: 10},
		Fast:       Level{Percentile: 90, Headroom: 100, Premium: 25},
		History:    20,
		Ceiling:    chain.PriceOf(500 * gwei),
		MinTip:     chain.PriceOf(gwei / 1000),
		Bump:       20,
		GasMargin:  20,
		GasCeiling: 1 << 24,

		MaxPerTransaction: chain.NewAmount(ether),
	}
}

// Percentiles are what a market has to tell of each block, in this order.
func (p Policy) Percentiles() []float64 {
	return []float64{p.Slow.Percentile, p.Normal.Percentile, p.Fast.Percentile}
}

// Check says what in a policy makes no sense.
func (p Policy) Check() error {
	levels := []Level{p.Slow, p.Normal, p.Fast}
	for i, l := range levels {
		switch {
		case !(l.Percentile >= 0 && l.Percentile <= 100):
			return fmt.Errorf("a percentile is from 0 to 100, not %g", l.Percentile)
		case l.Headroom > percentMax || l.Premium > percentMax:
			return fmt.Errorf("headroom and premium are at most %d percent", percentMax)
		case i > 0 && l.Percentile <= levels[i-1].Percentile:
			return fmt.Errorf("percentiles have to rise with the urgency: %g comes after %g", l.Percentile, levels[i-1].Percentile)
		case i > 0 && (l.Headroom < levels[i-1].Headroom || l.Premium < levels[i-1].Premium):
			return fmt.Errorf("headroom and premium must not fall with the urgency")
		}
	}
	switch {
	case p.History < 1 || p.History > HistoryMax:
		return fmt.Errorf("the history of a market is from 1 to %d blocks", HistoryMax)
	case isZero(p.Ceiling) || p.Ceiling.Int().BitLen() > 128:
		return fmt.Errorf("a ceiling has to be set, below 2^128")
	case less(p.Ceiling, p.TipCeiling):
		return fmt.Errorf("the tip's ceiling %s is above the fee's, %s", p.TipCeiling, p.Ceiling)
	case less(p.Most().MaxFee, p.MinFee) || less(p.Most().MaxPriorityFee, p.MinTip):
		return fmt.Errorf("the least that pools take is above the ceiling, or less than a tenth below it: a no-op has to be able to replace what offers that")
	case p.Bump < BumpMin || p.Bump > percentMax:
		return fmt.Errorf("a bump is from %d to %d percent", BumpMin, percentMax)
	case p.GasMargin > percentMax:
		return fmt.Errorf("the margin of a gas limit is at most %d percent", percentMax)
	case p.GasCeiling < GasMin || p.GasCeiling > GasMax:
		return fmt.Errorf("the ceiling of gas is from %d to %d", GasMin, uint64(GasMax))
	}
	return nil
}

// Most is the most that is offered for what an intent wants: so much that a no-op can
// replace it within the operator's ceilings.
func (p Policy) Most() chain.Fee {
	most, _ := chain.Fee{MaxFee: p.Ceiling, MaxPriorityFee: p.tipCeiling()}.Replaceable()
	return most
}

// Bounds reports whether MaxPerTransaction keeps the fee of an intent with so much gas below
// [Policy.Most].
func (p Policy) Bounds(gas uint64) bool {
	bound, bounded := p.bound(gas)
	return bounded && less(bound, p.Most().MaxFee)
}

// bound is the highest fee per gas that MaxPerTransaction allows; false if it allows any.
func (p Policy) bound(gas uint64) (chain.Price, bool) {
	if gas == 0 || p.MaxPerTransaction.IsZero() {
		return chain.Price{}, false
	}
	return chain.Price(*new(uint256.Int).Div(p.MaxPerTransaction.Int(), uint256.NewInt(gas))), true
}

// bounded are terms whose own ceiling is no higher than MaxPerTransaction allows.
func (p Policy) bounded(t Terms) (Terms, error) {
	bound, bounded := p.bound(t.Gas)
	most := p.Most().MaxFee
	if t.NoOp {
		most = p.Ceiling
	}
	switch {
	case !bounded || !less(bound, most):
	case isZero(bound):
		return t, ErrGas.Because("%d gas cost more than %s at any price", t.Gas, p.MaxPerTransaction)
	case isZero(t.MaxFee):
		t.MaxFee = bound
	default:
		t.MaxFee = lower(t.MaxFee, bound)
	}
	return t, nil
}

// tipCeiling is the operator's, which is the fee's unless it is lower.
func (p Policy) tipCeiling() chain.Price {
	if isZero(p.TipCeiling) {
		return p.Ceiling
	}
	return p.TipCeiling
}

// level finds what an urgency means, and its place among the percentiles.
func (p Policy) level(u Urgency) (Level, int) {
	switch u {
	case Slow:
		return p.Slow, 0
	case Fast:
		return p.Fast, 2
	case Normal, "":
		return p.Normal, 1
	}
	panic(fmt.Sprintf("fee: an urgency %q", string(u)))
}

// Prices are reckoned with as numbers that end at 2^256-1.

func isZero(p chain.Price) bool { return p.Int().IsZero() }

func less(a, b chain.Price) bool { return a.Int().Lt(b.Int()) }

func lower(a, b chain.Price) chain.Price {
	if less(b, a) {
		return b
	}
	return a
}

func higher(a, b chain.Price) chain.Price {
	if less(a, b) {
		return b
	}
	return a
}

func limit() chain.Price { return chain.Price(*new(uint256.Int).SetAllOne()) }

func sum(a, b chain.Price) chain.Price {
	n, over := new(uint256.Int).AddOverflow(a.Int(), b.Int())
	if over {
		return limit()
	}
	return chain.Price(*n)
}

// difference is how much more one is than another, if it is.
func difference(a, b chain.Price) chain.Price {
	if less(a, b) {
		return chain.Price{}
	}
	return chain.Price(*new(uint256.Int).Sub(a.Int(), b.Int()))
}

// raised is a price and so many percent of it, rounded up.
func raised(p chain.Price, percent uint64) chain.Price {
	hundred := uint256.NewInt(100)
	n, over := new(uint256.Int).MulDivOverflow(p.Int(), uint256.NewInt(100+percent), hundred)
	if over {
		return limit()
	}
	if rest := new(uint256.Int).MulMod(p.Int(), uint256.NewInt(100+percent), hundred); !rest.IsZero() {
		return sum(chain.Price(*n), chain.PriceOf(1))
	}
	return chain.Price(*n)
}

// raisedGas is raised for units of gas.
func raisedGas(gas, percent uint64) uint64 {
	if gas > math.MaxUint64/(100+percent) {
		return math.MaxUint64
	}
	return (gas*(100+percent) + 99) / 100
}
