package relay

import (
	"cmp"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

// The types of the answers to operators.
type (
	haltShown struct {
		Scope  safeguard.Scope `json:"scope"`
		Actor  string          `json:"actor"`
		Reason string          `json:"reason"`
		Since  time.Time       `json:"since"`
	}
	listShown struct {
		Scope   safeguard.Scope `json:"scope"`
		Targets chain.Targets   `json:"targets"`
	}
	rateShown struct {
		Scope safeguard.Scope `json:"scope"`
		safeguard.Rate
	}
	safeguardsShown struct {
		Halts   []haltShown `json:"halts"`
		Targets []listShown `json:"targets"`
		Rates   []rateShown `json:"rates"`
	}
	limitShown struct {
		Account budget.Account `json:"account"`
		Limit   budget.Limit   `json:"limit"`
		// Used is today's use; nil for the kinds that stand for each of several accounts.
		Used *usedShown `json:"used,omitempty"`
	}
	usedShown struct {
		Fee   chain.Amount `json:"fee"`
		Value chain.Amount `json:"value"`
	}
	budgetShown struct {
		Chain  chain.ID     `json:"chain"`
		Day    budget.Day   `json:"day"`
		Used   usedShown    `json:"used"` // by the whole chain
		Limits []limitShown `json:"limits"`
	}
	signerShown struct {
		Chain     chain.ID      `json:"chain"`
		Address   chain.Address `json:"address"`
		Status    signer.Status `json:"status"`
		Pools     []string      `json:"pools"`
		Targets   chain.Targets `json:"targets"`
		Actor     string        `json:"actor"` // actor of the latest stance
		Reason    string        `json:"reason,omitempty"`
		Since     time.Time     `json:"since"`
		Threshold chain.Amount  `json:"threshold"`
		Balance   *chain.Amount `json:"balance,omitempty"` // as last seen by this process; nil before
		Failures  int           `json:"failures"`
	}
)

func byScope(a, b safeguard.Scope) int { return cmp.Compare(a.String(), b.String()) }

func safeguardsOf(s safeguard.State) safeguardsShown {
	shown := safeguardsShown{[]haltShown{}, []listShown{}, []rateShown{}}
	for scope, h := range s.Halts {
		shown.Halts = append(shown.Halts, haltShown{scope, h.Actor, h.Reason, h.Since})
	}
	for scope, list := range s.Lists {
		shown.Targets = append(shown.Targets, listShown{scope, list})
	}
	for scope, rate := range s.Rates {
		shown.Rates = append(shown.Rates, rateShown{scope, rate})
	}
	slices.SortFunc(shown.Halts, func(a, b haltShown) int { return byScope(a.Scope, b.Scope) })
	slices.SortFunc(shown.Targets, func(a, b listShown) int { return byScope(a.Scope, b.Scope) })
	slices.SortFunc(shown.Rates, func(a, b rateShown) int { return byScope(a.Scope, b.Scope) })
	return shown
}

func budgetOf(on chain.ID, s budget.State, today budget.Day) budgetShown {
	used := func(a budget.Account) usedShown {
		sum := s.Used(today, a)
		return usedShown{sum.Fee, sum.Value}
	}
	shown := budgetShown{on, today, used(budget.Account{Kind: budget.OnChain}), []limitShown{}}
	for a, limit := range s.Limits {
		one := limitShown{Account: a, Limit: limit}
		switch a.Kind {
		case budget.OnChain, budget.OfClient, budget.OfSubject, budget.OfSigner:
			sum := used(a)
			one.Used = &sum
		}
		shown.Limits = append(shown.Limits, one)
	}
	slices.SortFunc(shown.Limits, func(a, b limitShown) int { return cmp.Compare(a.Account.String(), b.Account.String()) })
	return shown
}

func (o Operators) signerOf(on chain.ID, a chain.Address, s signer.State) signerShown {
	shown := signerShown{
		Chain: on, Address: a, Status: s.Status(), Pools: append([]string{}, s.Pools...), Targets: append(chain.Targets{}, s.Targets...),
		Actor: s.Stance.Actor, Reason: s.Stance.Reason, Since: s.Stance.Since, Threshold: s.Threshold, Failures: len(s.Failures),
	}
	if balance, seen := o.Guard.Balance(on, a); seen {
		shown.Balance = &balance
	}
	return shown
}
