package fee_test

import (
	"errors"
	"math"
	"testing"

	"github.com/holiman/uint256"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

const gwei = 1_000_000_000

var highest = chain.Price(*new(uint256.Int).SetAllOne())

func priced(gweis float64) chain.Price { return chain.PriceOf(uint64(gweis * gwei)) }

func offered(most, tip float64) chain.Fee {
	return chain.Fee{MaxFee: priced(most), MaxPriorityFee: priced(tip)}
}

// market has a next base fee, and one block per factor, with tips of 1, 2 and 3 times the factor.
func market(next float64, times ...float64) chain.Market {
	base := priced(next)
	m := chain.Market{Head: 9, Next: &base, Suggested: priced(7)}
	for _, n := range times {
		m.Blocks = append(m.Blocks, chain.Paid{BaseFee: base, Full: 0.5, Tips: []chain.Price{priced(n), priced(2 * n), priced(3 * n)}})
	}
	return m
}

func suggesting(price float64) chain.Market { return chain.Market{Head: 9, GasPrice: priced(price)} }

// policy is the default policy with rounder ceilings: 200 for intents, 220 for no-ops.
func policy(change ...func(*fee.Policy)) fee.Policy {
	p := fee.Default()
	p.Ceiling, p.MinTip = priced(220), priced(0.5)
	for _, c := range change {
		c(&p)
	}
	return p
}

func TestOffer(t *testing.T) {
	limited := func(most, tip float64) fee.Terms { return fee.Terms{MaxFee: priced(most), MaxPriorityFee: priced(tip)} }
	empty := market(100, 1)
	empty.Blocks[0].Full = 0
	void := market(100, 1)
	void.Blocks[0].Full = math.NaN()
	short := market(100, 1)
	short.Blocks[0].Tips = short.Blocks[0].Tips[:1]
	falling := market(100, 1)
	falling.Blocks[0].Tips = []chain.Price{priced(5), priced(1), priced(0)}
	for _, c := range []struct {
		name   string
		policy fee.Policy
		market chain.Market
		terms  fee.Terms
		want   chain.Fee
	}{
		{"normal", policy(), market(100, 1), fee.Terms{}, offered(152, 2)},
		{"slow", policy(), market(100, 1), fee.Terms{Urgency: fee.Slow}, offered(126, 1)},
		{"fast, up to the ceiling", policy(), market(100, 1), fee.Terms{Urgency: fee.Fast}, offered(200, 3)},
		{"the block in the middle", policy(), market(100, 9, 1, 2), fee.Terms{}, offered(154, 4)},
		{"of two the lower", policy(), market(100, 9, 1), fee.Terms{}, offered(152, 2)},
		{"an empty block says nothing", policy(), empty, fee.Terms{}, offered(157, 7)},
		{"nor does one whose ratio is no number", policy(), void, fee.Terms{}, offered(157, 7)},
		{"a list that is short", policy(), short, fee.Terms{Urgency: fee.Fast}, offered(200, 1)},
		{"tips that fall", policy(), falling, fee.Terms{Urgency: fee.Fast}, offered(200, 5)},
		{"no block at all", policy(), market(100), fee.Terms{}, offered(157, 7)},
		{"no tips are paid", policy(), market(100, 0), fee.Terms{}, offered(150.5, 0.5)},
		{"the least fee", policy(func(p *fee.Policy) { p.MinFee = priced(160) }), market(100, 1), fee.Terms{}, offered(160, 2)},
		{"no base fee to speak of", policy(), market(0, 1), fee.Terms{}, offered(2, 2)},
		{"its own ceiling", policy(), market(100, 1), limited(120, 0), offered(120, 2)},
		{"its own ceiling of the tip", policy(), market(100, 1), limited(0, 1), offered(152, 1)},
		{"a ceiling of the tip", policy(func(p *fee.Policy) { p.TipCeiling = priced(1.65) }), market(100, 1), fee.Terms{}, offered(152, 1.5)},
		{"a no-op at a ceiling of the tip", policy(func(p *fee.Policy) { p.TipCeiling = priced(1.65) }), market(100, 1), fee.Terms{NoOp: true}, offered(152, 1.65)},
		{"a no-op, up to the ceiling", policy(), market(100, 1), fee.Terms{NoOp: true, Urgency: fee.Fast}, offered(203, 3)},
		{"a no-op, where intents wait for the market", policy(), market(210, 1), fee.Terms{NoOp: true}, offered(220, 2)},
		{"hardly", policy(), market(100, 1), limited(100.5, 0), offered(100.5, 2)},
		{"a floor", policy(), market(100, 1), fee.Terms{Floor: priced(180)}, offered(180, 80)},
		{"a floor that is none", policy(), market(100, 1), fee.Terms{Floor: priced(50)}, offered(152, 2)},
		{"a floor above the ceiling", policy(), market(100, 1), fee.Terms{Floor: priced(900)}, offered(200, 200)},
		{"before base fees", policy(), suggesting(100), fee.Terms{}, offered(110, 110)},
		{"before base fees, slow", policy(), suggesting(100), fee.Terms{Urgency: fee.Slow}, offered(100, 100)},
		{"before base fees, fast", policy(), suggesting(100), fee.Terms{Urgency: fee.Fast}, offered(125, 125)},
		{"before base fees, up to the ceiling", policy(), suggesting(100), limited(105, 1), offered(105, 105)},
		{"before base fees, a floor", policy(), suggesting(100), fee.Terms{Floor: priced(130)}, offered(130, 130)},
		{"a gas price upon base fees", policy(), market(100, 1), fee.Terms{Legacy: true, MaxPriorityFee: priced(1)}, offered(152, 152)},
		{"a gas price of nothing", policy(), suggesting(0), fee.Terms{}, offered(0.5, 0.5)},
	} {
		if got, err := price(c.policy, c.market, c.terms); err != nil || got != c.want {
			t.Errorf("%s: %s and %s, %v; want %s and %s", c.name, got.MaxFee, got.MaxPriorityFee, err, c.want.MaxFee, c.want.MaxPriorityFee)
		}
	}
}

func TestReplacementOffer(t *testing.T) {
	again := func(most, tip float64) fee.Terms {
		earlier := offered(most, tip)
		return fee.Terms{Replaces: &earlier}
	}
	limited := again(100, 10)
	limited.MaxFee = priced(115)
	urged := again(100, 10)
	urged.Floor = priced(170)
	for _, c := range []struct {
		name   string
		policy fee.Policy
		market chain.Market
		terms  fee.Terms
		want   chain.Fee
	}{
		{"a fifth more", policy(), market(50, 1), again(100, 10), offered(120, 12)},
		{"the market has risen further", policy(), market(100, 1), again(100, 10), offered(152, 12)},
		{"so have tips", policy(), market(50, 20), again(100, 10), offered(120, 40)},
		{"up to the ceiling", policy(), market(100, 1), again(180, 10), offered(200, 12)},
		{"up to its own ceiling", policy(), market(50, 1), limited, offered(115, 12)},
		{"a floor", policy(), market(50, 1), urged, offered(170, 120)},
		{"no tip becomes one", policy(func(p *fee.Policy) { p.MinTip = chain.Price{} }), market(50, 0), again(100, 0),
			chain.Fee{MaxFee: priced(120), MaxPriorityFee: chain.PriceOf(1)}},
		{"a gas price", policy(), suggesting(50), again(100, 100), offered(120, 120)},
		{"a gas price upon base fees", policy(func(p *fee.Policy) { p.TipCeiling = priced(1) }), market(50, 1),
			fee.Terms{Legacy: true, Replaces: again(100, 100).Replaces}, offered(120, 120)},
		{"a no-op, up to the whole ceiling", policy(), market(100, 1), fee.Terms{NoOp: true, Replaces: again(200, 10).Replaces}, offered(220, 12)},
		{"what nobody was handed", policy(), market(50, 1), fee.Terms{Unsent: again(100, 10).Replaces}, offered(120, 12)},
		{"what nobody was handed, at the ceiling", policy(), market(50, 1), fee.Terms{Unsent: again(200, 10).Replaces}, offered(200, 12)},
		{"what nobody was handed, above the ceiling", policy(), market(50, 1), fee.Terms{NoOp: true, Unsent: again(500, 10).Replaces}, offered(220, 12)},
		{"what nobody was handed, and nothing replaces", policy(), market(50, 1), fee.Terms{Unsent: &chain.Fee{MaxFee: highest, MaxPriorityFee: highest}}, offered(200, 200)},
		{"what pools have, and above it what nobody was handed", policy(), market(50, 1),
			fee.Terms{Replaces: again(170, 10).Replaces, Unsent: again(200, 10).Replaces}, offered(200, 12)},
		{"a gas price, and what nobody was handed", policy(), suggesting(50), fee.Terms{Unsent: again(200, 200).Replaces}, offered(200, 200)},
		{"a tenth more", policy(func(p *fee.Policy) { p.Bump = 10 }), market(50, 1), again(100, 10), offered(110, 11)},
	} {
		got, err := price(c.policy, c.market, c.terms)
		if err != nil || got != c.want {
			t.Errorf("%s: %s and %s, %v; want %s and %s", c.name, got.MaxFee, got.MaxPriorityFee, err, c.want.MaxFee, c.want.MaxPriorityFee)
		}
	}
}

func TestNoOffer(t *testing.T) {
	terms := func(most, tip float64, earlier ...chain.Fee) fee.Terms {
		t := fee.Terms{MaxFee: priced(most), MaxPriorityFee: priced(tip)}
		if len(earlier) > 0 {
			t.Replaces = &earlier[0]
		}
		return t
	}
	wild := suggesting(0)
	wild.GasPrice = highest
	top := chain.LegacyFee(highest)
	for _, c := range []struct {
		name   string
		market chain.Market
		terms  fee.Terms
		want   eventlog.Refusal
	}{
		{"the market is above the ceiling", market(200, 1), fee.Terms{}, fee.ErrMarket},
		{"for a no-op too", market(220, 1), fee.Terms{NoOp: true}, fee.ErrMarket},
		{"above its own", market(100, 1), terms(100, 0), fee.ErrMarket},
		{"and a gas price", suggesting(201), fee.Terms{}, fee.ErrMarket},
		{"a gas price that nobody can pay", wild, fee.Terms{}, fee.ErrMarket},
		{"it is not worth a bump either", market(200, 1), terms(0, 0, offered(100, 1)), fee.ErrMarket},
		{"at the ceiling", market(100, 1), terms(0, 0, offered(200, 2)), fee.ErrCeiling},
		{"9 % below the ceiling", market(100, 1), terms(0, 0, offered(185, 2)), fee.ErrCeiling},
		{"a no-op at the ceiling", market(100, 1), fee.Terms{NoOp: true, Replaces: &chain.Fee{MaxFee: priced(220), MaxPriorityFee: priced(2)}}, fee.ErrCeiling},
		{"at its own ceiling", market(50, 1), terms(100, 0, offered(100, 2)), fee.ErrCeiling},
		{"at the ceiling of its tip", market(50, 1), terms(0, 2, offered(100, 2)), fee.ErrCeiling},
		{"above the ceiling, which was lowered", market(100, 1), terms(0, 0, offered(300, 2)), fee.ErrCeiling},
		{"nothing replaces the highest", market(100, 1), terms(0, 0, top), fee.ErrCeiling},
		{"a ceiling of less than pools take", market(0, 0), terms(0.1, 0), fee.ErrMinimum},
		{"a tip of less than pools take", market(0, 0), terms(0, 0.1), fee.ErrMinimum},
	} {
		if got, err := price(policy(), c.market, c.terms); !errors.Is(err, c.want) || got != (chain.Fee{}) {
			t.Errorf("%s: %+v, %v; want %s", c.name, got, err, c.want)
		}
	}
}

func price(p fee.Policy, m chain.Market, t fee.Terms) (chain.Fee, error) {
	o, err := p.Offer(m, t)
	return o.Fee, err
}

// Generators of values that a hostile node may report.
var (
	prices = rapid.Custom(func(t *rapid.T) chain.Price {
		switch rapid.IntRange(0, 3).Draw(t, "size") {
		case 0:
			return chain.PriceOf(rapid.Uint64Range(0, 500*gwei).Draw(t, "usual"))
		case 1:
			return chain.PriceOf(rapid.Uint64().Draw(t, "large"))
		case 2:
			return highest
		}
		b := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "any")
		return chain.Price(*new(uint256.Int).SetBytes(b))
	})
	ratios  = rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, 0.5, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1)}))
	markets = rapid.Custom(func(t *rapid.T) chain.Market {
		m := chain.Market{Head: rapid.Uint64().Draw(t, "head"), GasPrice: prices.Draw(t, "gas price"), Suggested: prices.Draw(t, "suggested")}
		if rapid.Bool().Draw(t, "base fees") {
			next := prices.Draw(t, "next")
			m.Next = &next
		}
		for range rapid.IntRange(0, 5).Draw(t, "blocks") {
			m.Blocks = append(m.Blocks, chain.Paid{
				BaseFee: prices.Draw(t, "base"), Full: ratios.Draw(t, "full"), Tips: rapid.SliceOfN(prices, 0, 4).Draw(t, "tips"),
			})
		}
		return m
	})
	policies = rapid.Custom(func(t *rapid.T) fee.Policy {
		p := fee.Default()
		for i, l := range []*fee.Level{&p.Slow, &p.Normal, &p.Fast} {
			l.Headroom = uint64(i*300) + rapid.Uint64Range(0, 300).Draw(t, "headroom")
			l.Premium = uint64(i*300) + rapid.Uint64Range(0, 300).Draw(t, "premium")
		}
		b := rapid.SliceOfN(rapid.Byte(), 1, 16).Draw(t, "ceiling")
		p.Ceiling = chain.Price(*new(uint256.Int).SetBytes(b))
		p.TipCeiling = chain.PriceOf(rapid.Uint64().Draw(t, "tip ceiling"))
		p.MinFee = chain.PriceOf(rapid.Uint64Range(0, gwei).Draw(t, "least fee"))
		p.MinTip = chain.PriceOf(rapid.Uint64Range(0, gwei).Draw(t, "least tip"))
		p.Bump = rapid.Uint64Range(10, 1000).Draw(t, "bump")
		if p.Check() != nil {
			return fee.Default()
		}
		return p
	})
	terms = rapid.Custom(func(t *rapid.T) fee.Terms {
		maybe := func(name string) chain.Price {
			if rapid.Bool().Draw(t, "has "+name) {
				return prices.Draw(t, name)
			}
			return chain.Price{}
		}
		terms := fee.Terms{
			NoOp:    rapid.Bool().Draw(t, "no-op"),
			Urgency: rapid.SampledFrom([]fee.Urgency{"", fee.Slow, fee.Normal, fee.Fast}).Draw(t, "urgency"),
			Legacy:  rapid.Bool().Draw(t, "legacy"),
			MaxFee:  maybe("max fee"), MaxPriorityFee: maybe("max tip"), Floor: maybe("floor"),
			Gas: rapid.SampledFrom([]uint64{0, 21_000, 1 << 24, fee.GasMax, math.MaxUint64}).Draw(t, "gas"),
		}
		for _, into := range []**chain.Fee{&terms.Replaces, &terms.Unsent} {
			if !rapid.Bool().Draw(t, "again") {
				continue
			}
			earlier := chain.Fee{MaxFee: prices.Draw(t, "earlier fee")}
			earlier.MaxPriorityFee = earlier.MaxFee
			if tip := prices.Draw(t, "earlier tip"); tip.Int().Lt(earlier.MaxFee.Int()) {
				earlier.MaxPriorityFee = tip
			}
			*into = &earlier
		}
		return terms
	})
)

func atMost(a, b chain.Price) bool { return !b.Int().Lt(a.Int()) }

// For any market, the offer is usable: it exceeds no ceiling, is worth mining, replaces the
// earlier attempts, and is a gas price if there is no base fee. Otherwise there is a refusal.
func TestOffersHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, m, terms := policies.Draw(t, "policy"), markets.Draw(t, "market"), terms.Draw(t, "terms")
		offer, err := price(p, m, terms)
		if err != nil {
			if refusal := eventlog.Refusal(""); !errors.As(err, &refusal) || offer != (chain.Fee{}) {
				t.Fatalf("%+v, %v", offer, err)
			}
			return
		}
		zero, legacy := chain.Price{}, m.Next == nil || terms.Legacy
		tipCeiling := p.TipCeiling
		if tipCeiling == zero || legacy {
			tipCeiling = p.Ceiling
		}
		least, _ := offer.Replacement()
		switch {
		case !terms.NoOp && (!atMost(least.MaxFee, p.Ceiling) || !atMost(least.MaxPriorityFee, tipCeiling)):
			t.Fatalf("no no-op can replace %+v", offer)
		case !atMost(offer.MaxPriorityFee, offer.MaxFee):
			t.Fatalf("a tip above the fee: %+v", offer)
		case !atMost(offer.MaxFee, p.Ceiling), terms.MaxFee != zero && !atMost(offer.MaxFee, terms.MaxFee):
			t.Fatalf("%s is above a ceiling", offer.MaxFee)
		case !legacy && p.TipCeiling != zero && !atMost(offer.MaxPriorityFee, p.TipCeiling),
			!legacy && terms.MaxPriorityFee != zero && !atMost(offer.MaxPriorityFee, terms.MaxPriorityFee):
			t.Fatalf("a tip of %s is above a ceiling", offer.MaxPriorityFee)
		case terms.Replaces != nil && !offer.Replaces(*terms.Replaces):
			t.Fatalf("%+v does not replace %+v", offer, *terms.Replaces)
		case !atMost(p.MinFee, offer.MaxFee), !atMost(p.MinTip, offer.MaxPriorityFee):
			t.Fatalf("no pool takes %+v", offer)
		case legacy && offer.MaxFee != offer.MaxPriorityFee, m.Next == nil && !atMost(m.GasPrice, offer.MaxFee):
			t.Fatalf("%+v for a gas price of %s", offer, m.GasPrice)
		case m.Next != nil && new(uint256.Int).Sub(offer.MaxFee.Int(), m.Next.Int()).Lt(p.MinTip.Int()):
			t.Fatalf("%+v is not mined at a base fee of %s", offer, m.Next)
		}
	})
}

// A higher urgency never offers less, and a higher ceiling is never refused.
func TestOffersRiseWithUrgency(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, m, terms := policies.Draw(t, "policy"), markets.Draw(t, "market"), terms.Draw(t, "terms")
		var last chain.Fee
		var failed error
		for i, u := range []fee.Urgency{fee.Slow, fee.Normal, fee.Fast} {
			terms.Urgency = u
			offer, err := price(p, m, terms)
			if !atMost(last.MaxFee, offer.MaxFee) && err == nil || !atMost(last.MaxPriorityFee, offer.MaxPriorityFee) && err == nil {
				t.Fatalf("%s: %+v after %+v", u, offer, last)
			}
			if i > 0 && failed == nil && err != nil {
				t.Fatalf("%s is refused: %v", u, err)
			}
			last, failed = offer, err
		}
	})
}

// For any market and any number of bumps, an intent's offer can be replaced by a no-op: at once
// if the market stays the same, and otherwise as soon as it is below the ceiling.
func TestNoOpsFitUnderTheCeiling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, terms := policies.Draw(t, "policy"), terms.Draw(t, "terms")
		terms.NoOp, terms.Replaces = false, nil
		noop := fee.Terms{NoOp: true, Legacy: terms.Legacy}
		based := rapid.Bool().Draw(t, "has base fees")
		drawn := func() chain.Market {
			m := markets.Draw(t, "market")
			if m.Next = nil; based {
				next := prices.Draw(t, "base fee")
				m.Next = &next
			}
			return m
		}
		for range rapid.IntRange(1, 20).Draw(t, "attempts") {
			now, later := drawn(), drawn()
			offer, err := price(p, now, terms)
			if err != nil {
				continue
			}
			terms.Replaces, noop.Replaces = &offer, &offer
			if instead, err := price(p, now, noop); err != nil || !instead.Replaces(offer) || !atMost(instead.MaxFee, p.Ceiling) {
				t.Fatalf("%+v, %v instead of %+v", instead, err, offer)
			}
			if instead, err := price(p, later, noop); err != nil && !errors.Is(err, fee.ErrMarket) {
				t.Fatalf("%+v, %v instead of %+v, later", instead, err, offer)
			}
		}
	})
}

// Repeated bumps end at the ceiling after a bounded number, and the last is within one bump of
// the ceiling. The ceiling of intents is below the no-ops' ceiling by one replacement.
func TestBumpsEndAtTheCeiling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := policies.Draw(t, "policy")
		next := chain.Price{}
		m := chain.Market{Next: &next, Suggested: prices.Draw(t, "suggested")}
		terms := fee.Terms{NoOp: rapid.Bool().Draw(t, "no-op")}
		bumps := 0
		for {
			offer, err := price(p, m, terms)
			if errors.Is(err, fee.ErrCeiling) {
				break
			}
			if bumps++; err != nil || bumps > 1000 {
				t.Fatalf("%d bumps, %+v, %v", bumps, offer, err)
			}
			terms.Replaces = &offer
		}
		least, ok := terms.Replaces.Replacement()
		most := p.Most()
		if terms.NoOp {
			if most = (chain.Fee{MaxFee: p.Ceiling, MaxPriorityFee: p.TipCeiling}); p.TipCeiling == (chain.Price{}) {
				most.MaxPriorityFee = p.Ceiling
			}
		}
		if ok && atMost(least.MaxFee, most.MaxFee) && atMost(least.MaxPriorityFee, most.MaxPriorityFee) {
			t.Fatalf("%+v could be replaced by %+v, below %+v", *terms.Replaces, least, most)
		}
	})
}
