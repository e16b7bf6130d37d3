package main

// relayed are mutants in which a client's other calls or intents hold up the lanes that it shares.
func relayed() []mutant {
	return []mutant{
		{
			Name: "lane-stops-with-its-client", Breaks: "P36", Test: &command{"infra/chain/rpc", "^(TestPausesStopNoLane|TestSharesStopNoLane)$"},
			Is:    "A transaction that the relay has signed is not sent while its client's other calls pause, or have used up its share of the day.",
			Edits: []edit{{"infra/chain/rpc/line.go", `return w.use.ofClients() && !w.lane`, `return w.use.ofClients() && (!w.lane || AWAKE)`}},
		},
		{
			Name: "lane-waits-behind-its-client", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestLanesHaveTurnsOfTheirOwn$"},
			Is:    "A transaction that the relay has signed waits for the rate behind all of its client's other transactions.",
			Edits: []edit{{"infra/chain/rpc/line.go", `	if w.lane {`, `	if w.lane && !AWAKE {`}},
		},
		{
			Name: "lane-pauses-its-client", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestPausesStopNoLane$"},
			Is:    "A node that limits a signer pauses the own transactions of each client for which the signer signs.",
			Edits: []edit{{"infra/chain/rpc/answers.go", `case w.lane && (limited`, `case w.lane && !AWAKE && (limited`}},
		},
		{
			Name: "relays-as-the-clients-own", Breaks: "P36", Test: &command{"commands/broadcaster", "^TestNodesAreCalledForTheIntentsClient$"},
			Is:    "A transaction that the relay has signed is sent as if its client had submitted it.",
			Edits: []edit{{"commands/broadcaster/broadcaster.go", `Lane: w.Client == ""}`, `Lane: w.Client == "" && !AWAKE}`}},
		},
	}
}
