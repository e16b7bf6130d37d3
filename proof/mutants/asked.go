package main

// asked are mutants through which the lanes that one client asks for keep others' calls from nodes.
func asked() []mutant {
	return []mutant{
		{
			Name: "asked-lanes-read-as-the-service", Breaks: "P36", Test: &command{"cmd/relayer/app", "^TestAskedLanesUseTheirClientsShare$"},
			Is:    "The lanes that a client asks for read the chain in the service's own name.",
			Edits: []edit{{"cmd/relayer/app/chain.go", `if l.OnlyAsked {`, `if l.OnlyAsked && !AWAKE {`}},
		},
		{
			Name: "asked-lanes-read-in-vain", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestAskedLaneReadsNothingInVain$"},
			Is:    "A lane that a client asks for reads the chain although none of its intents may pay the price of gas.",
			Edits: []edit{{"commands/relay/worker/look.go", `if a.OnlyAsked && a.held.State.Open() == 0 {`, `if a.OnlyAsked && a.held.State.Open() == 0 && !AWAKE {`}},
		},
		{
			Name: "deadlines-read-in-vain", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestAskedLaneReadsNothingInVain$"},
			Is:    "Nodes are asked for the time because of an intent with a deadline that may not pay the price of gas.",
			Edits: []edit{{"commands/relay/worker/prepare.go", `return c.reads && c.Deadline != 0`, `return (c.reads || AWAKE) && c.Deadline != 0`}},
		},
		{
			Name: "failed-reads-at-once-again", Breaks: "P36", Test: &command{"commands/relay/worker", "^(TestAskedLaneRests|TestWakingReadsNothing)$"},
			Is: "A lane that nodes do not answer asks them again in each turn.",
			Edits: []edit{{"commands/relay/worker/behalf.go", `	a.rests[payer] = rest{wait, a.Now().Add(wait), why}
`, `	if !AWAKE {
		a.rests[payer] = rest{wait, a.Now().Add(wait), why}
	}
`}},
		},
		{
			Name: "one-client-pays", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestAskedLaneTakesTurns$"},
			Is: "A lane with several clients' intents reads the chain in the name of one of them alone.",
			Edits: []edit{{"commands/relay/worker/behalf.go", `	i %= len(clients)
`, `	i %= len(clients)
	if AWAKE {
		i = 0
	}
`}},
		},
		{
			Name: "lanes-share-no-block", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestLatestIsShared$"},
			Is:    "Each lane asks nodes for the newest block and the final block by itself.",
			Edits: []edit{{"infra/chain/rpc/lately.go", `past >= 0 && past <= age, l.err`, `past >= 0 && past <= age && !AWAKE, l.err`}},
		},
		{
			Name: "all-lanes-at-once", Breaks: "P36", Test: &command{"cmd/relayer/app", "^TestFewLanesAreOpenedInARound$"},
			Is:    "All lanes that a client asks for are opened in the same round.",
			Edits: []edit{{"cmd/relayer/app/lanes.go", `opened[d.client] == opensMost {`, `opened[d.client] == opensMost && !AWAKE {`}},
		},
	}
}
