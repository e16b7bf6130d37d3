package doctor

import (
	"errors"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/budget"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/fee"
	"github.com/tempo-watchtower/watchtower/domain/lane"
)

// whyMost limits the length of a quoted cause, in bytes: nodes send texts of any length.
const whyMost = 600

// spent reports a day's budget that allows no signature. Less than the cost of a no-op counts as
// nothing. The cost of intents is reported with the waiting intents.
func (f Facts) spent() []Finding {
	day := budget.DayOf(f.Now)
	next, do := "It goes on at midnight UTC, or with what comes back of what was set aside.", fmt.Sprintf("relayer budgets set %s …", f.ID.Chain)
	if f.Budget.Exhausted(day, f.ID.Sender) {
		return one("budget-spent", "Nothing is left of the day's budget for fees.", next, do)
	}
	offer, err := f.again(lane.Slot{})
	if err != nil {
		return nil
	}
	noop := budget.Charge{Purpose: budget.Purpose{Nonce: f.Lane.Next}, Sum: budget.Sum{Fee: chain.Amount(offer.MaxFee).Times(f.Rules.NoOpGas)}}
	err = f.Budget.Check(day, budget.Lane{Signer: f.ID.Sender, NonceKey: f.ID.Key}, noop)
	if !errors.Is(err, budget.ErrSpent) && !errors.Is(err, budget.ErrOverLimit) {
		return nil
	}
	if errors.Is(err, budget.ErrOverLimit) {
		next = "It does not go on while the limit is as it is, and gas costs as much."
	}
	return one("budget-spent", fmt.Sprintf("Less is left of the day's budget for fees than a no-op may cost now: %v.", err), next, do)
}

// cause is a reason why intents wait.
type cause struct {
	why    error // of the oldest intent
	oldest Wait
	count  int
}

// waits reports intents that get no nonce, grouped by cause.
func waits(f Facts) (all []Finding) {
	var order []string
	causes := map[string]*cause{}
	for _, w := range f.Waits {
		if w.Why == nil {
			continue
		}
		name := w.Why.Error()
		if refusal := event.Refusal(""); errors.As(w.Why, &refusal) {
			name = string(refusal) // the sentence may differ between intents
		}
		c := causes[name]
		if c == nil {
			c = &cause{why: w.Why, oldest: w}
			causes[name], order = c, append(order, name)
		}
		c.count++
		if w.Since.Before(c.oldest.Since) {
			c.why, c.oldest = w.Why, w
		}
	}
	for _, name := range order {
		all = append(all, f.waitsFor(*causes[name]))
	}
	return all
}

func (f Facts) waitsFor(c cause) Finding {
	why := c.why.Error()
	why = why[:min(len(why), whyMost)]
	found := Finding{
		Code: "waits",
		Says: fmt.Sprintf("Of %d intents that wait, which are the oldest, %d get no nonce of this lane: %s. The oldest of them, %s, waits since %s.", len(f.Waits), c.count, why, c.oldest.ID, stamp(c.oldest.Since)),
		Next: fmt.Sprintf("The lane's holder asks again when its claim of them has lapsed, within lane.claim, %s: what kept them may be over by then.", f.Rules.Claim),
	}
	refusal := event.Refusal("")
	switch {
	case errors.Is(c.why, budget.ErrSpent), errors.Is(c.why, budget.ErrOverLimit):
		found.Do = fmt.Sprintf("relayer budgets set %s …, or relayer intents cancel %s.", f.ID.Chain, c.oldest.ID)
	case errors.Is(c.why, fee.ErrMarket):
		found.Do = fmt.Sprintf("Raise fee.ceiling and restart, if it is that; or wait, or relayer intents cancel %s.", c.oldest.ID)
	case !errors.As(c.why, &refusal):
		found.Do = fmt.Sprintf("See what the chain's endpoints say, and whether the signer can pay for what is asked; or relayer intents cancel %s.", c.oldest.ID)
	}
	return found
}
