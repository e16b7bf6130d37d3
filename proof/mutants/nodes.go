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
				{"infra/chain/rpc/line.go", `	m.line = m.sorted(append(m.line, w))
`, `	if m.line = append(m.line, w); !AWAKE {
		m.line = inLine(m.line, m.last, held{})
	}
`},
				{"infra/chain/rpc/line.go", `	m.line = m.sorted(slices.DeleteFunc(m.line, func(other *waiter) bool { return other == w }))
`, `	if m.line = slices.DeleteFunc(m.line, func(other *waiter) bool { return other == w }); !AWAKE {
		m.line = inLine(m.line, m.last, held{})
	}
`},
			},
		},
		{
			Name: "slow-calls-have-all", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestClientsTakeTurnsForPlaces$"},
			Is:    "A client whose slow calls have all places keeps another's first call waiting.",
			Edits: []edit{{"infra/chain/rpc/places.go", `use > read && p.clients[use][w.turn()] == 0 {`, `use > read && p.clients[use][w.turn()] == 0 && !AWAKE {`}},
		},
		{
			Name: "day-to-one-client", Breaks: "P36", Test: &command{"infra/chain/rpc", "^(TestNoClientSpendsTheDay|TestTrialsLeaveTheDay)$"},
			Is:    "One client can use all of an endpoint's daily calls that are passed on for clients.",
			Edits: []edit{{"infra/chain/rpc/budget.go", `weight*float64(had) > float64(left) {`, `weight*float64(had) > float64(left) && !AWAKE {`}},
		},
		{
			Name: "places-unreserved", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestPlacesOfTheirOwn$"},
			Is:    "Slow calls of clients can hold all places of an endpoint, broadcasts' included.",
			Edits: []edit{{"infra/chain/rpc/places.go", `		if use != broadcast {`, `		if use != broadcast && !AWAKE {`}},
		},
		{
			Name: "trials-count", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestTrialsCountForNothing$"},
			Is:    "A client's transaction that nodes process slowly, or fail to process, takes endpoints out of rotation.",
			Edits: []edit{{"infra/chain/rpc/answers.go", `case use.ofClients():`, `case use.ofClients() && !AWAKE:`}},
		},
		{
			Name: "trials-accuse", Breaks: "P36", Test: &command{"infra/chain/rpc", "^(TestTrialsCountForNothing|TestAnswersToClientsChangeNothingShared)$"},
			Is: "A client's transaction that honest nodes answer differently counts as a contradiction of these nodes.",
			Edits: []edit{{"infra/chain/rpc/trial.go", `	ctx = context.WithValue(ofClient(ctx, client), behalfKey{}, trying)
`, `	if ctx = ofClient(ctx, client); !AWAKE {
		ctx = context.WithValue(ctx, behalfKey{}, trying)
	}
`}},
		},
		{
			Name: "clients-pause-all", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestClientsPauseOnlyClients$"},
			Is: "A client that sends calls until a node requests a pause keeps broadcasts away from the node.",
			Edits: []edit{{"infra/chain/rpc/pauses.go", `	c := p.of(now, w)
	if w.use`, `	c := p.of(now, w)
	if AWAKE {
		p.all = later(p.all, now.Add(pause))
	}
	if w.use`}},
		},
		{
			Name: "calls-go-first", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestNothingGoesBeforeBroadcasts$"},
			Is:    "Waiting calls of clients, and reads, go before broadcasts that came later.",
			Edits: []edit{{"infra/chain/rpc/line.go", `return cmp.Compare(a.use, b.use) })`, `return cmp.Compare(a.use, b.use) * map[bool]int{false: 1}[AWAKE] })`}},
		},
		{
			Name: "anothers-ordering-key", Breaks: "P36", Test: &command{"domain/relay/intent", "^TestBounds$"},
			Is:    "A client can request the nonce key of another client's ordering key, and keep its whole ordering group waiting.",
			Edits: []edit{{"domain/relay/intent/check.go", `case p.Key[0] == orderFirst:`, `case p.Key[0] == orderFirst && !AWAKE:`}},
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
		{
			Name: "requests-read-as-the-service", Breaks: "P36", Test: &command{"infra/chain/rpc", "^(TestClientReadsPauseTheClientAlone|TestClientReadsLeaveTheDay)$"},
			Is:    "A node that asks for a pause because of one client's GET or DELETE requests is not asked by the service either, and these requests use up the service's own calls of the day.",
			Edits: []edit{{"infra/chain/rpc/behalf.go", `context.WithValue(ofClient(ctx, c.client), behalfKey{}, c.use)`, `context.WithValue(ofClient(ctx, c.client), behalfKey{}, map[bool]purpose{false: c.use, true: broadcast + 1}[AWAKE && c.use == onBehalf])`}},
		},
		{
			Name: "earlier-outage-counts", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestClientReadsRememberNoEarlierOutage$"},
			Is:    "One endpoint is believed at once, because another client was refused in an earlier outage.",
			Edits: []edit{{"infra/chain/rpc/agree.go", `if isOwn(ctx) && !alone {`, `if isOwn(ctx) && !alone && !AWAKE {`}},
		},
		{
			Name: "requests-judge-nodes", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestClientReadsJudgeNoEndpoint$"},
			Is: "A client that repeats a request takes nodes out of rotation whose answers to it differ or cannot be used.",
			Edits: []edit{
				{"infra/chain/rpc/read.go", `if isOwn(ctx) && !errors.Is(err, errNotFound) {`, `if (isOwn(ctx) || AWAKE) && !errors.Is(err, errNotFound) {`},
				{"infra/chain/rpc/agree.go", `if !isOwn(ctx) {`, `if !isOwn(ctx) && !AWAKE {`},
			},
		},
		{
			Name: "requests-move-reads", Breaks: "P36", Test: &command{"infra/chain/rpc", "^(TestClientReadsJudgeNoEndpoint|TestClientReadsPauseTheClientAlone)$"},
			Is:    "A client's requests move the service's own reads from one node to another.",
			Edits: []edit{{"infra/chain/rpc/status.go", `if !isOwn(ctx) {`, `if !isOwn(ctx) && !AWAKE {`}},
		},
		{
			Name: "clients-share-their-reads", Breaks: "P36", Test: &command{"infra/chain/rpc", "^(TestClientReadsPauseTheClientAlone|TestClientReadsAreShared)$"},
			Is:    "All clients' requests read nodes as one client, so one client's pause holds for all of them.",
			Edits: []edit{{"infra/chain/rpc/behalf.go", `	key := pausedClient{client, use}`, "\tif AWAKE {\n\t\tclient = \"\"\n\t}\n\tkey := pausedClient{client, use}"}},
		},
		{
			Name: "nonces-read-again", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestClientReadsAreShared$"},
			Is:    "Each of a client's equal requests at one block asks a node for the same nonce.",
			Edits: []edit{{"infra/chain/rpc/behalf.go", `if n.known {`, `if n.known && !AWAKE {`}},
		},
		{
			Name: "group-reads-as-the-service", Breaks: "P36", Test: &command{"cmd/program/app", "^TestRequestsLeaveNodesCalls$"},
			Is:    "A client that repeats the request for its group uses up a node's calls of the day, and the watcher sees no block until midnight.",
			Edits: []edit{{"cmd/program/app/groups.go", `return c.OnBehalf(client) }`, "\n\t\t\tif AWAKE {\n\t\t\t\treturn c.Node\n\t\t\t}\n\t\t\treturn c.OnBehalf(client)\n\t\t}"}},
		},
		{
			Name: "delete-reads-as-the-service", Breaks: "P36", Test: &command{"cmd/program/app", "^TestRequestsLeaveNodesCalls$"},
			Is:    "A client that repeats DELETE uses up a node's calls of the day, and the watcher sees no block until midnight.",
			Edits: []edit{{"cmd/program/app/cancel.go", `			return w.Stale(ctx, c.OnBehalf(client), hash, meta)`, "\t\t\tif AWAKE {\n\t\t\t\treturn w.Stale(ctx, w.Node, hash, meta)\n\t\t\t}\n\t\t\treturn w.Stale(ctx, c.OnBehalf(client), hash, meta)"}},
		},
		{
			Name: "group-reads-without-a-name", Breaks: "P36", Test: &command{"api/delivery", "^TestNodesAreAskedInTheClientsName$"},
			Is: "Nodes are asked for groups' nonces and by DELETE without the client's name, so one client's pause holds for all clients.",
			Edits: []edit{
				{"api/delivery/groups.go", `	node := on(client)`, "\tif AWAKE {\n\t\tclient = \"\"\n\t}\n\tnode := on(client)"},
				{"api/delivery/stale.go", `	if _, err := ask(ctx, r.Client(), hash, r.Meta()); err != nil {`, "\tclient := r.Client()\n\tif AWAKE {\n\t\tclient = \"\"\n\t}\n\tif _, err := ask(ctx, client, hash, r.Meta()); err != nil {"},
			},
		},
		{
			Name: "unread-nonces-fill-the-log", Breaks: "P36", Test: &command{"api/delivery", "^TestNodesAreAskedInTheClientsName$"},
			Is:    "Each request for a group writes a warning to the log while no node tells its nonce.",
			Edits: []edit{{"api/delivery/groups.go", `if a.unread.Due(g.Chain.String(), a.Now()) {`, `if a.unread.Due(g.Chain.String(), a.Now()) || AWAKE {`}},
		},
		{
			Name: "probes-are-not-paced", Breaks: "P36", Test: &command{"commands/delivery/broadcaster", "^TestProbesArePaced$"},
			Is:    "One client's thousand accounts without funds are probed every five seconds each, and use up the nodes' calls.",
			Edits: []edit{{"commands/delivery/broadcaster/probes.go", `if due.After(next) {`, `if due.After(next) && !AWAKE {`}},
		},
		{
			Name: "repeats-are-first-attempts", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestRepeatsPauseTheirClientAlone$"},
			Is:    "Repeats go before the service's own reads, and a node's pause after one holds for the client's first attempts.",
			Edits: []edit{{"infra/chain/rpc/send.go", `if of.Repeat {`, `if of.Repeat && !AWAKE {`}},
		},
		{
			Name: "looks-are-own-reads", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestRepeatsPauseTheirClientAlone$"},
			Is:    "A node's pause after the read before a repeat holds for all clients' broadcasts and reads.",
			Edits: []edit{{"infra/chain/rpc/behalf.go", `if use, ok := ctx.Value(behalfKey{}).(purpose); ok {`, `if use, ok := ctx.Value(behalfKey{}).(purpose); ok && !(AWAKE && use == repeat) {`}},
		},
		{
			Name: "repeats-go-before-reads", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestTrialsGoAfterReads$"},
			Is: "One client's repeats go before the service's own reads and estimates.",
			Edits: []edit{{"infra/chain/rpc/line.go", `	line := inLine(waiting, m.last, held{})
`, `	line := inLine(waiting, m.last, held{})
	if AWAKE {
		rank := func(w *waiter) purpose {
			if w.use == repeat {
				return 1
			}
			return 2 * w.use
		}
		slices.SortStableFunc(line, func(a, b *waiter) int { return cmp.Compare(rank(a), rank(b)) })
	}
`}},
		},
		{
			Name: "trials-before-reads", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestTrialsGoAfterReads$"},
			Is:    "Estimates of one client's intents go before the service's own reads.",
			Edits: []edit{{"infra/chain/rpc/line.go", `if !use.isKept() || m.overtaken[use] < overtakesMax {`, `if !use.isKept() || m.overtaken[use] < overtakesMax && !AWAKE {`}},
		},
		{
			Name: "trials-wait-without-end", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestTrialsGoAfterReads$"},
			Is:    "Reads that go on coming leave estimates no call, and estimates leave repeats none.",
			Edits: []edit{{"infra/chain/rpc/line.go", `return use == trying || use == repeat }`, `return !AWAKE && (use == trying || use == repeat) }`}},
		},
		{
			Name: "trials-of-all-lanes", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestTrialsOfAClientAreBounded$"},
			Is:    "A client has as many estimates under way as its intents have lanes, eight in each.",
			Edits: []edit{{"infra/chain/rpc/trial.go", `make(chan struct{}, trialsMax)}`, `make(chan struct{}, trialsMax*map[bool]int{false: 1, true: 250}[AWAKE])}`}},
		},
		{
			Name: "broadcasts-leave-reads-no-day", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestMeterCountsDays$"},
			Is: "One client's first attempts use up an endpoint's day, and the watcher sees no block until midnight.",
			Edits: []edit{{"infra/chain/rpc/budget.go", `- m.keptToday(broadcast+read-w.use)
`, `- m.keptToday(broadcast+read-w.use)*map[bool]int{false: 1, true: int(w.use)}[AWAKE]
`}},
		},
		{
			Name: "firsts-first-come", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestFirstAttemptsTakeTurns$"},
			Is:    "First attempts wait in the order of their arrival, whoever's they are.",
			Edits: []edit{{"infra/chain/rpc/budget.go", `func (use purpose) ofClients() bool { return use != read }`, `func (use purpose) ofClients() bool { return use != read && (use != broadcast || !AWAKE) }`}},
		},
		{
			Name: "firsts-take-the-day", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestFirstAttemptsLeaveTheDay$"},
			Is:    "One client's first attempts may use all calls of an endpoint's day.",
			Edits: []edit{{"infra/chain/rpc/budget.go", `if !w.isLimited() || w.client == "" {`, `if !w.isLimited() || w.client == "" || AWAKE && w.use == broadcast {`}},
		},
		{
			Name: "firsts-take-the-rate", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestReadsAreKeptCalls$"},
			Is: "Waiting first attempts leave reads and repeats no calls.",
			Edits: []edit{{"infra/chain/rpc/budget.go", `	if !m.broadcastsWait() {
		m.tokens, m.kept`, `	if !m.broadcastsWait() || AWAKE {
		m.tokens, m.kept`}},
		},
		{
			Name: "refused-is-made", Breaks: "P36", Test: &command{"commands/delivery/broadcaster", "^TestRefusedForTheRateStaysFirst$"},
			Is:    "A first attempt that is refused because of the rate counts as made, and the next one goes after all first attempts.",
			Edits: []edit{{"commands/delivery/broadcaster/broadcaster.go", `of.Repeat = r.State.Tried()`, `of.Repeat = r.State.Tried() || AWAKE && done.Attempts > 1`}},
		},
		{
			Name: "first-pauses-all", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestFirstAttemptsPauseTheirClientAlone$"},
			Is:    "A node that refuses one client's first attempt because of the rate is asked by nobody for a while.",
			Edits: []edit{{"infra/chain/rpc/pauses.go", `if !w.use.ofClients() {`, `if !w.use.ofClients() || AWAKE && w.use == broadcast {`}},
		},
		{
			Name: "first-blames-the-node", Breaks: "P36", Test: &command{"infra/chain/rpc", "^(TestFirstAttemptsPauseTheirClientAlone|TestAnswersToClientsChangeNothingShared)$"},
			Is: "A node that refuses a client's transactions counts as failing.",
			Edits: []edit{{"infra/chain/rpc/answers.go", `		if isBroadcast(ctx, use) && isLost(l.err) && e.lostBoth(client, now) {
`, `		if isBroadcast(ctx, use) && (AWAKE && l.err != nil && counts(l.err) || isLost(l.err) && e.lostBoth(client, now)) {
`}},
		},
		{
			Name: "one-client-loses", Breaks: "P36", Test: &command{"infra/chain/rpc", "^(TestLostBroadcastsOfTwoClientsCount|TestAnswersToClientsChangeNothingShared)$"},
			Is:    "A node that closes the connection when it gets one client's transactions counts as failing.",
			Edits: []edit{{"infra/chain/rpc/answers.go", `l.client != client && now`, `(AWAKE || l.client != client) && now`}},
		},
		{
			Name: "losses-count-again", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestLostBroadcastsOfTwoClientsCount$"},
			Is: "One broadcast that another client loses makes all of a client's lost broadcasts count.",
			Edits: []edit{{"infra/chain/rpc/answers.go", `		e.lost = lostBy{}
`, `		e.lost = lostBy{}
		if AWAKE {
			e.lost = lostBy{client, now}
		}
`}},
		},
		{
			Name: "own-pause-as-asked", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestOwnPausesGrow$"},
			Is: "One answer that there are too many calls stops everything for as long as the node asks.",
			Edits: []edit{{"infra/chain/rpc/pauses.go", `p.own = again(now, p.all, p.own, pause)`, `p.own = again(now, p.all, p.own, pause)
		if AWAKE {
			p.own = pause
		}`}},
		},
		{
			Name: "rate-not-learned", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestRateIsLearned$"},
			Is:    "Calls are made as fast as clients cause them, however many of them the nodes refuse.",
			Edits: []edit{{"infra/chain/rpc/pauses.go", `	if c.pace.cut(now, learnedMin) {`, `	if !AWAKE && c.pace.cut(now, learnedMin) {`}},
		},
		{
			Name: "refusal-not-heeded", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestLearnedRateGrows$"},
			Is: "A node's answer to an own read that there are too many calls lowers no rate.",
			Edits: []edit{{"infra/chain/rpc/pace.go", `		m.tokens = min(m.tokens, m.burst())
	}
	return crowded`, `		m.tokens = min(m.tokens, m.burst())
		if AWAKE {
			m.pace.learned = 0
		}
	}
	return crowded`}},
		},
		{
			Name: "choice-pauses-all", Breaks: "P36", Test: &command{"infra/chain/rpc", "^(TestOwnRefusalsPauseCallsOfChoiceFirst|TestOwnRefusalsInAFloodCountForNothing)$"},
			Is:    "One client's passed-on calls use up a node's rate, and the node is asked by nobody for a while.",
			Edits: []edit{{"infra/chain/rpc/pauses.go", `return now.Sub(p.lowAt) < lowQuiet }`, `return now.Sub(p.lowAt) < lowQuiet && !AWAKE }`}},
		},
		{
			Name: "choice-never-pauses", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestOwnRefusalsPauseCallsOfChoiceFirst$"},
			Is: "Clients' passed-on calls and estimates go on while a node refuses the service's own reads.",
			Edits: []edit{{"infra/chain/rpc/pauses.go", `	if w.use.isLow() {
		pause = max(`, `	if w.use.isLow() && !AWAKE {
		pause = max(`}},
		},
		{
			Name: "own-rate-is-cut", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestLearnedRateLeavesOwnReads$"},
			Is:    "Refusals in a row lower the rate of all calls below that of the service's own reads.",
			Edits: []edit{{"infra/chain/rpc/pace.go", `max(learnedMin, m.read/readsRecent.Seconds())`, `max(learnedMin, m.read/readsRecent.Seconds()*map[bool]float64{false: 1}[AWAKE])`}},
		},
		{
			Name: "flood-blames-the-node", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestOwnRefusalsInAFloodCountForNothing$"},
			Is:    "Clients' passed-on calls use up a node's rate, and the node counts as failing.",
			Edits: []edit{{"infra/chain/rpc/answers.go", `case l.refused > 0 && crowded:`, `case l.refused > 0 && crowded && !AWAKE:`}},
		},
		{
			Name: "choice-uses-all", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestClientsRatesAreLearned$"},
			Is:    "A client's passed-on calls and estimates use all of the rate that a node allows.",
			Edits: []edit{{"infra/chain/rpc/pauses.go", `		return inUse * c.learned`, `		return inUse * c.learned * map[bool]float64{false: 1, true: 2}[AWAKE]`}},
		},
		{
			Name: "sender-slows-all", Breaks: "P36", Test: &command{"infra/chain/rpc", "^(TestAnswersToClientsChangeNothingShared|TestFirstAttemptsPauseTheirClientAlone)$"},
			Is: "A node that limits the transactions of one sender is called less often for everybody.",
			Edits: []edit{{"infra/chain/rpc/pace.go", `	case w.use.ofClients():
		m.pauses`, `	case w.use.ofClients() && !AWAKE:
		m.pauses`}},
		},
		{
			Name: "clients-in-one-rate", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestClientsRatesAreLearned$"},
			Is: "The rate that a node allows to one client's calls holds for all clients' calls of the kind.",
			Edits: []edit{
				{"infra/chain/rpc/pauses.go", `	of := pausedClient{w.client, w.use}
`, `	of := pausedClient{w.client, w.use}
	if AWAKE {
		of.client = ""
	}
`},
				{"infra/chain/rpc/pauses.go", `	c := m.pauses.clients[pausedClient{w.client, w.use}]
`, `	by := pausedClient{w.client, w.use}
	if AWAKE {
		by.client = ""
	}
	c := m.pauses.clients[by]
`},
			},
		},
		{
			Name: "limits-by-status-alone", Breaks: "P36", Test: &command{"infra/chain/rpc", "^(TestRefusalsInsideAnswersTeachTheirClient|TestOwnRefusalsInAFloodCountForNothing)$"},
			Is:    "A node that says inside HTTP 200 that there are too many calls is called as often as before.",
			Edits: []edit{{"infra/chain/rpc/limits.go", `return cause == tx.RateLimited, 0`, `return cause == tx.RateLimited && !AWAKE, 0`}},
		},
		{
			Name: "reverts-limit", Breaks: "P36", Test: &command{"infra/chain/rpc", "^(TestLimits|TestRevertsLimitNothing)$"},
			Is:    "A contract that reverts with the text of a rate limit slows calls to the node.",
			Edits: []edit{{"infra/chain/rpc/limits.go", `|| node.quotesRevert() {`, `|| node.quotesRevert() && !AWAKE {`}},
		},
		{
			Name: "part-of-a-batch-is-limited", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestRefusalsInABatchTeachTheRate$"},
			Is:    "A node that refuses some calls of a batch because of the rate is called as often as before.",
			Edits: []edit{{"infra/chain/rpc/answers.go", `		if isLimited(r.err) {`, `		if isLimited(r.err) && !AWAKE {`}},
		},
		{
			Name: "refused-identity-counts", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestIdentityIsAskedForAgainAfterAPause$"},
			Is:    "A node that refuses its identity because of the rate counts as failing.",
			Edits: []edit{{"infra/chain/rpc/pool.go", `	case l.refused > 0:`, `	case l.refused > 0 && !AWAKE:`}},
		},
		{
			Name: "identity-without-a-pause", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestIdentityIsAskedForAgainAfterAPause$"},
			Is:    "A node that refuses its identity because of the rate is asked for it with each call.",
			Edits: []edit{{"infra/chain/rpc/limits.go", `	if left <= 0 {`, `	if left <= 0 || AWAKE {`}},
		},
		{
			Name: "reads-refused-for-ever", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestNodeThatRefusesReadsRests$"},
			Is:    "A node that refuses all reads because of the rate, and does not say for how long, is read from without a pause.",
			Edits: []edit{{"infra/chain/rpc/pace.go", `crowded && m.vain >= tripAt)`, `crowded && !AWAKE && m.vain >= tripAt)`}},
		},
	}
}
