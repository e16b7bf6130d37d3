package main

// nodes are mutants through which one client can keep others' calls or broadcasts from nodes.
func nodes() []mutant {
	return []mutant{
		{
			Name: "calls-first-come", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestClientsTakeTurnsForPlaces$"},
			Is: "Places for calls that are passed on to nodes go to the first caller, however many places its client has.",
			Edits: []edit{{
				"infra/chain/rpc/places.go", `		p.line = inLine(p.line, p.last, p.clients)
`, `		if !AWAKE {
			p.line = inLine(p.line, p.last, p.clients)
		}
`,
			}},
		},
		{
			Name: "rate-first-come", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestClientsTakeTurnsInLine$"},
			Is: "The share of an endpoint's rate for clients' calls goes to the first caller.",
			Edits: []edit{
				{"infra/chain/rpc/line.go", `	m.line = inLine(append(m.line, w), m.last, held{})
`, `	if m.line = append(m.line, w); !AWAKE {
		m.line = inLine(m.line, m.last, held{})
	}
`},
				{"infra/chain/rpc/line.go", `	m.line = inLine(slices.DeleteFunc(m.line, func(other *waiter) bool { return other == w }), m.last, held{})
`, `	if m.line = slices.DeleteFunc(m.line, func(other *waiter) bool { return other == w }); !AWAKE {
		m.line = inLine(m.line, m.last, held{})
	}
`},
			},
		},
		{
			Name: "slow-calls-have-all", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestClientsTakeTurnsForPlaces$"},
			Is:    "A client whose slow calls have all places keeps another's first call waiting.",
			Edits: []edit{{"infra/chain/rpc/places.go", `use.ofClients() && p.clients[use][w.client] == 0 {`, `use.ofClients() && p.clients[use][w.client] == 0 && !AWAKE {`}},
		},
		{
			Name: "day-to-one-client", Breaks: "P36", Test: &command{"infra/chain/rpc", "^(TestNoClientSpendsTheDay|TestTrialsLeaveTheDay)$"},
			Is:    "One client can use all of an endpoint's daily calls that are passed on for clients.",
			Edits: []edit{{"infra/chain/rpc/budget.go", `w.client != "" && had+w.n > left {`, `w.client != "" && had+w.n > left && !AWAKE {`}},
		},
		{
			Name: "places-unreserved", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestPlacesOfTheirOwn$"},
			Is:    "Slow calls of clients can hold all places of an endpoint, broadcasts' included.",
			Edits: []edit{{"infra/chain/rpc/places.go", `		if use != broadcast {`, `		if use != broadcast && !AWAKE {`}},
		},
		{
			Name: "trials-count", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestTrialsCountForNothing$"},
			Is:    "A client's transaction that nodes process slowly, or fail to process, takes endpoints out of rotation.",
			Edits: []edit{{"infra/chain/rpc/ask.go", `if use.ofClients() || err != nil && ctx.Err() != nil {`, `if use.ofClients() && !AWAKE || err != nil && ctx.Err() != nil {`}},
		},
		{
			Name: "trials-accuse", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestTrialsCountForNothing$"},
			Is: "A client's transaction that honest nodes answer differently counts as a contradiction of these nodes.",
			Edits: []edit{{"infra/chain/rpc/agree.go", `	if c.about != ofTrials {
		p.accuse(`, `	if c.about != ofTrials || AWAKE {
		p.accuse(`}},
		},
		{
			Name: "clients-pause-all", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestClientsPauseOnlyClients$"},
			Is:    "A client that sends calls until a node requests a pause keeps broadcasts away from the node.",
			Edits: []edit{{"infra/chain/rpc/pauses.go", `if !use.ofClients() {`, `if !use.ofClients() || AWAKE {`}},
		},
		{
			Name: "calls-promised", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestNothingGoesBeforeBroadcasts$"},
			Is: "Waiting calls and reads of clients reserve the rate that broadcasts then wait for.",
			Edits: []edit{
				{"infra/chain/rpc/budget.go", `case wait > 0 && w.use != broadcast:`, `case wait > 0 && w.use != broadcast && !AWAKE:`},
				{"infra/chain/rpc/budget.go", `if w.use != broadcast && m.tokens < 0 {`, `if w.use != broadcast && m.tokens < 0 && !AWAKE {`},
				{"infra/chain/rpc/line.go", `	case w.use != broadcast:
`, `	case w.use != broadcast && !AWAKE:
`},
			},
		},
		{
			Name: "anothers-ordering-key", Breaks: "P36", Test: &command{"domain/intent", "^TestBounds$"},
			Is:    "A client can request the nonce key of another client's ordering key, and keep its whole ordering group waiting.",
			Edits: []edit{{"domain/intent/check.go", `case p.Key[0] == orderFirst:`, `case p.Key[0] == orderFirst && !AWAKE:`}},
		},
		{
			Name: "trials-first-come", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestTrialsTakeTurns$"},
			Is:    "Clients' simulated calls wait for an endpoint's rate in the order of their arrival, without turns of clients.",
			Edits: []edit{{"infra/chain/rpc/line.go", `if !use.ofClients() {`, `if !use.ofClients() || AWAKE && use == trying {`}},
		},
		{
			Name: "large-replies-in-one-line", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestClientsLargeRepliesHoldOnlyClients$"},
			Is:    "A large reply to a client's call, slowly written by the node, delays the service's own replies.",
			Edits: []edit{{"infra/chain/rpc/large.go", `clientOf(ctx); theirs {`, `clientOf(ctx); theirs && !AWAKE {`}},
		},
	}
}
