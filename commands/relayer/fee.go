package relayer

import (
	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// A fee's fields are worked on as numbers. Zero as a bound is none.

// bounds are what a fee may be.
type bounds struct {
	floor   intent.Amount // of the fee
	ceiling chain.Fee
}

// boundsOf are those of an intent, under the relay's own ceiling.
func boundsOf(it intent.State, ceiling chain.Fee) bounds {
	gas := it.Requested.Request.Gas
	return bounds{it.Floor, chain.Fee{
		MaxFee:         lower(ceiling.MaxFee, chain.Price(gas.MaxFee)),
		MaxPriorityFee: lower(ceiling.MaxPriorityFee, chain.Price(gas.MaxPriorityFee)),
	}}
}

// lower is the lower of two bounds.
func lower(a, b chain.Price) chain.Price {
	if a.Int().IsZero() || !b.Int().IsZero() && b.Int().Lt(a.Int()) {
		return b
	}
	return a
}

func higher(a, b chain.Price) chain.Price {
	if a.Int().Lt(b.Int()) {
		return b
	}
	return a
}

// within brings a fee into its bounds. The ceiling rules over the floor, and the tip is
// never above the fee that it is part of.
func (b bounds) within(f chain.Fee) chain.Fee {
	f.MaxFee = higher(f.MaxFee, chain.Price(b.floor))
	f.MaxFee = lower(f.MaxFee, b.ceiling.MaxFee)
	f.MaxPriorityFee = lower(f.MaxPriorityFee, b.ceiling.MaxPriorityFee)
	if f.MaxFee.Int().Lt(f.MaxPriorityFee.Int()) {
		f.MaxPriorityFee = f.MaxFee
	}
	return f
}

// again is the fee of an attempt after another: so many percent more in both fields, or
// what is quoted now if that is more. ok is false when the bounds leave no room for what
// pools would take in its place.
func (b bounds) again(last, quote chain.Fee, percent uint64) (f chain.Fee, ok bool) {
	least, ok := last.Replacement()
	if !ok {
		return f, false
	}
	f = b.within(chain.Fee{
		MaxFee:         higher(higher(raised(last.MaxFee, percent), least.MaxFee), quote.MaxFee),
		MaxPriorityFee: higher(higher(raised(last.MaxPriorityFee, percent), least.MaxPriorityFee), quote.MaxPriorityFee),
	})
	return f, f.Replaces(last)
}

// raised is a price and so many percent of it; the price itself when that overflows.
func raised(p chain.Price, percent uint64) chain.Price {
	more, over := new(uint256.Int).MulDivOverflow(p.Int(), uint256.NewInt(percent), uint256.NewInt(100))
	sum, overflow := new(uint256.Int).AddOverflow(p.Int(), more)
	if over || overflow {
		return p
	}
	return chain.Price(*sum)
}
