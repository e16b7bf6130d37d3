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
			Edits: []edit{{"infra/chain/rpc/answers.go", `if !w.lane && (l.refused`, `if (!w.lane || AWAKE) && (l.refused`}},
		},
		{
			Name: "relays-as-the-clients-own", Breaks: "P36", Test: &command{"commands/delivery/broadcaster", "^TestNodesAreCalledForTheIntentsClient$"},
			Is:    "A transaction that the relay has signed is sent as if its client had submitted it.",
			Edits: []edit{{"commands/delivery/broadcaster/broadcaster.go", `Lane: w.Client == ""}`, `Lane: w.Client == "" && !AWAKE}`}},
		},
		{
			Name: "one-clients-share-for-all", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestPausedClientStopsNoLane$"},
			Is: "When one client's share of the calls is used up, a lane reads the chain in no other client's name either.",
			Edits: []edit{{"commands/relay/worker/behalf.go", `	if r := a.rests[payer]; a.Now()`, `	for _, r := range a.rests {
		if AWAKE && a.Now().Before(r.until) {
			return r.why
		}
	}
	if r := a.rests[payer]; a.Now()`}},
		},
		{
			Name: "paused-lane-claims-nothing", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestPausedClientStopsNoLane$"},
			Is:    "While one client's reads of a lane pause, the lane does not claim another client's new intent.",
			Edits: []edit{{"commands/relay/worker/behalf.go", `(a.newcomer || a.called)`, `(a.newcomer || a.called) && !AWAKE`}},
		},
		{
			Name: "paused-lane-claims-always", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestPausedLaneClaimsSeldom$"},
			Is:    "While a client's reads of a lane pause, the lane claims and returns the client's intents with each new one.",
			Edits: []edit{{"commands/relay/worker/behalf.go", `if a.newcomer && a.Now().Sub(a.greeted) >= a.Settings.Poll {`, `if a.newcomer && (AWAKE || a.Now().Sub(a.greeted) >= a.Settings.Poll) {`}},
		},
		{
			Name: "waiting-clients-are-forgotten", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestLaneRestsForEachClient$"},
			Is: "A lane that could not read the chain for a client without a nonce does not try again in this client's name.",
			Edits: []edit{{"commands/relay/worker/behalf.go", `	all = slices.Clone(a.waitFor)
`, `	if !AWAKE {
		all = slices.Clone(a.waitFor)
	}
`}},
		},
		{
			Name: "unanswered-holds-all", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestUnansweredHoldsNobody$"},
			Is:    "An intent that nodes do not answer has its fee raised three times before it gives way, although they take other clients'.",
			Edits: []edit{{"commands/relay/worker/unanswered.go", `|| last.replies.attempts < unansweredLeast {`, `|| AWAKE || last.replies.attempts < unansweredLeast {`}},
		},
		{
			Name: "any-node-is-a-witness", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestOutageOfOneNodeBlamesNobody$"},
			Is:    "An intent gives way when a node does not answer and another one takes other intents.",
			Edits: []edit{{"commands/relay/worker/unanswered.go", `return slices.Contains(lost.lostBy, name) })`, `return slices.Contains(lost.lostBy, name) || AWAKE })`}},
		},
		{
			Name: "taken-before-the-outage", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestOutageOfOneNodeBlamesNobody$"},
			Is:    "An intent gives way in an outage of all nodes because they have taken another client's before.",
			Edits: []edit{{"commands/relay/worker/unanswered.go", `return r.takenAt.After(lost.lostAt) &&`, `return (r.takenAt.After(lost.lostAt) || AWAKE) &&`}},
		},
		{
			Name: "untaken-one-by-one", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestUntakenGiveWayTogether$"},
			Is:    "When a client's intent gives way because no node takes it, the client's next one holds the lane as long again.",
			Edits: []edit{{"commands/relay/worker/unanswered.go", `if !front.isTried() || !front.isUntaken() {`, `if AWAKE || !front.isTried() || !front.isUntaken() {`}},
		},
		{
			Name: "taken-gives-way-too", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestTakenStaysWhenOthersGiveWay$"},
			Is:    "When a client's intent gives way because no node takes it, the client's others do so too, although nodes have taken them.",
			Edits: []edit{{"commands/relay/worker/unanswered.go", `return s.isTried() && s.isUntaken(), nil`, `return s.isTried() && (s.isUntaken() || AWAKE), nil`}},
		},
	}
}
