package history

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// budgets folds the budget of a chain. Its sums are of the day of the last event.
type budgets struct {
	codec eventlog.Codec[budget.Event]
	is    budget.State
	day   budget.Day
}

// Add applies an event, and explains it.
func (b *budgets) Add(r eventlog.Recorded) (string, error) {
	e, err := b.codec.Decode(r.Name, r.Data)
	if err != nil {
		return "", err
	}
	b.is = b.is.Evolve(e)
	switch e := e.(type) {
	case budget.Reserved:
		b.day = e.Day
		sum := budget.Sum{}
		for _, c := range e.Charges {
			sum = budget.Sum{Fee: sum.Fee.Plus(c.Sum.Fee), Value: sum.Value.Plus(c.Sum.Value)}
		}
		return fmt.Sprintf("The lane of %s, with token %d, reserved at most %s for fees and %s of value, for %d purposes.", e.Lane.Signer, e.Token, sum.Fee, sum.Value, len(e.Charges)), nil
	case budget.Settled:
		b.day = e.Day
		return fmt.Sprintf("The lane of %s, with token %d, recorded the cost of %d purposes; the rest of their reservations is free again.", e.Lane.Signer, e.Token, len(e.Spent)), nil
	case budget.LimitSet:
		b.day = budget.DayOf(e.At)
		return ordered(e.Actor, "set the daily limits of "+e.Account.String()+": fees "+limit(e.Limit.Fee)+", value "+limit(e.Limit.Value), e.Reason), nil
	}
	return "", nil
}

func limit(a *chain.Amount) string {
	if a == nil {
		return "without a limit"
	}
	return "at most " + a.String()
}

// Budget is a chain's budget as shown: the sums of one day of UTC.
type Budget struct {
	Day      budget.Day
	Used     budget.Sum
	Limits   []Limit `json:",omitempty"`
	Reserved []Reservation
}

// Limit is the daily limit of an account, and its use.
type Limit struct {
	Account budget.Account
	Limit   budget.Limit
	Used    budget.Sum
}

// Reservation is money that a lane has reserved.
type Reservation struct {
	Lane budget.Lane
	Open []budget.Reservation
}

// State returns the state, for JSON.
func (b *budgets) State() any {
	shown := Budget{Day: b.day, Used: b.is.Used(b.day, budget.Account{Kind: budget.OnChain}), Reserved: []Reservation{}}
	for a, l := range b.is.Limits {
		shown.Limits = append(shown.Limits, Limit{a, l, b.is.Used(b.day, a)})
	}
	slices.SortFunc(shown.Limits, func(a, b Limit) int { return cmp.Compare(a.Account.String(), b.Account.String()) })
	for _, l := range b.is.Lanes() {
		if open := b.is.Open(l); len(open) > 0 {
			shown.Reserved = append(shown.Reserved, Reservation{l, open})
		}
	}
	slices.SortFunc(shown.Reserved, func(a, b Reservation) int {
		return cmp.Or(slices.Compare(a.Lane.Signer[:], b.Lane.Signer[:]), slices.Compare(a.Lane.NonceKey[:], b.Lane.NonceKey[:]))
	})
	return shown
}

// Safeguards are the operators' safeguards as shown.
type Safeguards struct {
	Halts   []Halt    `json:",omitempty"`
	Targets []Targets `json:",omitempty"`
	Rates   []Rate    `json:",omitempty"`
}

// Halt is an active halt.
type Halt struct {
	Scope safeguard.Scope
	safeguard.Halt
}

// Targets are the targets that may be called in a scope.
type Targets struct {
	Scope   safeguard.Scope
	Targets chain.Targets
}

// Rate is the rate limit of a scope.
type Rate struct {
	Scope safeguard.Scope
	Rate  safeguard.Rate
}

func safeguardsShown(s safeguard.State) any {
	shown := Safeguards{}
	for scope, h := range s.Halts {
		shown.Halts = append(shown.Halts, Halt{scope, h})
	}
	for scope, list := range s.Lists {
		shown.Targets = append(shown.Targets, Targets{scope, list})
	}
	for scope, rate := range s.Rates {
		shown.Rates = append(shown.Rates, Rate{scope, rate})
	}
	slices.SortFunc(shown.Halts, func(a, b Halt) int { return cmp.Compare(a.Scope.String(), b.Scope.String()) })
	slices.SortFunc(shown.Targets, func(a, b Targets) int { return cmp.Compare(a.Scope.String(), b.Scope.String()) })
	slices.SortFunc(shown.Rates, func(a, b Rate) int { return cmp.Compare(a.Scope.String(), b.Scope.String()) })
	return shown
}

// whySafeguard explains an event of the safeguards.
func whySafeguard(_, _ safeguard.State, e safeguard.Event) string {
	switch e := e.(type) {
	case safeguard.Halted:
		return ordered(e.Actor, "halted "+e.Scope.String()+": no intent is accepted or signed there", e.Reason)
	case safeguard.Resumed:
		return ordered(e.Actor, "resumed "+e.Scope.String(), e.Reason)
	case safeguard.TargetsSet:
		return ordered(e.Actor, fmt.Sprintf("allowed %d targets for %s", len(e.Targets), e.Scope), e.Reason)
	case safeguard.RateSet:
		if e.Rate == nil {
			return ordered(e.Actor, "removed the rate limit of "+e.Scope.String(), e.Reason)
		}
		return ordered(e.Actor, fmt.Sprintf("limited %s to %d requests a second, %d at once", e.Scope, e.Rate.PerSecond, e.Rate.Burst), e.Reason)
	}
	return ""
}
