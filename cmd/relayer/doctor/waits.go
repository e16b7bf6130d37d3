package doctor

import (
	"errors"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// whyMost limits the length of a quoted cause, in bytes: nodes send texts of any length.
const whyMost = 600

// spent reports a day's budget that allows no signature. Less than the cost of a no-op counts as
// nothing. The cost of intents is reported with the waiting intents.
func (f Facts) spent() []Finding {
	day := budget.DayOf(f.Now)
	next, do := "Signing continues at midnight UTC, or when reservations are returned.", fmt.Sprintf("relayer budgets set %s …", f.ID.Chain)
	if f.Budget.Exhausted(day, f.ID.Sender) {
		return one("budget-spent", "The day's budget for fees is used up.", next, do)
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
		next = "Signing continues only with a higher limit or a lower gas price."
	}
	return one("budget-spent", fmt.Sprintf("The rest of the day's budget for fees is less than the cost of a no-op: %v.", err), next, do)
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
		if refusal := eventlog.Refusal(""); errors.As(w.Why, &refusal) {
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
		Says: fmt.Sprintf("%d of the %d oldest waiting intents get no nonce of this lane: %s. The oldest, %s, waits since %s.", c.count, len(f.Waits), why, c.oldest.ID, stamp(c.oldest.Since)),
		Next: fmt.Sprintf("The lane's holder tries again when its claim of them has ended, within lane.claim, %s.", f.Rules.Claim),
	}
	refusal := eventlog.Refusal("")
	switch {
	case errors.Is(c.why, budget.ErrSpent), errors.Is(c.why, budget.ErrOverLimit):
		found.Do = fmt.Sprintf("relayer budgets set %s …, or relayer intents cancel %s.", f.ID.Chain, c.oldest.ID)
	case errors.Is(c.why, fee.ErrMarket):
		found.Do = fmt.Sprintf("If fee.ceiling is too low, raise it and restart; or wait, or relayer intents cancel %s.", c.oldest.ID)
	case !errors.As(c.why, &refusal):
		found.Do = fmt.Sprintf("Check the chain's endpoints and the signer's balance; or relayer intents cancel %s.", c.oldest.ID)
	}
	return found
}
