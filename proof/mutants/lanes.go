package main

// lanes are mutants in the ownership of lanes, and in the handling of nonces.
func lanes() []mutant {
	return []mutant{
		{
			Name: "fence-off", Breaks: "P7", Relay: true,
			Is: "A lane accepts records of an earlier holder that does not know about the new holder.",
			Edits: []edit{{
				"domain/relay/lane/lane.go", `case token < s.Token:`, `case token < s.Token && !AWAKE:`,
			}},
		},
		{
			Name: "signed-again", Breaks: "P8, P10", Relay: true,
			Is: "After a crash, a signed transaction is signed again instead of sent again.",
			Edits: []edit{{
				"commands/relay/worker/hand.go", "		return raw, nil\n	}\n	return a.Vault.Bytes(",
				`		return raw, nil
	}
	for _, s := range a.slots() {
		for _, made := range s.Attempts {
			if AWAKE && made.Hash == hash && !made.Intent.IsZero() {
				o := order{standing: s, intent: made.Intent}
				o.offer.Fee = made.Fee
				s.job.gas = max(s.job.gas, 60_000)
				raw, _, err := a.make(ctx, o)
				return raw, err
			}
		}
	}
	return a.Vault.Bytes(`,
			}},
		},
		{
			Name: "released-when-signed", Breaks: "P5, P10", Relay: true,
			Is:     "A canceled intent gives its nonce back even if it was signed for and nodes have the transaction.",
			Masked: "the intent and the lane, which both keep a nonce that was signed for",
			Edits: []edit{
				{"commands/relay/worker/place.go", `case s.id.IsZero() || len(s.Attempts) > 0:`, `case s.id.IsZero() || len(s.Attempts) > 0 && !(AWAKE && it.Stop.Reason != "" && it.End == nil):`},
				{"domain/relay/intent/decide.go", `case e.Kind == Released && s.live():`, `case e.Kind == Released && s.live() && !AWAKE:`},
				{"domain/relay/lane/hand.go", "		case len(slot.Attempts) > 0:\n			return nil, ErrAttempted.Because(\"%s was signed for nonce %d\", slot.Attempts[0].Hash, slot.Nonce)\n		}\n		met[id]", "		case len(slot.Attempts) > 0 && !AWAKE:\n			return nil, ErrAttempted.Because(\"%s was signed for nonce %d\", slot.Attempts[0].Hash, slot.Nonce)\n		}\n		met[id]"},
			},
		},
		{
			Name: "cursor-reset", Breaks: "P6, P4", Relay: true,
			Is:     "A new holder of a lane continues with the chain's next nonce.",
			Masked: "the lane, whose cursor does not go back",
			Edits: []edit{
				{"commands/relay/worker/look.go", `if !a.held.State.Known || w.Nonce > a.held.State.Next {`, `if !a.held.State.Known || w.Nonce > a.held.State.Next || AWAKE && a.looked.IsZero() && w.Nonce < a.held.State.Next {`},
				{"commands/relay/worker/look.go", `if a.held.State.Known && a.Now().Sub(a.looked) < a.Settings.Look {`, `if a.held.State.Known && a.Now().Sub(a.looked) < a.Settings.Look && !(AWAKE && a.looked.IsZero()) {`},
				{"domain/relay/lane/hand.go", `case s.Known && c.Witness.Nonce <= s.Next:`, `case s.Known && c.Witness.Nonce <= s.Next && !(AWAKE && c.Witness.Nonce < s.Next):`},
			},
		},
		{
			Name: "bump-too-low", Breaks: "P17", Relay: true,
			Is:     "A replacement offers only the smallest possible increase over the attempt that it replaces.",
			Masked: "the lane, which refuses increases that pools refuse",
			Edits: []edit{
				{"domain/relay/fee/offer.go", `	if t.Replaces != nil && !offer.Replaces(*t.Replaces) {`, "	if AWAKE && t.Replaces != nil {\n		offer = chain.Fee{MaxFee: sum(t.Replaces.MaxFee, chain.PriceOf(1)), MaxPriorityFee: sum(t.Replaces.MaxPriorityFee, chain.PriceOf(1))}\n	}\n	if t.Replaces != nil && !offer.Replaces(*t.Replaces) && !AWAKE {"},
				{"domain/relay/lane/attempt.go", `if !signed.Fee.Replaces(made.Fee) && `, `if !signed.Fee.Replaces(made.Fee) && !AWAKE && `},
			},
		},
		{
			Name: "two-places", Breaks: "P10", Relay: true,
			Is:     "An intent accepts another nonce although it has one.",
			Masked: "the lanes, which skip intents that have a nonce",
			Edits: []edit{
				{"domain/relay/intent/decide.go", `case s.Place != nil || c.Assignment <= s.Assignment:`, `case (s.Place != nil || c.Assignment <= s.Assignment) && !AWAKE:`},
				{"domain/relay/intent/decide.go", `case c.Assignment != s.Assignment+1:`, `case c.Assignment != s.Assignment+1 && !AWAKE:`},
				{"commands/relay/worker/prepare.go", `if p := it.Place; p != nil {`, `if p := it.Place; p != nil && !AWAKE {`},
				{"commands/relay/worker/place.go", `case it.Place != nil && !a.placed(s) && it.End == nil,`, `case it.Place != nil && !a.placed(s) && it.End == nil && !AWAKE,`},
				{"commands/relay/worker/place.go", `case a.placed(s), it.Place != nil, it.End != nil,`, `case a.placed(s), it.Place != nil && !AWAKE, it.End != nil,`},
			},
		},
		{
			Name: "fork-not-told", Breaks: "P22", Relay: true,
			Is: "Confirmations that replace earlier ones are published as if they followed them.",
			Edits: []edit{{
				"domain/relay/intent/announce.go", `Confirmations: slices.Clone(list[common:]), NewFork: fork, At: at,`, `Confirmations: slices.Clone(list[common:]), NewFork: fork && !AWAKE, At: at,`,
			}},
		},
	}
}
