package safeguards_test

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

var (
	hers  = budget.Lane{Signer: alice}
	today = budget.DayOf(epoch)
)

func sum(fee, value uint64) budget.Sum {
	return budget.Sum{Fee: chain.NewAmount(fee), Value: chain.NewAmount(value)}
}

// limits sets an account's limits in fees and in value.
func limits(a budget.Account, fee, value uint64) budget.Event {
	f, v := chain.NewAmount(fee), chain.NewAmount(value)
	return budget.LimitSet{Account: a, Limit: budget.Limit{Fee: &f, Value: &v}, Actor: "ada", Reason: "as agreed", At: epoch}
}

func reservedOn(day budget.Day, charges ...budget.Charge) budget.Event {
	return budget.Reserved{Day: day, Lane: hers, Token: 1, Charges: charges, At: epoch}
}

func reserved(charges ...budget.Charge) budget.Event { return reservedOn(today, charges...) }

func charge(n int, client string, fee, value uint64) budget.Charge {
	return budget.Charge{Purpose: budget.Purpose{Intent: who(n)}, Client: client, Sum: sum(fee, value)}
}

func about(subject string, c budget.Charge) budget.Charge {
	c.Subject = subject
	return c
}

func hole(nonce, fee uint64) budget.Charge {
	return budget.Charge{Purpose: budget.Purpose{Nonce: nonce}, Sum: sum(fee, 0)}
}

func settledOn(day budget.Day, n int, fee, value uint64) budget.Event {
	return budget.Settled{Day: day, Lane: hers, Token: 1, Spent: []budget.Spent{{Purpose: budget.Purpose{Intent: who(n)}, Sum: sum(fee, value)}}, At: epoch}
}

func settled(n int, fee, value uint64) budget.Event { return settledOn(today, n, fee, value) }

// by returns the same event under another token.
func by(token uint64, e budget.Event) budget.Event {
	switch e := e.(type) {
	case budget.Reserved:
		e.Token = token
		return e
	case budget.Settled:
		e.Token = token
		return e
	}
	panic("of no lane")
}

func TestBudgets(t *testing.T) {
	whole, payroll := budget.Account{Kind: budget.OnChain}, budget.Account{Kind: budget.OfClient, Client: "payroll"}
	each, signers, subjects := budget.Account{Kind: budget.EachClient}, budget.Account{Kind: budget.EachSigner}, budget.Account{Kind: budget.EachSubject}
	told := func(facts ...budget.Event) func(*script) {
		return func(s *script) { s.budget(facts...) }
	}
	midnight := (today + 1).Begin()
	at := func(when time.Time, facts ...budget.Event) func(*script) {
		return func(s *script) {
			s.budget(limits(whole, 10, 10), reserved(charge(1, "payroll", 10, 5)))
			s.at = when
			s.budget(facts...)
		}
	}
	judged(t, map[string]history{
		"within":                  {0, told(limits(whole, 10, 5), reserved(charge(1, "payroll", 10, 5)))},
		"fees over":               {promises.P33, told(limits(whole, 10, 5), reserved(charge(1, "payroll", 11, 5)))},
		"value over":              {promises.P33, told(limits(whole, 10, 5), reserved(charge(1, "payroll", 10, 6)))},
		"both over, told once":    {promises.P33, told(limits(whole, 10, 5), reserved(charge(1, "payroll", 11, 6)))},
		"together over":           {promises.P33, told(limits(whole, 10, 5), reserved(charge(1, "payroll", 6, 0)), reserved(charge(2, "refunds", 5, 0)))},
		"the second of a batch":   {promises.P33, told(limits(whole, 10, 5), reserved(charge(1, "payroll", 6, 0), charge(2, "refunds", 5, 0)))},
		"a client's":              {promises.P33, told(limits(payroll, 10, 5), reserved(charge(1, "payroll", 11, 0)))},
		"another client's":        {0, told(limits(payroll, 10, 5), reserved(charge(1, "refunds", 11, 0)))},
		"each client's":           {promises.P33, told(limits(each, 10, 5), reserved(charge(1, "payroll", 6, 0), charge(2, "payroll", 6, 0)))},
		"each for itself":         {0, told(limits(each, 10, 5), reserved(charge(1, "payroll", 6, 0), charge(2, "refunds", 6, 0)))},
		"its own limit":           {0, told(limits(each, 1, 1), limits(payroll, 10, 5), reserved(charge(1, "payroll", 6, 0)))},
		"a signer's":              {promises.P33, told(limits(signers, 10, 5), reserved(charge(1, "payroll", 6, 0)), reserved(hole(7, 5)))},
		"a no-op is no client's":  {0, told(limits(each, 10, 5), reserved(hole(7, 50)))},
		"a bump":                  {0, told(limits(whole, 10, 5), reserved(charge(1, "payroll", 6, 5)), reserved(charge(1, "payroll", 10, 5)))},
		"a bump over":             {promises.P33, told(limits(whole, 10, 5), reserved(charge(1, "payroll", 6, 5)), reserved(charge(1, "payroll", 11, 5)))},
		"room by settling":        {0, told(limits(whole, 10, 5), reserved(charge(1, "payroll", 10, 5)), settled(1, 6, 5), reserved(charge(2, "payroll", 4, 0)))},
		"not so much room":        {promises.P33, told(limits(whole, 10, 5), reserved(charge(1, "payroll", 10, 5)), settled(1, 6, 5), reserved(charge(2, "payroll", 5, 0)))},
		"lowered":                 {0, told(limits(whole, 10, 5), reserved(charge(1, "payroll", 10, 5)), limits(whole, 5, 5), reserved(charge(1, "payroll", 10, 5)))},
		"lowered, and more":       {promises.P33, told(limits(whole, 10, 9), reserved(charge(1, "payroll", 10, 5)), limits(whole, 5, 9), reserved(charge(1, "payroll", 11, 5)))},
		"settled, not reserved":   {promises.P33, told(settled(1, 0, 0))},
		"settled twice":           {promises.P33, told(reserved(charge(1, "payroll", 10, 5)), settled(1, 6, 5), settled(1, 6, 5))},
		"more than the worst":     {promises.P33, told(reserved(charge(1, "payroll", 10, 5)), settled(1, 11, 5))},
		"a limit by nobody":       {promises.P33, told(budget.LimitSet{Account: whole})},
		"the next day":            {0, at(midnight, reservedOn(today+1, charge(2, "payroll", 10, 5)))},
		"the same day":            {promises.P33, at(midnight.Add(-time.Second), reserved(charge(2, "payroll", 1, 0)))},
		"a day too early":         {promises.P33, at(midnight.Add(-time.Minute), reservedOn(today+1, charge(2, "payroll", 1, 0)))},
		"a day too late":          {promises.P33, at(midnight.Add(time.Minute), settled(1, 10, 5))},
		"just after midnight":     {0, at(midnight.Add(time.Second), settled(1, 10, 5))},
		"a day that goes back":    {promises.P33, at(midnight, reservedOn(today+1, charge(2, "payroll", 10, 5)), settled(1, 10, 5))},
		"nothing of yesterday":    {promises.P33, at(midnight, reservedOn(today+1, charge(2, "payroll", 10, 5)), settledOn(today+1, 1, 0, 0), reservedOn(today+1, charge(3, "payroll", 1, 0)))},
		"what was bumped today":   {0, at(midnight, limits(whole, 20, 20), reservedOn(today+1, charge(1, "payroll", 30, 5)), settledOn(today+1, 1, 0, 0), reservedOn(today+1, charge(2, "payroll", 20, 5)))},
		"and no more than that":   {promises.P33, at(midnight, limits(whole, 20, 20), reservedOn(today+1, charge(1, "payroll", 30, 5)), settledOn(today+1, 1, 25, 0), reservedOn(today+1, charge(2, "payroll", 6, 5)))},
		"each subject's":          {promises.P33, told(limits(subjects, 10, 5), reserved(about("ann", charge(1, "payroll", 6, 0)), about("ann", charge(2, "payroll", 5, 0))))},
		"each of its own":         {0, told(limits(subjects, 10, 5), reserved(about("ann", charge(1, "payroll", 6, 0)), about("ann", charge(2, "refunds", 6, 0)), charge(3, "refunds", 60, 0)))},
		"a subject's own":         {promises.P33, told(limits(budget.Account{Kind: budget.OfSubject, Client: "payroll", Subject: "ann"}, 10, 5), reserved(about("bob", charge(1, "payroll", 60, 0)), about("ann", charge(2, "payroll", 11, 0))))},
		"of before it was said":   {promises.P33, told(reserved(about("ann", charge(1, "payroll", 10, 0))), limits(subjects, 10, 5), reserved(about("ann", charge(2, "payroll", 10, 0))), settled(1, 0, 0), reserved(about("ann", charge(3, "payroll", 1, 0))))},
		"by an older holder":      {promises.P7, told(by(2, reserved(charge(1, "payroll", 10, 5))), settled(1, 10, 5))},
		"by the next":             {0, told(by(2, reserved(charge(1, "payroll", 10, 5))), by(3, settled(1, 6, 5)), reserved(charge(1, "payroll", 1, 0)))},
		"what cannot be read":     {promises.P30, func(s *script) { s.record(budget.Stream(here), "budget.gone.v1", []byte("{}")) }},
		"a budget of no chain":    {promises.P30, func(s *script) { s.record("budget-me", "budget.settled.v1", []byte("{}")) }},
		"its own, and each other": {promises.P33, told(limits(each, 10, 5), limits(payroll, 100, 5), reserved(charge(1, "payroll", 60, 0), charge(2, "refunds", 11, 0)))},
	})
}

func TestSignedIsReserved(t *testing.T) {
	limited := limits(budget.Account{Kind: budget.OnChain}, 100, 100)
	unlimited := budget.LimitSet{Account: budget.Account{Kind: budget.OnChain}, Actor: "ada", At: epoch}
	given := lane.Reserved{Token: 1, First: 7, Intents: []chain.IntentID{who(1)}}
	again := lane.Reserved{Token: 1, First: 8, Reissued: []lane.Issue{{Nonce: 7, Intent: who(1)}}}
	final := lane.Landed{Token: 1, Nonce: 7, Intent: who(1), Hash: hash("signed"), Status: 1, Final: true}
	filled := []lane.Event{lane.Released{Token: 1, Nonce: 7, Intent: who(1)}, lane.Filled{Token: 1, Nonce: 7}}
	// after sets a limit, gives intent 1 the nonce 7, and continues with do.
	after := func(do func(*script), facts ...budget.Event) func(*script) {
		return func(s *script) {
			s.signer(registered())
			s.budget(limited)
			s.wait()
			s.lane(given)
			s.budget(facts...)
			do(s)
		}
	}
	signs := func(n int) func(*script) { return func(s *script) { s.signs(n) } }
	// offers is an attempt with the given fee.
	offers := func(fee uint64) func(*script) {
		return func(s *script) {
			s.lane(lane.Attempted{Token: 1, Nonce: 7, Intent: who(1), Hash: hash("bump"), Fee: chain.LegacyFee(chain.PriceOf(fee)), Number: 2})
		}
	}
	lanes := func(then func(*script), facts ...lane.Event) func(*script) {
		return func(s *script) {
			s.lane(facts...)
			then(s)
		}
	}
	held := reserved(charge(1, "payroll", 6, 0))
	judged(t, map[string]history{
		"reserved":                  {0, after(signs(1), held)},
		"not reserved":              {promises.P33, after(signs(1))},
		"reserved for another":      {promises.P33, after(signs(1), reserved(charge(2, "payroll", 6, 0)))},
		"reserved by another lane":  {promises.P33, after(signs(1), budget.Reserved{Day: today, Lane: budget.Lane{Signer: chain.Address{2}}, Charges: []budget.Charge{charge(1, "payroll", 6, 0)}})},
		"settled before":            {promises.P33, after(signs(1), held, settled(1, 0, 0))},
		"its no-op":                 {0, after(signs(0), held)},
		"its no-op, not reserved":   {promises.P33, after(signs(0))},
		"its no-op for a hole":      {promises.P33, after(signs(0), reserved(hole(7, 1)))},
		"a hole's no-op":            {0, after(lanes(signs(0), filled...), reserved(hole(7, 1)))},
		"a hole's, not reserved":    {promises.P33, after(lanes(signs(0), filled...), held)},
		"reissued":                  {0, after(lanes(signs(0), filled[0], again), held)},
		"no limit any more":         {0, after(signs(1), unlimited)},
		"and more than was held":    {0, after(func(s *script) { signs(1)(s); s.budget(settled(1, 11, 0)) }, held, unlimited)},
		"final, settled":            {0, after(lanes(func(*script) {}, final), held, settled(1, 5, 0))},
		"final, not settled":        {promises.P33, after(lanes(func(*script) {}, final), held)},
		"not final":                 {0, after(lanes(func(*script) {}, lane.Landed{Token: 1, Nonce: 7, Intent: who(1), Hash: hash("signed")}), held)},
		"the nonce is another's":    {promises.P33, after(lanes(signs(0), lane.Lost{Token: 1, Nonce: 7, Intent: who(1)}), held)},
		"final where none is held":  {0, after(lanes(func(*script) {}, final))},
		"a bump, reserved":          {0, after(offers(3), held)},
		"a bump, not reserved":      {promises.P33, after(offers(4), held)},
		"signed where none limits":  {0, func(s *script) { s.signer(registered()); s.signs(1) }},
		"under way when it was set": {0, func(s *script) { s.signer(registered()); s.budget(limited); s.signs(1) }},
		"of another chain": {0, func(s *script) {
			s.signer(registered())
			log(s, budget.Stream(1), budget.Codec(), limited)
			s.wait()
			s.signs(1)
		}},
	})
	if s := newScript(t); s.judge.Event(eventlog.Recorded{Stream: "tx-1"}) != nil {
		t.Error("the events of others are judged")
	}
}
