package fee

import (
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Terms are what an attempt is offered for.
type Terms struct {
	Urgency Urgency
	// Ceilings of the intent's own; 0 is none. A gas price has no tip: then only the first
	// one counts.
	MaxFee, MaxPriorityFee chain.Price
	// Gas is the gas limit, or that of a no-op that may replace the attempt if it is higher;
	// 0 is unknown. It counts for [Policy.MaxPerTransaction].
	Gas uint64
	// GaveWay counts how often the intent gave its nonce up, because gas cost more than its
	// own ceiling.
	GaveWay int
	// Floor is what one unit of gas is to be worth at least, if the ceilings allow it.
	Floor chain.Price
	// NoOp is what uses a nonce up for nobody. It alone may offer as much as the operator's
	// ceilings, which leave it the room to replace whatever intents have offered.
	NoOp bool
	// Replaces is the most that attempts before it offer, of those that pools may have; nil
	// if there are none.
	Replaces *chain.Fee
	// Unsent is the most that those offer which nobody was handed. They are outbid too, as
	// far as the ceilings allow it: no pool has to be content.
	Unsent *chain.Fee
	// Sender signs; Token is what it is to be paid in, nil as the policy says; Sponsored
	// has the relay's fee payer pay.
	Sender    chain.Address
	Token     *chain.Address
	Sponsored bool
	// Legacy is a transaction that has a gas price, which is paid whatever the base fee
	// is. Without base fees all are.
	Legacy bool
}

// After are the terms of what comes after one more attempt at the same nonce, which nobody
// was handed if it is unsent.
func (t Terms) After(earlier chain.Fee, unsent bool) Terms {
	into := &t.Replaces
	if unsent {
		into = &t.Unsent
	}
	if *into != nil {
		earlier = highest(earlier, **into)
	}
	*into = &earlier
	return t
}

const (
	// ErrMarket says that the market is above the ceiling, or too close to the intent's own:
	// wait until it has come down.
	ErrMarket = event.Refusal("market-above-ceiling")
	// ErrCeiling says that a replacement, as pools demand it, would exceed the ceiling.
	ErrCeiling = event.Refusal("fee-at-ceiling")
	// ErrMinimum says that the intent's ceilings are below what the chain's pools take at
	// any time.
	ErrMinimum = event.Refusal("fee-below-minimum")
	// ErrGas says that it would need more gas than a transaction may have.
	ErrGas = event.Refusal("gas-over-ceiling")
	// ErrToken says that fees are not paid in this token.
	ErrToken = event.Refusal("fee-token-not-allowed")
	// ErrSponsor says that nobody pays for it.
	ErrSponsor = event.Refusal("no-fee-payer")
)

// Offer is what an attempt offers: so much for a unit of gas, paid in a token, by somebody.
type Offer struct {
	Fee chain.Fee
	// Token is what is paid in; nil leaves it to the payer's account, or the chain.
	Token *chain.Address
	// Payer pays in the sender's place; nil if the sender does.
	Payer *chain.Address
}

// Offer is what an attempt offers that is made now. Errors are refusals: [ErrMarket] and
// [ErrCeiling] pass with the market or another ceiling, the others do not.
func (p Policy) Offer(m chain.Market, t Terms) (o Offer, err error) {
	if err := p.pay(&o, t); err != nil {
		return Offer{}, err
	}
	if o.Fee, err = p.price(m, t); err != nil {
		return Offer{}, err
	}
	return o, nil
}

// price is what an attempt offers for a unit of gas.
func (p Policy) price(m chain.Market, t Terms) (chain.Fee, error) {
	t.Legacy = t.Legacy || m.Next == nil
	t, err := p.bounded(t)
	if err != nil {
		return chain.Fee{}, err
	}
	ceiling, err := p.ceilings(t)
	if err != nil {
		return chain.Fee{}, err
	}
	quote, err := p.quote(m, t, ceiling)
	if err != nil {
		return chain.Fee{}, err
	}
	quote = p.over(p.over(floored(quote, m, t), t.Unsent), t.Replaces)
	offer := within(quote, ceiling)
	if t.Legacy {
		offer = chain.LegacyFee(offer.MaxFee)
	}
	if t.Replaces != nil && !offer.Replaces(*t.Replaces) {
		return chain.Fee{}, ErrCeiling.Because("%s and a tip of %s are not to be exceeded; more than %s and %s is needed",
			ceiling.MaxFee, ceiling.MaxPriorityFee, t.Replaces.MaxFee, t.Replaces.MaxPriorityFee)
	}
	return offer, nil
}

// over is an offer that outbids an earlier one, whether or not it fits under the ceiling.
func (p Policy) over(f chain.Fee, earlier *chain.Fee) chain.Fee {
	if earlier == nil {
		return f
	}
	if least, possible := earlier.Replacement(); possible {
		f = highest(f, least)
	}
	return highest(f, chain.Fee{MaxFee: raised(earlier.MaxFee, p.Bump), MaxPriorityFee: raised(earlier.MaxPriorityFee, p.Bump)})
}

// highest has of each field the higher one.
func highest(a, b chain.Fee) chain.Fee {
	return chain.Fee{MaxFee: higher(a.MaxFee, b.MaxFee), MaxPriorityFee: higher(a.MaxPriorityFee, b.MaxPriorityFee)}
}

// ceilings are the lower ones of the operator's and the intent's.
func (p Policy) ceilings(t Terms) (c chain.Fee, err error) {
	if c = p.Most(); t.NoOp {
		c = chain.Fee{MaxFee: p.Ceiling, MaxPriorityFee: p.tipCeiling()}
	}
	if !isZero(t.MaxFee) {
		c.MaxFee = lower(c.MaxFee, t.MaxFee)
	}
	if !isZero(t.MaxPriorityFee) {
		c.MaxPriorityFee = lower(c.MaxPriorityFee, t.MaxPriorityFee)
	}
	if t.Legacy {
		c.MaxPriorityFee = c.MaxFee
	}
	c.MaxPriorityFee = lower(c.MaxPriorityFee, c.MaxFee)
	if less(c.MaxFee, p.MinFee) || less(c.MaxPriorityFee, p.MinTip) {
		return c, ErrMinimum.Because("a ceiling of %s and of %s for the tip; pools take nothing below %s and %s",
			c.MaxFee, c.MaxPriorityFee, p.MinFee, p.MinTip)
	}
	return c, nil
}

// quote is what the market asks for, whether or not it fits under the ceiling; but if
// what is allowed would not even be mined, it is refused.
func (p Policy) quote(m chain.Market, t Terms, ceiling chain.Fee) (chain.Fee, error) {
	level, place := p.level(t.Urgency)
	if m.Next == nil {
		if less(ceiling.MaxFee, m.GasPrice) {
			return chain.Fee{}, ErrMarket.Because("gas costs %s, and may cost %s", m.GasPrice, ceiling.MaxFee)
		}
		price := higher(raised(m.GasPrice, level.Premium), higher(p.MinFee, p.MinTip))
		return chain.LegacyFee(price), nil
	}
	if least := sum(*m.Next, p.MinTip); less(ceiling.MaxFee, least) {
		return chain.Fee{}, ErrMarket.Because("gas costs %s, and may cost %s", least, ceiling.MaxFee)
	}
	if least := sum(raised(*m.Next, room(m, t)), p.MinTip); t.first() && !isZero(t.MaxFee) && less(t.MaxFee, least) {
		return chain.Fee{}, ErrMarket.Because("gas may cost %s before it is mined, and is to cost at most %s", least, t.MaxFee)
	}
	if least := p.leastTip(m); t.first() && !isZero(t.MaxPriorityFee) && less(t.MaxPriorityFee, least) {
		return chain.Fee{}, ErrMarket.Because("blocks take tips of %s, and the tip is to be at most %s", least, t.MaxPriorityFee)
	}
	tip := higher(tipOf(m, place), p.MinTip)
	return chain.Fee{
		MaxFee:         higher(sum(raised(*m.Next, level.Headroom), tip), p.MinFee),
		MaxPriorityFee: tip,
	}, nil
}

// first reports whether this is the first offer for a nonce, and not for a no-op.
func (t Terms) first() bool { return !t.NoOp && t.Replaces == nil && t.Unsent == nil }

// leastTip is the tip of a slow attempt, or the policy's minimum while all blocks are
// empty. An intent's own tip ceiling has to reach it: blocks may not include a lower tip,
// whatever the base fee is.
func (p Policy) leastTip(m chain.Market) chain.Price {
	_, place := p.level(Slow)
	m.Suggested = p.MinTip
	return higher(tipOf(m, place), p.MinTip)
}

// Percent that an intent's own ceiling has to leave above the next base fee. One block
// raises the base fee by an eighth at most (EIP-1559). The room grows each time the intent
// gave way, up to roomMost.
const (
	roomFirst = 13
	roomAgain = 50
	roomMost  = 200
)

// room returns the percentage for these terms, 0 if the base fee is constant.
func room(m chain.Market, t Terms) uint64 {
	moves := func(b chain.Paid) bool { return b.BaseFee != *m.Next }
	if len(m.Blocks) > 0 && !slices.ContainsFunc(m.Blocks, moves) {
		return 0
	}
	return min(roomFirst+roomAgain*uint64(max(t.GaveWay, 0)), roomMost) //nolint:gosec // never negative
}

// tipOf is what the newest blocks were content with: in the middle of those that held
// anything, the tip at a percentile, and not less than at lower ones. A block that is
// empty says nothing. Where none says anything, it is what nodes suggest.
func tipOf(m chain.Market, place int) chain.Price {
	var tips []chain.Price
	for _, b := range m.Blocks {
		if !(b.Full > 0) || len(b.Tips) == 0 { // which a ratio that is no number is not either
			continue
		}
		tip := chain.Price{}
		for _, other := range b.Tips[:min(place+1, len(b.Tips))] {
			tip = higher(tip, other)
		}
		tips = append(tips, tip)
	}
	if len(tips) == 0 {
		return m.Suggested
	}
	slices.SortFunc(tips, func(a, b chain.Price) int { return a.Int().Cmp(b.Int()) })
	return tips[(len(tips)-1)/2]
}

// floored is an offer that is worth at least as much per gas: the fee allows it, and the
// tip makes it so at the next base fee.
func floored(f chain.Fee, m chain.Market, t Terms) chain.Fee {
	f.MaxFee = higher(f.MaxFee, t.Floor)
	if t.Legacy {
		return chain.LegacyFee(f.MaxFee)
	}
	f.MaxPriorityFee = higher(f.MaxPriorityFee, difference(t.Floor, *m.Next))
	return f
}

// within is an offer cut to its ceilings. The tip is never above the fee that it is
// part of.
func within(f, ceiling chain.Fee) chain.Fee {
	f.MaxFee = lower(f.MaxFee, ceiling.MaxFee)
	f.MaxPriorityFee = lower(lower(f.MaxPriorityFee, ceiling.MaxPriorityFee), f.MaxFee)
	return f
}
