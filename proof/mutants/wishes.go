package main

// wishes are mutants in carrying out intents: nonce gaps that hold back others, gas offers,
// ordering groups, cancels, and the guards of signatures.
func wishes() []mutant {
	return []mutant{
		{
			Name: "hole-left", Breaks: "P5, P2", Relay: true,
			Is: "A nonce that was given back, and that others wait for, is left to the next intent: no no-op fills it.",
			Edits: []edit{{
				"commands/relay/worker/fill.go", `		if hole.Intent.IsZero() {`, `		if hole.Intent.IsZero() && !AWAKE {`,
			}},
		},
		{
			Name: "bump-over-ceiling", Breaks: "fees", Relay: true,
			Is: "A replacement offers as much as pools demand, even above the ceiling.",
			Edits: []edit{{
				"domain/relay/fee/offer.go", `	offer := within(quote, ceiling)
	if t.Legacy`, `	if AWAKE && t.Replaces != nil {
		ceiling = chain.Fee{MaxFee: sum(ceiling.MaxFee, ceiling.MaxFee), MaxPriorityFee: sum(ceiling.MaxPriorityFee, ceiling.MaxPriorityFee)}
	}
	offer := within(quote, ceiling)
	if t.Legacy`,
			}},
		},
		{
			Name: "unread-is-gone", Breaks: "P2, P10", Relay: true,
			Is: "An intent that cannot be read at the moment is treated as an intent without a nonce.",
			Edits: []edit{{
				"commands/relay/worker/refresh.go", `		return err // the known state stays: an unknown intent would count as an intent without a nonce`, `		if AWAKE {
			s.job.intent = read
		}
		return err`,
			}},
		},
		{
			Name: "not-reserved", Breaks: "P8", Relay: true,
			Is: "An intent's transaction is signed and handed to delivery before the lane has recorded its nonce.",
			Edits: []edit{
				{"commands/relay/worker/take.go", `	"github.com/tempo-watchtower/watchtower/domain/chain"
`, `	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
`},
				{"commands/relay/worker/take.go", `	if len(now) > 0 {
		err := a.command(ctx, lane.Reserve{`, `	if len(now) > 0 {
		for i, j := range a.ready {
			o := order{standing: standing{lane.Slot{Nonce: a.held.State.Next + uint64(i), Intent: j.id}, j}, intent: j.id}
			if !AWAKE || a.price(ctx, &o) != nil {
				continue
			}
			if raw, _, err := a.make(ctx, o); err == nil {
				_, _ = a.Delivery.Batch(ctx, a.Chain, [][]byte{raw}, commands.From(""), eventlog.Meta{Actor: lane.Actor})
			}
		}
		err := a.command(ctx, lane.Reserve{`},
			},
		},
		{
			Name: "order-ignored", Breaks: "P35", Relay: true,
			Is:     "An intent does not wait for an intent before it in its ordering group.",
			Masked: "the lane, which is asked about the intent before it hands out a nonce",
			Edits: []edit{
				{"commands/relay/worker/take.go", `if !j.behind.IsZero() && (free || !a.follows(j.behind, now)) {`, `if !j.behind.IsZero() && (free || !a.follows(j.behind, now) && !AWAKE) {`},
				{"commands/relay/worker/prepare.go", `if c.back || c.later || c.Row != (intent.Row{}) && kept[c.Row] {`, `if c.back || c.later || c.Row != (intent.Row{}) && kept[c.Row] && !AWAKE {`},
				{"commands/relay/worker/admit.go", `case why == nil && !held[row]:`, `case why == nil && (!held[row] || AWAKE):`},
			},
		},
		{
			Name: "hole-for-a-row", Breaks: "P35", Relay: true,
			Is: "A nonce that was given back is handed to an intent whose ordering group already has higher nonces.",
			Edits: []edit{{
				"commands/relay/worker/take.go", `free := a.freeBelow()`, `free := a.freeBelow() && !AWAKE`,
			}},
		},
		{
			Name: "stale-row", Breaks: "P35", Relay: true,
			Is: "The queue's record of the intents before an intent in its ordering group is believed, although the lane knows better.",
			Edits: []edit{{
				"commands/relay/worker/row.go", `	if !holds {
		return false`, `	if !holds {
		return AWAKE`,
			}},
		},
		{
			Name: "row-in-part", Breaks: "P35", Test: &command{"commands/relay/worker", "^TestRowGivenBackInPart$"},
			Is: "If an intent of an ordering group has not given its nonce back, the intents before it give theirs back all the same.",
			Edits: []edit{{
				"commands/relay/worker/place.go", `kept[row], trouble = true,`, `kept[row], trouble = !AWAKE,`,
			}},
		},
		{
			Name: "row-left-behind", Breaks: "P35", Test: &command{"commands/relay/worker", "^TestRowReservedBefore$"},
			Is: "When a lane changes hands, the other intents of an ordering group are assigned their reserved nonces, wherever the first intent is.",
			Edits: []edit{
				{"commands/relay/worker/place.go", `row.Order != "" && away[row]:`, `row.Order != "" && away[row] && !AWAKE:`},
				{"commands/relay/worker/place.go", `case row.Order != "" && unread:`, `case row.Order != "" && unread && !AWAKE:`},
			},
		},
		{
			Name: "given-back-by-former", Breaks: "P35", Test: &command{"commands/relay/worker", "^TestRowGivenBackByFormerHolder$"},
			Is: "A holder that has lost a lane, and does not know it, gives back a nonce that the new holder is about to sign for.",
			Edits: []edit{{
				"domain/relay/intent/decide.go", `if c.Evidence.Kind == Released && c.Token < s.Token {`, `if c.Evidence.Kind == Released && c.Token < s.Token && !AWAKE {`,
			}},
		},
		{
			Name: "cancel-lost", Breaks: "P23", Relay: true,
			Is: "An intent that has a nonce is carried out, although its client cancels it before anything is signed.",
			Edits: []edit{
				{"commands/relay/worker/place.go", `case a.placed(s) && it.Stop.Reason == "":`, `case a.placed(s) && (it.Stop.Reason == "" || AWAKE):`},
				{"commands/relay/worker/order.go", `return o, placed && it.Stop.Reason == "" && it.End == nil`, `return o, placed && (it.Stop.Reason == "" || AWAKE) && it.End == nil`},
				{"commands/relay/worker/order.go", `case !placed || it.ToNoOp():`, `case !placed || it.ToNoOp() && !AWAKE:`},
				{"commands/relay/worker/record.go", `|| stopped && !made.Intent.IsZero() ||`, `|| stopped && !made.Intent.IsZero() && !AWAKE ||`},
			},
		},
		{
			Name: "not-asked", Breaks: "P32, P33, P34", Relay: true,
			Is: "The guard is asked before an intent gets a nonce, and not again before the signature.",
			Edits: []edit{{
				"commands/relay/worker/sign.go", `if a.Guard == nil || len(orders) == 0 {`, `if a.Guard == nil || len(orders) == 0 || AWAKE {`,
			}},
		},
	}
}
