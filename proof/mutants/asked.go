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
		{
			Name: "lanes-out-of-line", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestLanesOfOneClientWaitInLine$"},
			Is:    "The claims of all lanes that a client asks for are made at once, and hold all connections.",
			Edits: []edit{{"commands/relay/worker/line.go", `!l.asking.Empty() && l.asked < askedMost`, `!l.asking.Empty() && (l.asked < askedMost || AWAKE)`}, {"commands/relay/worker/line.go", `for l.running < lineMost {`, `for l.running < lineMost || AWAKE {`}},
		},
		{
			Name: "queue-out-of-line", Breaks: "P36", Test: &command{"cmd/relayer/app", "^TestQueueIsInLine$"},
			Is: "Lanes claim from the store without waiting for their turn.",
			Edits: []edit{{"cmd/relayer/app/extension.go", `{ return worker.InLine(t.Intents()) }`, `{
	if AWAKE {
		return t.Intents()
	}
	return worker.InLine(t.Intents())
}`}},
		},
		{
			Name: "lanes-without-turns", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestClientsOfLanesTakeTurns$"},
			Is:    "All claims of one client's lanes go before those of another client's.",
			Edits: []edit{{"commands/relay/worker/line.go", `l.asking.Add(client, w)`, `l.asking.Add(map[bool]string{false: client}[AWAKE], w)`}},
		},
		{
			Name: "asked-lanes-have-no-turn", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestAskedLanesHaveTurns$"},
			Is:    "Lanes that a client asks for claim nothing while others do.",
			Edits: []edit{{"commands/relay/worker/line.go", `if mayAsk && l.passed >= askedEvery-1 {`, `if mayAsk && l.passed >= askedEvery-1 && !AWAKE {`}},
		},
		{
			Name: "given-up-turns-stay", Breaks: "P2", Test: &command{"commands/relay/worker", "^TestGivenUpInLine$"},
			Is: "A claim that is given up while it waits for its turn keeps the turn.",
			Edits: []edit{{"commands/relay/worker/line.go", `	case w.begun:`, `	case !w.begun && AWAKE:
	case w.begun:`}},
		},
		{
			Name: "calls-in-vain-at-once-again", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestCallsInVainPause$"},
			Is:    "A lane that a client asks for claims at each of the client's requests, also if none gets a nonce.",
			Edits: []edit{{"commands/relay/worker/calls.go", `c.kept = called && !claims && c.left(now) > 0`, `c.kept = called && !claims && c.left(now) > 0 && !AWAKE`}},
		},
		{
			Name: "calls-are-forgotten", Breaks: "P2", Test: &command{"commands/relay/worker", "^TestKeptCallIsAnswered$"},
			Is:    "A call to a lane that does not answer calls for a while is forgotten.",
			Edits: []edit{{"commands/relay/worker/calls.go", `called = called || c.kept`, `called = called || c.kept && !AWAKE`}},
		},
		{
			Name: "kept-calls-wake-nobody", Breaks: "P2", Test: &command{"commands/relay/worker", "^TestEndOfPauseWakesTheLane$"},
			Is:    "A lane that keeps a call answers it only at the next poll or call.",
			Edits: []edit{{"commands/relay/worker/calls.go", `	if !c.kept {`, `	if !c.kept || AWAKE {`}},
		},
		{
			Name: "estimates-wait-for-calls", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestEstimatesEndNoPauseLate$"},
			Is: "An intent whose estimate has arrived waits until its lane answers calls.",
			Edits: []edit{{"commands/relay/worker/refresh.go", `	a.claim = a.claim || measured`, `	if AWAKE {
		called, measured = called || measured, false
	}
	a.claim = a.claim || measured`}},
		},
		{
			Name: "webhooks-share-connections", Breaks: "P36", Test: &command{"infra/postgres", "^TestNoticesHaveTheirOwnConnections$"},
			Is: "Webhook deliveries wait for connections that the other queues use.",
			Edits: []edit{{"infra/postgres/notices.go", `	return &Notices{db.notices, p}`, `	if AWAKE {
		return &Notices{db.work, p}
	}
	return &Notices{db.notices, p}`}},
		},
	}
}
