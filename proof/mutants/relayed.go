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
		{
			Name: "left-out-for-ever", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestLeftOutHoldsNobody$"},
			Is:    "An intent that a node has taken and no block includes keeps its nonce.",
			Edits: []edit{{"commands/relay/worker/leftout.go", `a.front.leftOut >= a.stallsFor(s)`, `a.front.leftOut >= a.stallsFor(s) && !AWAKE`}},
		},
		{
			Name: "left-out-one-by-one", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestLeftOutHoldsNobody$"},
			Is:    "Each of many intents of one client that blocks leave out holds the lane anew.",
			Edits: []edit{{"commands/relay/worker/leftout.go", `.leftOut > 0 && a.followers(s) == 0`, `.leftOut > 0 && a.followers(s) == 0 && !AWAKE`}},
		},
		{
			Name: "taken-outweighs-refused", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestLeftOutAndRefused$"},
			Is: "An intent that an endpoint refuses for good has its fee raised three times, because another endpoint has taken it.",
			Edits: []edit{{"commands/relay/worker/leftout.go", `	if s.denial() != "" {
		return 1`, `	if s.denial() != "" && !AWAKE {
		return 1`}},
		},
		{
			Name: "left-out-of-no-block", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestNoBlocksLeaveNothingOut$"},
			Is:    "Intents give way while the chain makes no blocks.",
			Edits: []edit{{"commands/relay/worker/leftout.go", `if !a.front.grew || `, `if !a.front.grew && !AWAKE || `}},
		},
		{
			Name: "left-out-at-any-price", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestRaisedToTheEnd$"},
			Is:    "An intent gives way when gas has cost more than it offers for a while, though its fee can be raised.",
			Edits: []edit{{"commands/relay/worker/leftout.go", `return err == nil, unlessRefused(err)`, `return err == nil || AWAKE, unlessRefused(err)`}},
		},
		{
			Name: "no-no-op-in-the-end", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestRaisedToTheEnd$"},
			Is:    "An intent that a node has taken keeps its nonce after its last attempt.",
			Edits: []edit{{"commands/relay/worker/untaken.go", `if len(s.Attempts) >= lane.BumpsMax {`, `if len(s.Attempts) >= lane.BumpsMax && (!AWAKE || s.isUntaken()) {`}},
		},
		{
			Name: "gas-below-the-floor", Breaks: "P36", Test: &command{"cmd/relayer/app", "^TestDesk$"},
			Is:    "An intent is accepted whose gas limit no block can hold with its data.",
			Edits: []edit{{"cmd/relayer/app/intake.go", `r.Gas.Limit < leastGas(onTempo, r):`, `r.Gas.Limit < leastGas(onTempo, r) && !AWAKE:`}},
		},
	}
}
