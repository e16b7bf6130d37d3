// Package fee computes the relay's gas offers: how much, when to raise, and when to offer
// nothing.
//
// A [Policy] belongs to an operator, for one chain. With the chain's recent blocks
// ([chain.Market]) and an intent's [Terms] it computes an offer:
//
//   - The fee covers the next base fee, the urgency's headroom, and a tip that the newest blocks
//     accepted, at the urgency's percentile.
//   - It never exceeds the operator's or the intent's ceiling. If the market is above the ceiling,
//     nothing is offered ([ErrMarket]): a signed attempt would stay unmined and hold its nonce.
//   - An intent's offer stays so far below the operator's ceiling ([Policy.Most]) that a no-op can
//     replace it once more. Otherwise an intent with an attempt at the ceiling could not be canceled.
//   - A replacement raises both fields by the pools' minimum. If that exceeds the ceiling, nothing is
//     offered ([ErrCeiling]): the earlier attempt stays, and the operator must be alerted. An attempt
//     that no pool can have need not be outbid. Otherwise, if it was withheld or its bytes are lost,
//     its nonce could never be used, and all later nonces would wait for ever.
//
// All of it is a pure function of its arguments, and defined for every market: nodes may report
// wrong values, and 2^256-1 must neither overflow nor be paid.
package fee

import (
	"fmt"
	"math"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Urgency trades speed against price. Empty is [Normal].
type Urgency string

const (
	Slow   Urgency = "slow"
	Normal Urgency = "normal"
	Fast   Urgency = "fast"
)

// Level is the pricing of an urgency.
type Level struct {
	// Percentile is the position of the tip among a block's tips, from the lowest.
	Percentile float64
	// Headroom is the percentage added to the next base fee. A full block raises the base fee by
	// an eighth: 50 % covers three such blocks, 100 % five.
	Headroom uint64
	// Premium is the percentage added to the nodes' suggested gas price, on a chain without base
	// fees. All of it is paid.
	Premium uint64
}

// Policy holds the fee settings of one chain.
type Policy struct {
	Slow, Normal, Fast Level
	// History is the number of newest blocks whose tips are asked for.
	History int
	// Ceiling is the highest fee per gas, and TipCeiling the highest tip within it; 0: as high as
	// the fee. Intents are limited to [Policy.Most].
	Ceiling, TipCeiling chain.Price
	// MinFee and MinTip are the minimum of the chain's pools.
	MinFee, MinTip chain.Price
	// Bump is the percentage by which a replacement exceeds the offer before.
	Bump uint64
	// GasMargin is the percentage added to the nodes' gas estimate. GasCeiling is the highest gas
	// limit.
	GasMargin, GasCeiling uint64
	// MaxPerTransaction is the highest gas limit × fee of one transaction; 0: no limit. Nodes
	// refuse transactions above a limit of their own.
	MaxPerTransaction chain.Amount
	// Tokens are the allowed fee tokens; the first is the default. If empty, the account or the
	// chain decides. Tempo has fee tokens.
	Tokens []chain.Address
	// Sponsor pays the fees of sponsored intents; nil: no sponsor.
	Sponsor *chain.Address
}

// Bounds of settings.
const (
	percentMax = 1000
	BumpMin    = 10      // percent: pools refuse a smaller replacement
	GasMin     = 21_000  // the minimum gas of any transaction
	GasMax     = 1 << 40 // the maximum gas of an intent
	HistoryMax = 100     // blocks
)

// Default returns a policy for a chain whose smallest unit is a wei or an attodollar. MinTip is
// go-ethereum's default (eth/ethconfig, Defaults, Miner GasPrice: 0.001 gwei). GasCeiling is
// Ethereum's limit per transaction (EIP-7825). MaxPerTransaction is the default of go-ethereum
// and reth (eth/ethconfig, Defaults, RPCTxFeeCap: 1 ether).
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

// Percentiles returns the percentiles of tips that a market must contain per block, in this
// order.
func (p Policy) Percentiles() []float64 {
	return []float64{p.Slow.Percentile, p.Normal.Percentile, p.Fast.Percentile}
}

// Check returns an error if the policy is inconsistent.
func (p Policy) Check() error {
	levels := []Level{p.Slow, p.Normal, p.Fast}
	for i, l := range levels {
		switch {
		case !(l.Percentile >= 0 && l.Percentile <= 100):
			return fmt.Errorf("a percentile is from 0 to 100, not %g", l.Percentile)
		case l.Headroom > percentMax || l.Premium > percentMax:
			return fmt.Errorf("headroom and premium are at most %d percent", percentMax)
		case i > 0 && l.Percentile <= levels[i-1].Percentile:
			return fmt.Errorf("percentiles must rise with the urgency: %g comes after %g", l.Percentile, levels[i-1].Percentile)
		case i > 0 && (l.Headroom < levels[i-1].Headroom || l.Premium < levels[i-1].Premium):
			return fmt.Errorf("headroom and premium must not fall with the urgency")
		}
	}
	switch {
	case p.History < 1 || p.History > HistoryMax:
		return fmt.Errorf("the history of a market must be 1 to %d blocks", HistoryMax)
	case isZero(p.Ceiling) || p.Ceiling.Int().BitLen() > 128:
		return fmt.Errorf("a ceiling below 2^128 is required")
	case less(p.Ceiling, p.TipCeiling):
		return fmt.Errorf("the tip's ceiling %s is above the fee's, %s", p.TipCeiling, p.Ceiling)
	case less(p.Most().MaxFee, p.MinFee) || less(p.Most().MaxPriorityFee, p.MinTip):
		return fmt.Errorf("the pools' minimum fee must be at least a tenth below the ceiling, so that a no-op can replace an attempt at the minimum")
	case p.Bump < BumpMin || p.Bump > percentMax:
		return fmt.Errorf("a bump is from %d to %d percent", BumpMin, percentMax)
	case p.GasMargin > percentMax:
		return fmt.Errorf("the margin of a gas limit is at most %d percent", percentMax)
	case p.GasCeiling < GasMin || p.GasCeiling > GasMax:
		return fmt.Errorf("the ceiling of gas is from %d to %d", GasMin, uint64(GasMax))
	}
	return nil
}

// Most returns the highest offer for an intent, which a no-op can still replace within the
// operator's ceilings.
func (p Policy) Most() chain.Fee {
	most, _ := chain.Fee{MaxFee: p.Ceiling, MaxPriorityFee: p.tipCeiling()}.Replaceable()
	return most
}

// Bounds reports whether MaxPerTransaction limits an intent with this gas to a fee below
// [Policy.Most].
func (p Policy) Bounds(gas uint64) bool {
	bound, bounded := p.bound(gas)
	return bounded && less(bound, p.Most().MaxFee)
}

// bound returns the highest fee per gas that MaxPerTransaction allows; false if there is no
// limit.
func (p Policy) bound(gas uint64) (chain.Price, bool) {
	if gas == 0 || p.MaxPerTransaction.IsZero() {
		return chain.Price{}, false
	}
	return chain.Price(*new(uint256.Int).Div(p.MaxPerTransaction.Int(), uint256.NewInt(gas))), true
}

// bounded lowers the terms' own ceiling to the fee that MaxPerTransaction allows.
func (p Policy) bounded(t Terms) (Terms, error) {
	bound, bounded := p.bound(t.Gas)
	most := p.Most().MaxFee
	if t.NoOp {
		most = p.Ceiling
	}
	switch {
	case !bounded || !less(bound, most):
	case isZero(bound):
		return t, ErrGas.Because("%d gas exceed %s at any price", t.Gas, p.MaxPerTransaction)
	case isZero(t.MaxFee):
		t.MaxFee = bound
	default:
		t.MaxFee = lower(t.MaxFee, bound)
	}
	return t, nil
}

// tipCeiling returns the operator's tip ceiling, by default the fee's.
func (p Policy) tipCeiling() chain.Price {
	if isZero(p.TipCeiling) {
		return p.Ceiling
	}
	return p.TipCeiling
}

// level returns an urgency's level and its index among the percentiles.
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

// Price arithmetic saturates at 2^256-1.

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

// difference returns a-b, or 0 if b is larger.
func difference(a, b chain.Price) chain.Price {
	if less(a, b) {
		return chain.Price{}
	}
	return chain.Price(*new(uint256.Int).Sub(a.Int(), b.Int()))
}

// raised returns a price plus a percentage of it, rounded up.
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

// raisedGas returns gas plus a percentage of it, rounded up.
func raisedGas(gas, percent uint64) uint64 {
	if gas > math.MaxUint64/(100+percent) {
		return math.MaxUint64
	}
	return (gas*(100+percent) + 99) / 100
}
