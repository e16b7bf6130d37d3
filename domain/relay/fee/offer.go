package fee

import (
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Terms are the conditions for an attempt's offer.
type Terms struct {
	Urgency Urgency
	// Ceilings of the intent; 0: none. A gas price has no tip, so that only MaxFee counts.
	MaxFee, MaxPriorityFee chain.Price
	// Gas is the gas limit, or the higher one of a no-op that may replace the attempt; 0:
	// unknown. It counts for [Policy.MaxPerTransaction].
	Gas uint64
	// GaveWay counts how often the intent gave up its nonce because gas cost more than its own
	// ceiling.
	GaveWay int
	// Floor is the least fee per unit of gas, as far as the ceilings allow it.
	Floor chain.Price
	// NoOp is set for an attempt that only uses a nonce up. It alone may offer up to the
	// operator's ceilings, which leaves room to replace any intent's offer.
	NoOp bool
	// Replaces is the highest offer of earlier attempts that pools may have; nil: none.
	Replaces *chain.Fee
	// Unsent is the highest offer of earlier attempts that were never sent; nil: none. It is
	// outbid too as far as the ceilings allow, but no pool demands that.
	Unsent *chain.Fee
	// Sender signs. Token is the requested fee token; nil: the policy's. Sponsored makes the
	// relay's fee payer pay.
	Sender    chain.Address
	Token     *chain.Address
	Sponsored bool
	// Legacy is set for a transaction with a gas price, which is paid in full at any base fee.
	// Without base fees all transactions are legacy.
	Legacy bool
}

// After returns the terms after one more attempt at the same nonce; unsent means that it was
// never sent.
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
	// ErrMarket: the market is above the ceiling, or too close to the intent's own ceiling. Wait
	// until it falls.
	ErrMarket = eventlog.Refusal("market-above-ceiling")
	// ErrCeiling: a replacement, as pools demand it, would exceed the ceiling.
	ErrCeiling = eventlog.Refusal("fee-at-ceiling")
	// ErrMinimum: the intent's ceilings are below the constant minimum of the chain's pools.
	ErrMinimum = eventlog.Refusal("fee-below-minimum")
	// ErrGas: the transaction needs more gas than is allowed.
	ErrGas = eventlog.Refusal("gas-over-ceiling")
	// ErrToken: the fee token is not allowed.
	ErrToken = eventlog.Refusal("fee-token-not-allowed")
	// ErrSponsor: there is no fee payer.
	ErrSponsor = eventlog.Refusal("no-fee-payer")
)

// Offer is an attempt's fee per unit of gas, with its token and payer.
type Offer struct {
	Fee chain.Fee
	// Token is the fee token; nil leaves it to the payer's account or the chain.
	Token *chain.Address
	// Payer pays for the sender; nil if the sender pays.
	Payer *chain.Address
}

// Offer returns the offer for an attempt made now. Errors are refusals. [ErrMarket] and
// [ErrCeiling] are temporary: they end when the market or a ceiling changes. The others are
// permanent.
func (p Policy) Offer(m chain.Market, t Terms) (o Offer, err error) {
	if err := p.pay(&o, t); err != nil {
		return Offer{}, err
	}
	if o.Fee, err = p.price(m, t); err != nil {
		return Offer{}, err
	}
	return o, nil
}

// price returns an attempt's fee per unit of gas.
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
		return chain.Fee{}, ErrCeiling.Because("the limits are %s and a tip of %s, but a replacement needs more than %s and %s",
			ceiling.MaxFee, ceiling.MaxPriorityFee, t.Replaces.MaxFee, t.Replaces.MaxPriorityFee)
	}
	return offer, nil
}

// over returns an offer that outbids an earlier one, ignoring the ceiling.
func (p Policy) over(f chain.Fee, earlier *chain.Fee) chain.Fee {
	if earlier == nil {
		return f
	}
	if least, possible := earlier.Replacement(); possible {
		f = highest(f, least)
	}
	return highest(f, chain.Fee{MaxFee: raised(earlier.MaxFee, p.Bump), MaxPriorityFee: raised(earlier.MaxPriorityFee, p.Bump)})
}

// highest returns the higher value of each field.
func highest(a, b chain.Fee) chain.Fee {
	return chain.Fee{MaxFee: higher(a.MaxFee, b.MaxFee), MaxPriorityFee: higher(a.MaxPriorityFee, b.MaxPriorityFee)}
}

// ceilings returns the lower ones of the operator's and the intent's ceilings.
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
		return c, ErrMinimum.Because("the ceilings are %s and %s for the tip; pools accept nothing below %s and %s",
			c.MaxFee, c.MaxPriorityFee, p.MinFee, p.MinTip)
	}
	return c, nil
}

// quote returns the market's price, ignoring the ceiling. It refuses if a fee within the ceiling
// would not be mined.
func (p Policy) quote(m chain.Market, t Terms, ceiling chain.Fee) (chain.Fee, error) {
	level, place := p.level(t.Urgency)
	if m.Next == nil {
		if less(ceiling.MaxFee, m.GasPrice) {
			return chain.Fee{}, ErrMarket.Because("gas costs %s, but its ceiling is %s", m.GasPrice, ceiling.MaxFee)
		}
		price := higher(raised(m.GasPrice, level.Premium), higher(p.MinFee, p.MinTip))
		return chain.LegacyFee(price), nil
	}
	if least := sum(*m.Next, p.MinTip); less(ceiling.MaxFee, least) {
		return chain.Fee{}, ErrMarket.Because("gas costs %s, but its ceiling is %s", least, ceiling.MaxFee)
	}
	if least := sum(raised(*m.Next, room(m, t)), p.MinTip); t.first() && !isZero(t.MaxFee) && less(t.MaxFee, least) {
		return chain.Fee{}, ErrMarket.Because("gas may cost %s before it is mined, but its ceiling is %s", least, t.MaxFee)
	}
	if least := p.leastTip(m); t.first() && !isZero(t.MaxPriorityFee) && less(t.MaxPriorityFee, least) {
		return chain.Fee{}, ErrMarket.Because("blocks include tips of %s, but the tip's ceiling is %s", least, t.MaxPriorityFee)
	}
	tip := higher(tipOf(m, place), p.MinTip)
	return chain.Fee{
		MaxFee:         higher(sum(raised(*m.Next, level.Headroom), tip), p.MinFee),
		MaxPriorityFee: tip,
	}, nil
}

// first reports whether this is the first offer for a nonce by an intent.
func (t Terms) first() bool { return !t.NoOp && t.Replaces == nil && t.Unsent == nil }

// leastTip is the tip of a slow attempt, or the policy's minimum while all blocks are empty. An
// intent's own tip ceiling must reach it: blocks may leave out a lower tip at any base fee.
func (p Policy) leastTip(m chain.Market) chain.Price {
	_, place := p.level(Slow)
	m.Suggested = p.MinTip
	return higher(tipOf(m, place), p.MinTip)
}

// Percentages that an intent's own ceiling must leave above the next base fee. One block raises
// the base fee by at most an eighth (EIP-1559). The room grows each time the intent gave way, up
// to roomMost.
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

// tipOf returns the tip accepted by the newest blocks: the median, over the blocks that are not
// empty, of the tip at a percentile. A block's tip is never below its tips at lower percentiles.
// If all blocks are empty, it returns the nodes' suggestion.
func tipOf(m chain.Market, place int) chain.Price {
	var tips []chain.Price
	for _, b := range m.Blocks {
		if !(b.Full > 0) || len(b.Tips) == 0 { // NaN counts as empty
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

// floored raises an offer to the floor: the fee to at least the floor, and the tip so that the
// floor is paid at the next base fee.
func floored(f chain.Fee, m chain.Market, t Terms) chain.Fee {
	f.MaxFee = higher(f.MaxFee, t.Floor)
	if t.Legacy {
		return chain.LegacyFee(f.MaxFee)
	}
	f.MaxPriorityFee = higher(f.MaxPriorityFee, difference(t.Floor, *m.Next))
	return f
}

// within cuts an offer to its ceilings. The tip is never above the fee, which includes it.
func within(f, ceiling chain.Fee) chain.Fee {
	f.MaxFee = lower(f.MaxFee, ceiling.MaxFee)
	f.MaxPriorityFee = lower(lower(f.MaxPriorityFee, ceiling.MaxPriorityFee), f.MaxFee)
	return f
}
