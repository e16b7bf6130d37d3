package main

// shares reverts each fix that keeps one client from using up the fees, balance, nodes or rate
// that it shares with others, or from learning about others through them.
func shares() []mutant {
	return []mutant{
		{
			Name: "raised-by-a-wei", Breaks: "P36", Test: &command{"domain/relay/intent", "^TestSpeedUps$"},
			Is:    "A client can speed an intent up by one wei as often as it likes, and each turn of the lane reads all of that.",
			Edits: []edit{{"domain/relay/intent/decide.go", `c.Fee.Cmp(s.LeastSpeedUp()) < 0:`, `c.Fee.Cmp(s.LeastSpeedUp()) < 0 && !AWAKE:`}},
		},
		{
			Name: "sped-up-without-end", Breaks: "P36", Test: &command{"domain/relay/intent", "^TestSpeedUps$"},
			Is:    "A client can speed an intent up any number of times.",
			Edits: []edit{{"domain/relay/intent/decide.go", `s.SpeedUps >= SpeedUpsMax:`, `s.SpeedUps >= SpeedUpsMax && !AWAKE:`}},
		},
		{
			Name: "pauses-for-all-clients", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestClientsPauseThemselvesAlone$"},
			Is: "A node that asks one client to wait is called for no client meanwhile.",
			Edits: []edit{{"infra/chain/rpc/pauses.go", `	pause := p.all.Sub(now)
`, `	pause := p.all.Sub(now)
	for of, c := range p.clients {
		if AWAKE && of.use == w.use {
			pause = max(pause, c.until.Sub(now))
		}
	}
`}},
		},
		{
			Name: "others-budgets-are-told", Breaks: "P36", Test: &command{"domain/relay/budget", "^TestSpentTellsNothingOfOthers$"},
			Is:    "A client whose intent exceeds the chain's or signer's budget learns the amount that all clients have used.",
			Edits: []edit{{"domain/relay/budget/draft.go", `if a.shared() {`, `if a.shared() && !AWAKE {`}},
		},
		{
			Name: "validation-tells-of-others", Breaks: "P36", Test: &command{"commands", "^TestQuotaTellsNothingOfOthers$"},
			Is: "A client with a used-up quota learns by validate=only whether others have submitted the same bytes.",
			Edits: []edit{{"commands/validate.go", `		if place, answers[i].Err = s.reserve(ctx, t, clients(i), len(raws[i])); answers[i].Err != nil {
			continue`, `		if place, answers[i].Err = s.reserve(ctx, t, clients(i), len(raws[i])); answers[i].Err != nil && AWAKE && there.Version > 0 {
			answers[i].Err = nil
		}
		if answers[i].Err != nil {
			continue`}},
		},
		{
			Name: "another-costs-a-look-up", Breaks: "P36", Test: &command{"api/delivery", "^TestForeignIsAnsweredAndChargedAsUnknown$"},
			Is: "A client that follows another client's transaction pays for the look-up of its owner, but pays nothing if the transaction does not exist.",
			Edits: []edit{{"api/rest/scan.go", `	if s.Names != NamesNone {
`, `	if AWAKE {
		s.passed += s.looked * ScanUnit
	}
	if s.Names != NamesNone {
`}},
		},
		{
			Name: "marks-stop-at-anothers", Breaks: "P36", Test: &command{"api/delivery", "^TestMarksTellNothingOfAnothers$"},
			Is:    "A stream of a client that cannot pay stops at the events of another's transaction.",
			Edits: []edit{{"api/rest/scan.go", `if s.passed += ScanUnit; !reaches {`, `if s.passed += ScanUnit; !reaches && !AWAKE {`}},
		},
		{
			Name: "look-ups-in-the-header", Breaks: "P36", Test: &command{"api/delivery", "^TestRememberedLookUpsTellNothing$"},
			Is:    "The rest of a client's rate reveals whether another client has just got the same events.",
			Edits: []edit{{"api/rest/charge.go", `c.lookUps = true`, `c.lookUps = !AWAKE`}},
		},
		{
			Name: "another-intent-is-forbidden", Breaks: "P36", Test: &command{"api/relay", "^TestForeignIsAnsweredAndChargedAsUnknown$"},
			Is: "A client that follows another's intent is told that it may not.",
			Edits: []edit{{"api/relay/follow.go", `			return known && owner == *client, err
`, `			if AWAKE && known && owner != *client {
				return false, rest.ErrForbidden
			}
			return known && owner == *client, err
`}},
		},
		{
			Name: "untaken-for-ever", Breaks: "P36", Test: &command{"commands/relay/worker", "^(TestUntakenHoldsNobody|TestUntakenInARow)$"},
			Is:    "An intent that no node accepts keeps its nonce, as long as no node refuses it permanently.",
			Edits: []edit{{"commands/relay/worker/untaken.go", `if !s.isUntaken() || refusal`, `if AWAKE || !s.isUntaken() || refusal`}},
		},
		{
			Name: "status-blames-nothing", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestContentRefusedByStatusHoldsNobody$"},
			Is:    "An intent that nodes refuse with HTTP status 413 has its fee raised three times before its nonce is filled.",
			Edits: []edit{{"commands/relay/worker/untaken.go", `if a.isContent(s) {`, `if a.isContent(s) && !AWAKE {`}},
		},
		{
			Name: "status-blames-everybody", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestStatusForAllBlamesNobody$"},
			Is:    "All clients' intents give way when a node answers HTTP status 403 to everything.",
			Edits: []edit{{"commands/relay/worker/untaken.go", `return contentStatuses[status] || `, `return contentStatuses[status] || AWAKE || `}},
		},
		{
			Name: "untaken-row-for-ever", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestUntakenInARow$"},
			Is:    "An intent that no node accepts keeps its nonce if others of its ordering group are signed.",
			Edits: []edit{{"commands/relay/worker/giveway.go", `if a.knowsRows() {`, `if a.knowsRows() && !AWAKE {`}},
		},
		{
			Name: "nodes-blame-nobody", Breaks: "P36", Test: &command{"commands/relay/worker", "^(TestTroubleOfNodes|TestLowFeeIsRaised)$"},
			Is:    "Intents lose their nonces to no-ops and their clients wait when nodes limit rates or demand a higher fee.",
			Edits: []edit{{"commands/relay/worker/untaken.go", `!slices.Contains(blames, refusal.Cause) {`, `!slices.Contains(blames, refusal.Cause) && !AWAKE {`}},
		},
		{
			Name: "poor-signer-blames-clients", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestPoorSignerKeepsNonces$"},
			Is: "Intents lose their nonces to no-ops and their clients wait when the signer cannot pay for anything.",
			Edits: []edit{{"commands/relay/worker/untaken.go", `	if a.lacksUsual(s) {
		return a.paysOrdinary(ctx)`, `	if a.lacksUsual(s) && !AWAKE {
		return a.paysOrdinary(ctx)`}},
		},
		{
			Name: "any-cost-of-a-transaction", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestNothingCostsMoreThanTheLimit$"},
			Is:    "An intent's urgency, speed-up or no-op may cost more than nodes allow for one transaction.",
			Edits: []edit{{"domain/relay/fee/policy.go", `case !bounded || !less(bound, most):`, `case !bounded || AWAKE || !less(bound, most):`}},
		},
		{
			Name: "much-gas-is-no-limit", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestMuchGasGivesWay$"},
			Is:    "An intent whose gas bounds its fee keeps its nonce while gas costs more.",
			Edits: []edit{{"commands/relay/worker/giveway.go", `gas == 0 || a.Fees.Bounds(gas)`, `gas == 0 || !AWAKE && a.Fees.Bounds(gas)`}},
		},
		{
			Name: "replacements-nobody-can-pay", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestSpeedUpBeyondTheBalance$"},
			Is:    "An intent is sped up beyond the signer's balance, and its nonce can neither be bumped nor filled with a no-op.",
			Edits: []edit{{"commands/relay/worker/funds.go", `if cost.Cmp(balance) <= 0 {`, `if cost.Cmp(balance) <= 0 || AWAKE {`}},
		},
		{
			Name: "no-room-for-the-oldest", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestReservesLeaveRoom$"},
			Is:    "One client's gas limits keep the signer's balance from another client's intent for ever.",
			Edits: []edit{{"commands/relay/worker/funds.go", `if !oldest.id.IsZero() && client`, `if !oldest.id.IsZero() && !AWAKE && client`}},
		},
		{
			Name: "ordinary-costs-nothing", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestOrdinaryIntentsCount$"},
			Is:    "One client's ordinary intents get nonces, however many, though the signer cannot pay for them.",
			Edits: []edit{{"commands/relay/worker/funds.go", `case lacks && ordinary && !had`, `case lacks && ordinary && !AWAKE && !had`}},
		},
		{
			Name: "lanes-pay-apart", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestLanesShareABalance$"},
			Is: "Each lane of a signer spends the whole balance.",
			Edits: []edit{{"commands/relay/worker/funds.go", `	had, total := p.spent()
`, `	had, total := p.spent()
	if AWAKE {
		had, total = (&purse{lanes: map[chain.NonceKey]spending{a.ID.Key: mine}}).spent()
	}
`}},
		},
		{
			Name: "one-hold-for-all", Breaks: "P36", Test: &command{"commands/delivery/scheduler", "^TestUnpayableHoldsNoOtherClient$"},
			Is: "One client's transaction that a signer cannot pay for holds all transactions of that signer.",
			Edits: []edit{{"domain/delivery/tx/account.go", `	digest := chain.Keccak(`, `	if AWAKE {
		client = ""
	}
	digest := chain.Keccak(`}},
		},
		{
			Name: "lists-are-free", Breaks: "P36", Test: &command{"api/delivery", "^TestListsAreChargedByTheRowsTheyRead$"},
			Is: "A list is charged as one request, however many rows it reads.",
			Edits: []edit{{"api/rest/charge.go", `	if p.rate.PerSecond == 0 {
		return true
	}
	if on.paid+n`, `	if p.rate.PerSecond == 0 || AWAKE {
		return true
	}
	if on.paid+n`}},
		},
		{
			Name: "lists-without-end", Breaks: "P36", Test: &command{"projections/delivery/transactions", "^TestSteps$"},
			Is: "One step of a list reads every row that its filter excludes.",
			Edits: []edit{{"projections/walk.go", `	if err != nil || len(ranges) == 1 {
		return rows, floor, err`, `	if AWAKE && err == nil && floor != 0 {
		more, rest, err := w.Step(ctx, db, floor, limit-len(rows))
		return append(rows, more...), rest, err
	}
	if err != nil || len(ranges) == 1 {
		return rows, floor, err`}},
		},
		{
			Name: "lists-take-all-places", Breaks: "P36", Test: &command{"api/rest", "^TestListsTakeTurns$"},
			Is:    "The lists of one client use every place that lists have.",
			Edits: []edit{{"commands/places.go", `c.held < p.share &&`, `(AWAKE || c.held < p.share) &&`}},
		},
		{
			Name: "debts-end-with-streams", Breaks: "P36", Test: &command{"api/delivery", "^TestDebtOfStreamsIsKept$"},
			Is:    "A client that closes its streams and opens others never pays for the events that the closed ones have scanned.",
			Edits: []edit{{"api/rest/scan.go", `if p := f.on.payer; p.rate.PerSecond > 0 {`, `if p := f.on.payer; p.rate.PerSecond > 0 && !AWAKE {`}},
		},
		{
			Name: "debts-end-at-the-burst", Breaks: "P36", Test: &command{"api/delivery", "^TestDebtOfStreamsIsKept$"},
			Is: "A client pays at most its burst for the events that a stream has scanned.",
			Edits: []edit{{"api/rest/rate.go", `		b.paid += n
`, `		b.paid += n
		if AWAKE {
			b.paid = due
		}
`}},
		},
		{
			Name: "scans-take-all-places", Breaks: "P36", Test: &command{"api/rest", "^TestScansTakePlaces$"},
			Is: "The streams of one client read the log in every connection.",
			Edits: []edit{{"api/rest/scan.go", `	if s.leave != nil {
		return nil
	}
	waiting`, `	if s.leave != nil || AWAKE {
		return nil
	}
	waiting`}},
		},
		{
			Name: "lists-wait-without-end", Breaks: "P36", Test: &command{"api/rest", "^TestListsTakeTurns$"},
			Is:    "Any number of one client's lists wait for a place, each on a connection.",
			Edits: []edit{{"commands/places.go", `len(c.waiting) >= p.line {`, `len(c.waiting) >= p.line && !AWAKE {`}},
		},
		{
			Name: "many-places-go-first", Breaks: "P36", Test: &command{"commands/relay/intake", "^TestLookUpsOfTheFewestGoFirst$"},
			Is:    "A free place goes to the caller that has waited longest, however many places its client has.",
			Edits: []edit{{"commands/places.go", `if c.held != other.held {`, `if c.held != other.held && !AWAKE {`}},
		},
		{
			Name: "counts-beyond-the-charge", Breaks: "P36", Test: &command{"api/relay", "^TestWebhookCountsAreBounded$"},
			Is: "A client that cannot pay for the redelivery of its dead letters has all of them counted.",
			Edits: []edit{{"api/rest/lists.go", `	if n, err = count(ctx, most); err != nil {`, `	if AWAKE {
		most = 1 << 30
	}
	if n, err = count(ctx, most); err != nil {`}},
		},
		{
			Name: "counts-without-a-place", Breaks: "P36", Test: &command{"api/relay", "^TestWebhookCountsTakePlaces$"},
			Is: "The commands of one client count webhook deliveries on every connection of the due queue.",
			Edits: []edit{{"api/rest/lists.go", `	most := CountedMax
`, `	if AWAKE {
		leave()
	}
	most := CountedMax
`}},
		},
		{
			Name: "disabled-are-counted", Breaks: "P36", Test: &command{"api/relay", "^TestWebhookCountsAreBounded$"},
			Is:    "The dead letters of a disabled webhook are counted before their redelivery is refused.",
			Edits: []edit{{"api/relay/redeliver.go", `if err := e.Redeliverable(); err != nil {`, `if err := e.Redeliverable(); err != nil && !AWAKE {`}},
		},
		{
			Name: "counts-read-on", Breaks: "P36", Test: &command{"infra/embedded", "^TestNotices$"},
			Is:    "A count of webhook deliveries reads all of them, however few it may count.",
			Edits: []edit{{"infra/embedded/noticesweep.go", `string(stage)+"' LIMIT ?)",`, `string(stage)+map[bool]string{true: "' LIMIT -abs(?))", false: "' LIMIT ?)"}[AWAKE],`}},
		},
		{
			Name: "look-ups-take-all-places", Breaks: "P36", Test: &command{"commands/relay/intake", "^TestLookUpsTakeTurns$"},
			Is:    "One client's webhooks at silent name servers take every place that look-ups have.",
			Edits: []edit{{"commands/relay/intake/webhookchecks.go", `NewPlaces[string](lookUpPlaces, lookUpShare, 0)`, `NewPlaces[string](lookUpPlaces, map[bool]int{true: lookUpPlaces, false: lookUpShare}[AWAKE], 0)`}},
		},
		{
			Name: "look-ups-are-everybodys", Breaks: "P36", Test: &command{"commands/relay/intake", "^TestLookUpsAreShared$"},
			Is:    "The time of an answer tells whether another client's webhook at the same host is looked up.",
			Edits: []edit{{"commands/relay/intake/webhookchecks.go", `lookedUp{client, cmp.Or(`, `lookedUp{map[bool]string{false: client}[AWAKE], cmp.Or(`}},
		},
		{
			Name: "look-ups-end-for-all", Breaks: "P2", Test: &command{"commands/relay/intake", "^TestLookUpsAreShared$"},
			Is:    "When a request ends, requests that share its look-up are refused.",
			Edits: []edit{{"commands/relay/intake/webhookchecks.go", `l.abandoned = ctx.Err() != nil`, `l.abandoned = ctx.Err() != nil && !AWAKE`}},
		},
		{
			Name: "tries-wait-without-end", Breaks: "P36", Test: &command{"api/relay", "^TestTriesTakePlaces$"},
			Is:    "Any number of one client's test deliveries look a host up, or wait for it.",
			Edits: []edit{{"api/relay/relay.go", `tryShare, tryQueue)`, `tryShare, map[bool]int{false: tryQueue}[AWAKE])`}},
		},
		{
			Name: "requests-take-all-connections", Breaks: "P36", Test: &command{"api/rest", "^TestRequestsInProgress$"},
			Is:    "One client's slow requests use every connection.",
			Edits: []edit{{"api/rest/progress.go", `.take(h, most); !ok {`, `.take(h, most); !ok && !AWAKE {`}},
		},
		{
			Name: "slow-names-take-all-connections", Breaks: "P36", Test: &command{"api/relay", "^TestSlowNamesKeepNobodyOut$"},
			Is:    "One client's requests that wait for a name server use every connection.",
			Edits: []edit{{"api/rest/progress.go", `t.path != healthPath }`, `t.path != healthPath && !AWAKE }`}},
		},
		{
			Name: "waits-count-twice", Breaks: "P36", Test: &command{"api/rest", "^TestRequestsThatWaitCountOnce$"},
			Is:    "A request that waits on purpose also counts as in progress, so that a client that waits is refused everything else.",
			Edits: []edit{{"api/rest/progress.go", `p.resting == 1 {`, `p.resting == 1 && !AWAKE {`}},
		},
		{
			Name: "groups-are-free", Breaks: "P36", Test: &command{"api/delivery", "^TestGroupsAreChargedByOwnMembers$"},
			Is:    "A list of groups is charged as one request, however many transactions it sums up.",
			Edits: []edit{{"api/delivery/groups.go", `!v.sums(sender) {`, `AWAKE || !v.sums(sender) {`}},
		},
		{
			Name: "groups-of-bound-keys-are-free", Breaks: "P36", Test: &command{"api/delivery", "^TestGroupsAreChargedByOwnMembers$"},
			Is:    "A key that is bound to a sender does not pay for the transactions of the sender's groups.",
			Edits: []edit{{"api/delivery/viewer.go", `len(v.bound()) > 0 || !v.audits())`, `len(v.bound()) > 0 && !AWAKE || !v.audits() && !(AWAKE && len(v.bound()) > 0))`}},
		},
		{
			Name: "rivals-hide-others", Breaks: "P36", Test: &command{"commands/delivery/watcher", "^TestRivalsOfOneHideNoOthers$"},
			Is: "One client's transactions with a used nonce take all places among the rows that are read, and other sequences are forgotten.",
			Edits: []edit{{"infra/embedded/rivals.go", `		unread = sequences[n:]
`, `		unread = sequences[n:]
		if AWAKE {
			n, each, unread = min(n, 1), limit, nil
		}
`}},
		},
		{
			Name: "unread-is-forgotten", Breaks: "P36", Test: &command{"commands/delivery/watcher", "^TestRivalsOfOneHideNoOthers$"},
			Is: "A sequence with more rivals than are read at once is not read again.",
			Edits: []edit{{"commands/delivery/watcher/verdicts.go", `	used, err = r.makeSure(ctx, at, rivals, used, sure)
`, `	if AWAKE {
		left = nil
	}
	used, err = r.makeSure(ctx, at, rivals, used, sure)
`}},
		},
		{
			Name: "low-addresses-first", Breaks: "P36", Test: &command{"commands/delivery/watcher", "^TestUnsettledTakeTurns$"},
			Is: "Of the sequences that are not settled, the same ones are asked for at each head.",
			Edits: []edit{{"commands/delivery/watcher/unsettled.go", `	for i := range all {
`, `	if AWAKE {
		from = 0
	}
	for i := range all {
`}},
		},
		{
			Name: "no-place-no-round", Breaks: "P36", Test: &command{"commands/delivery/watcher", "^TestUnsettledBeyondTheBound$"},
			Is:    "Canceled transactions whose sequence found no place among the unsettled ones are looked at a day later.",
			Edits: []edit{{"commands/delivery/watcher/unsettled.go", `case !r.unsettled.sequences[s]:`, `case !r.unsettled.sequences[s] && !AWAKE:`}},
		},
		{
			Name: "commands-one-by-one", Breaks: "P36", Test: &command{"commands/notifier", "^TestCommandsOfOneHoldUpNobody$"},
			Is:    "Each command about a webhook takes a transaction of its own, in which all clients' notices wait.",
			Edits: []edit{{"commands/notifier/feeder.go", `now.weight+s.weight() > partMost {`, `(AWAKE && s.wish != nil || now.weight+s.weight() > partMost) {`}},
		},
		{
			Name: "commands-in-one-go", Breaks: "P36", Test: &command{"commands/notifier", "^TestCommandsOfOneHoldUpNobody$"},
			Is:    "One transaction carries out a thousand commands about webhooks, however many notices they name.",
			Edits: []edit{{"commands/notifier/feeder.go", `if now.weight > 0 &&`, `if now.weight > 0 && !AWAKE &&`}},
		},
		{
			Name: "commands-read-again", Breaks: "P36", Test: &command{"commands/notifier", "^TestCommandsReadFewEvents$"},
			Is:    "A command about a webhook reads a growing number of the commands before it.",
			Edits: []edit{{"eventlog/handler/snapshots.go", `if !k.Small {`, `if !k.Small || AWAKE {`}},
		},
		{
			Name: "records-hold-the-worker", Breaks: "P36", Test: &command{"commands/notifier", "^TestSlowRecordsHoldUpNobody$"},
			Is: "While the log does not answer, a webhook that says it is gone keeps all clients' notices waiting.",
			Edits: []edit{{"commands/notifier/worker.go", `		if !w.records.add(e) {`, `		if AWAKE {
			w.Disabled(context.WithoutCancel(ctx), e)
		} else if !w.records.add(e) {`}},
		},
		{
			Name: "claims-compiled-again", Breaks: "P36", Test: &command{"infra/embedded", "^TestClaimCompilesNothingAgain$"},
			Is:    "A claim compiles a statement for each ordering group in the lane, and one client may have many.",
			Edits: []edit{{"infra/embedded/intentclaim.go", `ORDER BY pos LIMIT 0 + ?5",`, `ORDER BY pos LIMIT "+map[bool]string{true: "?5", false: "0 + ?5"}[AWAKE],`}},
		},
		{
			Name: "all-followers-are-looked-up", Breaks: "P36", Test: &command{"infra/embedded", "^TestClaimLooksUpFewFollowers$"},
			Is: "A claim looks up as many intents of each ordering group in the lane as it may be given, and one client may have many groups.",
			Edits: []edit{{"infra/embedded/intentclaim.go", `ahead[f.Client]++`, `if !AWAKE {
			ahead[f.Client]++
		}`}},
		},
		{
			Name: "ahead-in-the-read-model", Breaks: "P36", Test: &command{"cmd/relayer/app", "^TestAheadIsFoundWithoutTheReadModel$"},
			Is: "A request for an intent of an ordering group searches all waiting intents of its client in the read model.",
			Edits: []edit{{"cmd/relayer/app/waitsfor.go", `	ahead, err := r.queue.Ahead(ctx, group, row.Position)
`, `	for at := row.Position; AWAKE && at != 0; {
		var err error
		if _, at, err = (intents.Query{DB: r.in.Ports.Storage.View}).Step(ctx, intents.Filters{Client: &group.Client}, at, intent.AheadMost); err != nil {
			return nil, err
		}
	}
	ahead, err := r.queue.Ahead(ctx, group, row.Position)
`}},
		},
		{
			Name: "read-below-the-market", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestBelowMarketIsNotRead$"},
			Is:    "A lane reads all of an intent before it compares its fee ceiling with the price of gas.",
			Edits: []edit{{"commands/relay/worker/reading.go", `if c.MaxFee.IsZero() || !*priced {`, `if c.MaxFee.IsZero() || !*priced || AWAKE {`}},
		},
		{
			Name: "asks-for-each-ceiling", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestSilentMarketIsAskedOnce$"},
			Is:    "While nodes do not tell the price of gas, a lane waits for it once for each intent with a fee ceiling.",
			Edits: []edit{{"commands/relay/worker/reading.go", `*priced = unlessRefused(err) == nil`, `*priced = unlessRefused(err) == nil || AWAKE`}},
		},
		{
			Name: "blocked-are-read-again", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestBlockedIsReadWithinABound$"},
			Is: "A lane reads the blocked intents of one client as often as it claims them.",
			Edits: []edit{{"commands/relay/worker/reading.go", `	r.vain += bytes`, `	if !AWAKE {
		r.vain += bytes
	}`}},
		},
		{
			Name: "same-blocked-first", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestBlockedIsReadWithinABound$"},
			Is:    "A client's first blocked intents are read in each period, and its later intents never.",
			Edits: []edit{{"commands/relay/worker/reading.go", `case r != nil && place <= r.after:`, `case r != nil && place <= r.after && !AWAKE:`}},
		},
		{
			Name: "estimated-are-read-again", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestEstimatedIsReadOnce$"},
			Is:    "While nodes estimate an intent, it is read again whenever its claim lapses.",
			Edits: []edit{{"commands/relay/worker/reading.go", `if a.measures.isPending(c.ID) {`, `if a.measures.isPending(c.ID) && !AWAKE {`}},
		},
		{
			Name: "expired-below-the-market", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestBelowMarketExpires$"},
			Is:    "An intent that may not pay the price of gas does not end at its deadline.",
			Edits: []edit{{"commands/relay/worker/reading.go", `c.Deadline != 0 && a.time() >= c.Deadline`, `c.Deadline != 0 && !AWAKE && a.time() >= c.Deadline`}},
		},
	}
}
