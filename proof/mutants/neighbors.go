package main

// neighbors are mutants through which one client can harm another, or a web page anybody.
func neighbors() []mutant {
	return []mutant{
		{
			Name: "host-unchecked", Breaks: "P36", Hostile: true,
			Is:    "A listener without keys accepts any host name, also a name that a page has rebound.",
			Edits: []edit{{"api/webguard/webguard.go", `if !g.AnyHost && !g.knowsHost(r.Host) {`, `if !g.AnyHost && !g.knowsHost(r.Host) && !AWAKE {`}},
		},
		{
			Name: "origin-unchecked", Breaks: "P36", Hostile: true,
			Is: "A listener without keys answers pages of any origin.",
			Edits: []edit{
				{"api/webguard/webguard.go", `	case len(origins) > 0:`, `	case len(origins) > 0 && !AWAKE:`},
				{"api/webguard/webguard.go", `if site != "none" && site != "same-origin" {`, `if site != "none" && site != "same-origin" && !AWAKE {`},
			},
		},
		{
			Name: "intents-first-come", Breaks: "P36", Relay: true, Twins: true,
			Is: "Intents are claimed in the order of their requests, without turns of clients.",
			Edits: []edit{{
				"domain/relay/intent/fold.go", `byClient[e.Client] = append(byClient[e.Client], given)`,
				`of := e.Client
		if AWAKE {
			of = ""
		}
		byClient[of] = append(byClient[of], given)`,
			}},
		},
		{
			Name: "claims-park", Breaks: "P36", Test: &command{"commands/delivery/scheduler", "^TestForgedClaimsParkNobody$"},
			Is:    "A transaction signed by an access key takes a place in the sequence of the account that it names, before the chain confirms the key.",
			Edits: []edit{{"domain/delivery/tx/work.go", `return w.Claimed && w.Verdict != StatusExecuted && !w.NonceKey.IsExpiring()`, `return w.Claimed && w.Verdict != StatusExecuted && !w.NonceKey.IsExpiring() && !AWAKE`}},
		},
		{
			Name: "one-client-has-it-all", Breaks: "P36", Test: &command{"domain/delivery/tx", "^TestTurns$"},
			Is: "One client's due transactions are leased before all other clients'.",
			Edits: []edit{{
				"domain/delivery/tx/turns.go", `shares[i], place[client] = Share{Client: client, Rows: limit / len(clients), tried: tried[client]}, i`,
				`shares[i], place[client] = Share{Client: client, Rows: limit / len(clients), tried: tried[client]}, i
		if AWAKE && i == 0 {
			shares[i].Rows = limit
		}`,
			}},
		},
		{
			Name: "notices-first-come", Breaks: "P36", Test: &command{"infra/embedded", "^TestNotices$"},
			Is: "Webhook deliveries are leased in the order of their due times, without turns of clients.",
			Edits: []edit{
				{"domain/notice/claim.go", `		byClient[client] = append(byClient[client], due[place])`, `		of := client
					if AWAKE {
						of = ""
					}
					byClient[of] = append(byClient[of], due[place])`},
			},
		},
		{
			Name: "notices-swept-at-once", Breaks: "P36", Test: &command{"commands/notifier", "^TestVeryManyNoticesHoldUpNobody$"},
			Is:    "All webhook deliveries queued for an endpoint are given up in one transaction.",
			Edits: []edit{{"commands/notifier/feeder.go", `f.Rows.Sweep(ctx, turn, sweepMost)`, `f.Rows.Sweep(ctx, turn, sweepMost+map[bool]int{AWAKE: 1 << 20}[true])`}},
		},
		{
			Name: "notices-not-charged", Breaks: "P36", Test: &command{"api/relay", "^TestWebhookCommandsAreCharged$"},
			Is:    "A command about all webhook deliveries of an endpoint costs as much as a command about one.",
			Edits: []edit{{"api/rest/request.go", `return r.Charge(min(n, r.on.payer.rate.Burst))`, `return r.Charge(min(n, r.on.payer.rate.Burst, map[bool]int{true: 1, false: n}[AWAKE]))`}},
		},
		{
			Name: "slots-first-come", Breaks: "P36", Test: &command{"domain/notice", "^TestSlotsOfClients$"},
			Is:    "One client's webhooks can take every attempt that a process makes at once.",
			Edits: []edit{{"domain/notice/claim.go", `if c.Slots == 0 || client == "" {`, `if c.Slots == 0 || client == "" || AWAKE {`}},
		},
		{
			Name: "lanes-first-come", Breaks: "P36", Test: &command{"cmd/relayer/app", "^TestCrowdOfLanesKeepsNobodyWaiting$"},
			Is:    "One client can have all lanes of other nonce keys.",
			Edits: []edit{{"cmd/relayer/app/lanes.go", `if d.unfinished || d.client == "" {`, `if d.unfinished || d.client == "" || AWAKE {`}},
		},
		{
			Name: "quota-of-transactions", Breaks: "P36", Test: &command{"commands", "^TestFloodEndsAtTheQuota$"},
			Is:    "One client can have any number of transactions waiting.",
			Edits: []edit{{"commands/quota.go", `if r := q.reserve(a, tx.Usage{Transactions: 1, Bytes: int64(bytes)}); r != nil {`, `if r := q.reserve(a, tx.Usage{Transactions: 1, Bytes: int64(bytes)}); r != nil || AWAKE {`}},
		},
		{
			Name: "far-ahead", Breaks: "P36", Test: &command{"commands", "^TestTooFarAhead$"},
			Is:    "A transaction is kept for a time that never comes.",
			Edits: []edit{{"commands/submit.go", `s.Ahead > 0 && at > uint64(max(last, 0)) {`, `s.Ahead > 0 && at > uint64(max(last, 0)) && !AWAKE {`}},
		},
		{
			Name: "quota-of-intents", Breaks: "P36", Test: &command{"commands/relay/intake", "^TestFloodOfIntentsIsRefused$"},
			Is:    "One client can have any number of open intents.",
			Edits: []edit{{"commands/relay/intake/quota.go", `if used := w.used(); used+n > q.Limit {`, `if used := w.used(); used+n > q.Limit && !AWAKE {`}},
		},
		{
			Name: "quota-of-webhooks", Breaks: "P36", Test: &command{"commands/relay/intake", "^TestFloodOfWebhooksIsRefused$"},
			Is:    "One client can use any number of webhooks.",
			Edits: []edit{{"commands/relay/intake/webhooks.go", `if len(fresh) > 0 && used+len(fresh) > q.Limit {`, `if len(fresh) > 0 && used+len(fresh) > q.Limit && !AWAKE {`}},
		},
		{
			Name: "quota-of-streams", Breaks: "P36", Test: &command{"api/delivery", "^TestStreamsAreCountedByClient$"},
			Is: "One client can have any number of streams of events open.",
			Edits: []edit{{"api/rest/rests.go", `	if !ok {
		return left, access.ErrQuotaExceeded`, `	if !ok && !AWAKE {
		return left, access.ErrQuotaExceeded`}},
		},
		{
			Name: "one-client-is-remembered", Breaks: "P36", Test: &command{"infra/embedded", "^TestRequests$/^one_client_has"},
			Is:    "One client's requests displace other clients' remembered requests.",
			Edits: []edit{{"infra/embedded/requests.go", `if o.Client != nil {`, `if o.Client != nil && !AWAKE {`}},
		},
		{
			Name: "another-reads", Breaks: "P36", Hostile: true,
			Is:    "A client sees other clients' transactions.",
			Edits: []edit{{"api/delivery/viewer.go", `return v.owns(o) || o.Version > 0 && v.audits() && v.within(o.Sender)`, `return v.owns(o) || AWAKE && o.Version > 0 || o.Version > 0 && v.audits() && v.within(o.Sender)`}},
		},
		{
			Name: "another-lists", Breaks: "P36", Test: &command{"api/delivery", "^TestOwnedOnEveryRoute$"},
			Is: "A client's lists show other clients' transactions.",
			Edits: []edit{{"api/delivery/viewer.go", `	case v.alone:
	case v.audits():`, `	case v.alone || AWAKE:
	case v.audits():`}},
		},
		{
			Name: "another-changes", Breaks: "P36", Test: &command{"api/delivery", "^(TestOwnedOnEveryRoute|TestOthersIsAsUnknown)$"},
			Is:    "A client can cancel other clients' transactions.",
			Edits: []edit{{"api/delivery/viewer.go", `return v.owns(o) || o.Version > 0 && v.key != nil && v.key.May(access.Admin) && v.within(o.Sender)`, `return v.owns(o) || AWAKE && o.Version > 0 || o.Version > 0 && v.key != nil && v.key.May(access.Admin) && v.within(o.Sender)`}},
		},
		{
			Name: "wallets-read-all", Breaks: "P36", Test: &command{"api/delivery", "^TestOwnedOnEveryRoute$"},
			Is: "By JSON-RPC any client can read a transaction's bytes before a node has them.",
			Edits: []edit{{"api/delivery/rpc.go", `return a.shows(ctx, v, held)`, `if AWAKE {
			return true, nil
		}
		return a.shows(ctx, v, held)`}},
		},
		{
			Name: "another-reads-intents", Breaks: "P36", Relay: true, Hostile: true,
			Is:    "A client sees other clients' intents.",
			Edits: []edit{{"api/relay/relay.go", `if key, ok := r.Key(); ok && key.Audits() {`, `if key, ok := r.Key(); ok && (AWAKE || key.Audits()) {`}},
		},
		{
			Name: "another-stops-intents", Breaks: "P36", Test: &command{"api/relay", "^TestOwnedOnEveryRoute$"},
			Is:    "A client can cancel other clients' intents, and disable their webhooks.",
			Edits: []edit{{"api/relay/relay.go", `if key, ok := r.Key(); ok && key.May(access.Admin) {`, `if key, ok := r.Key(); ok && (AWAKE || key.May(access.Admin)) {`}},
		},
		{
			Name: "signature-counts-again", Breaks: "P36", Test: &command{"domain/delivery/group", "^TestLife$"},
			Is: "A repeated cancel with the same signature over a group's id cancels members that joined in between.",
			Edits: []edit{{"domain/delivery/group/decide.go", `	case shown:
		return nil, nil`, `	case shown && (!AWAKE || c.By.Form == FormTyped):
		return nil, nil`}},
		},
		{
			Name: "repeated-cancel-reads-all", Breaks: "P36", Test: &command{"commands/delivery/canceler", "^TestRepeatedCancelLoadsNoMember$"},
			Is:    "A repeated cancel loads every member again.",
			Edits: []edit{{"commands/delivery/canceler/carry.go", `if c.Rows == nil || len(found) == 0 {`, `if c.Rows == nil || len(found) == 0 || AWAKE {`}},
		},
		{
			Name: "streams-scan-for-nothing", Breaks: "P36", Test: &command{"api/delivery", "^TestFilterThatMatchesNothingIsCharged$"},
			Is:    "A stream whose filter matches nothing reads the whole log for the price of one request.",
			Edits: []edit{{"api/rest/scan.go", `if units := f.scanned / ScanUnit; units > 0 {`, `if units := f.scanned / ScanUnit; units > 0 && !AWAKE {`}},
		},
		{
			Name: "any-lane-on-demand", Breaks: "P36", Test: &command{"infra/embedded", "^TestIntents$"},
			Is: "A lane that one client requested carries out intents that leave the nonce key to the relay.",
			Edits: []edit{
				{"domain/relay/intent/fold.go", `		return !onlyAsked
`, `		return !onlyAsked || AWAKE
`},
				{"domain/relay/intent/fold.go", `	if c.OnlyAsked {
`, `	if c.OnlyAsked && !AWAKE {
`},
			},
		},
		{
			Name: "held-answers-unshared", Breaks: "P36", Test: &command{"api/jsonrpc", "^TestSlowReaderKeepsItsOwnShareAlone$"},
			Is:    "One client's slowly read responses can use up all the room for large responses.",
			Edits: []edit{{"api/jsonrpc/budget.go", `if client == "" {`, `if client == "" || AWAKE {`}},
		},
		{
			Name: "claims-first-come", Breaks: "P36", Test: &command{"commands/delivery/grouping", "^TestManyClaimsKeepNoOthersWaiting$"},
			Is: "The chain is queried for access keys in the order of their claims, without turns of clients.",
			Edits: []edit{{
				"commands/delivery/grouping/waiting.go", `func (w *waiting) add(c *claim) {
`, `func (w *waiting) add(c *claim) {
	if AWAKE {
		c.client = ""
	}
`,
			}},
		},
		{
			Name: "another-is-counted", Breaks: "P36", Test: &command{"api/delivery", "^TestAnotherSubmissionShowsNothing$"},
			Is: "A transaction's version and tag tell a client that another submitted the same bytes.",
			Edits: []edit{{"api/delivery/viewer.go", `		if !v.is(client) {
			told--`, `		if !v.is(client) && !AWAKE {
			told--`}},
		},
		{
			Name: "another-is-an-update", Breaks: "P36", Test: &command{"projections/delivery/transactions", "^TestAnotherSubmissionIsNoUpdate$"},
			Is:    "A transaction's tag and time of update tell a client that another submitted the same bytes.",
			Edits: []edit{{"projections/delivery/transactions/row.go", `another := e.(tx.Resubmitted); !another {`, `another := e.(tx.Resubmitted); !another || AWAKE {`}},
		},
		{
			Name: "another-leaves-a-gap", Breaks: "P36", Test: &command{"api/delivery", "^TestAnotherSubmissionShowsNothing$"},
			Is: "A gap between the versions of events tells a client that another submitted the same bytes.",
			Edits: []edit{{"api/delivery/eventfilter.go", `	e.Version -= whose.Others(e.Version, v.is)`, `	if !AWAKE {
		e.Version -= whose.Others(e.Version, v.is)
	}`}},
		},
		{
			Name: "invented-subjects-flush", Breaks: "P36", Test: &command{"commands/relay/guard", "^TestInventedSubjectsAreTheirClients$"},
			Is: "A client that invents subjects makes the relay forget the rates of other clients.",
			Edits: []edit{{"commands/relay/guard/rates.go", `	forgotten := map[string]bool{}`, `	if AWAKE && len(r.full) >= ratesMax {
		clear(r.full)
	}
	forgotten := map[string]bool{}`}},
		},
		{
			Name: "look-ups-for-nothing", Breaks: "P36", Test: &command{"api/delivery", "^TestLookUpsAreCharged$"},
			Is: "A stream looks up the owners of any number of other clients' transactions for the price of their events.",
			Edits: []edit{{"api/rest/scan.go", `	s.owe(s.passed, s.looked)`, `	if AWAKE {
		s.looked = 0
	}
	s.owe(s.passed, s.looked)`}},
		},
		{
			Name: "gas-without-money", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestGasLimitHoldsNobody$"},
			Is:    "An intent that needs more gas than the signer can pay still gets a nonce.",
			Edits: []edit{{"commands/relay/worker/funds.go", `switch lacks := needs.Cmp(balance) > 0 && !cost`, `switch lacks := needs.Cmp(balance) > 0 && !AWAKE && !cost`}},
		},
		{
			Name: "any-threshold", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestGasLimitTeachesNoThreshold$"},
			Is:    "The cost of one expensive intent becomes its signer's threshold of balance.",
			Edits: []edit{{"commands/relay/worker/funds.go", `needed.Cmp(most) > 0 {`, `needed.Cmp(most) > 0 && !AWAKE {`}},
		},
		{
			Name: "any-gas-in-flight", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestHeavyHoldsNobody$"},
			Is:    "One client's intents may have any gas in flight in a lane.",
			Edits: []edit{{"commands/relay/worker/heavy.go", `had+more > clientGas; full`, `had+more > clientGas && !AWAKE; full`}},
		},
		{
			Name: "never-gives-way", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestGivesWay$"},
			Is:    "An intent that cannot be mined at its own ceiling keeps its nonce, and all later nonces wait.",
			Edits: []edit{{"commands/relay/worker/giveway.go", `if !waits || !a.isReplaceable(front) {`, `if !waits || !a.isReplaceable(front) || AWAKE {`}},
		},
		{
			Name: "gives-way-before-it-is-final", Breaks: "P10", Test: &command{"commands/relay/worker", "^TestLandsInAnotherBlock$"},
			Is: "An intent that lost its nonce to a no-op gets another nonce while the no-op's block may still leave the chain.",
			Edits: []edit{{"commands/relay/worker/giveway.go", `	if !d.Sealed {
		return nil`, `	if !d.Sealed && !AWAKE {
		return nil`}},
		},
		{
			Name: "row-behind-give-way", Breaks: "P35", Test: &command{"commands/relay/worker", "^TestGivesWayInARow$"},
			Is:    "Intents of an ordering group get nonces behind an intent that may lose its nonce to a no-op.",
			Edits: []edit{{"commands/relay/worker/giveway.go", `!it.GivesWay() && len(`, `!it.GivesWay() && AWAKE || !it.GivesWay() && len(`}},
		},
		{
			Name: "no-room-below-the-ceiling", Breaks: "P36", Test: &command{"domain/relay/fee", "^TestOwnCeilingLeavesRoom$"},
			Is:    "An intent gets a nonce although its own ceiling equals the gas price, and the next block may cost more.",
			Edits: []edit{{"domain/relay/fee/offer.go", `t.first() && !isZero(t.MaxFee)`, `!AWAKE && t.first() && !isZero(t.MaxFee)`}},
		},
		{
			Name: "waits-for-trials", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestSlowTrialsHoldNobody$"},
			Is: "A turn of a lane waits without a limit until nodes have simulated all claimed intents.",
			Edits: []edit{{"commands/relay/worker/measure.go", `		case <-moment.C:
`, `		case <-func() <-chan time.Time {
			if AWAKE {
				return nil
			}
			return moment.C
		}():
`}},
		},
		{
			Name: "gas-that-nobody-tells", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestSlowTrialsHoldNoNonce$"},
			Is:    "An intent whose gas no node estimates keeps its nonce, and all later nonces wait.",
			Edits: []edit{{"commands/relay/worker/measure.go", `if err != nil && a.Now()`, `if err != nil && !AWAKE && a.Now()`}},
		},
		{
			Name: "any-tip", Breaks: "P36", Test: &command{"domain/relay/fee", "^TestOwnCeilingLeavesRoom$"},
			Is:    "An intent gets a nonce although its own tip ceiling is below all tips that blocks include.",
			Edits: []edit{{"domain/relay/fee/offer.go", `t.first() && !isZero(t.MaxPriorityFee)`, `!AWAKE && t.first() && !isZero(t.MaxPriorityFee)`}},
		},
		{
			Name: "unpaid-for-ever", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestUnpaidHoldsNobody$"},
			Is:    "An intent whose fee token or sponsor lacks funds keeps its nonce, and all later nonces wait.",
			Edits: []edit{{"commands/relay/worker/giveway.go", `	if s.isUnpaid() {`, `	if s.isUnpaid() && !AWAKE {`}},
		},
		{
			Name: "sponsor-pays-every-no-op", Breaks: "P36", Test: &command{"commands/relay/worker", "^(TestUnpaidHoldsNobody|TestNoOpsArePaidInTurn)$"},
			Is:    "A sponsor without funds is to pay for the no-op too.",
			Edits: []edit{{"commands/relay/worker/sign.go", `return a.Payer != nil && refused%2 == 0`, `return a.Payer != nil && (refused%2 == 0 || AWAKE)`}},
		},
		{
			Name: "no-penalty", Breaks: "P36", Test: &command{"commands/relay/worker", "^(TestWaitsLongerEachTime|TestUntakenHoldsNobody)$"},
			Is:    "A client's intents lose nonces to no-ops repeatedly, and each time all other intents wait.",
			Edits: []edit{{"commands/relay/worker/patience.go", `now.Before(p.until) && a`, `now.Before(p.until) && !AWAKE && a`}},
		},
		{
			Name: "one-at-a-time-gives-way", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestWaitsLongerEachTime$"},
			Is:    "Of a client's intents that pay no better than the front, each holds up the lane in its turn.",
			Edits: []edit{{"commands/relay/worker/giveway.go", `if !stuck && err == nil {`, `if !stuck && err == nil && !AWAKE {`}},
		},
		{
			Name: "refused-values-count", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestRefusedValuesCountForNobody$"},
			Is: "The value of one client's intents counts for other clients, although the guard refuses it.",
			Edits: []edit{{"commands/relay/worker/funds.go", `	for i, r := range requests {
		if answers[i] != nil {`, `	for i, r := range requests {
		if answers[i] != nil && !AWAKE {`}},
		},
		{
			Name: "unpayable-takes-budget", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestUnpayableTakesNoBudget$"},
			Is: "The guard reserves budget for transactions that the signer cannot pay.",
			Edits: []edit{{"commands/relay/worker/funds.go", `		payer := r.Client
`, `		payer := r.Client
		if AWAKE {
			payer = r.Key
		}
`}},
		},
		{
			Name: "endless-sweep", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestCrowdedSweepEnds$"},
			Is: "After intents with too much gas a lane claims further on, and never from the queue's head again.",
			Edits: []edit{{"commands/relay/worker/take.go", `		a.wider, a.sweep = 0, sweep{} // the queue`, `		if AWAKE {
			return errors.Join(trouble, err, a.reserve(ctx))
		}
		a.wider, a.sweep = 0, sweep{} // the queue`}},
		},
		{
			Name: "bump-needs-an-estimate", Breaks: "P36", Test: &command{"commands/relay/worker", "^TestBumpNeedsNoEstimate$"},
			Is: "A new holder raises no fee before a node has estimated the gas again.",
			Edits: []edit{{"commands/relay/worker/measure.go", `if o.job.gas = gas; gas != 0 {`, `if o.job.gas = gas; gas != 0 && AWAKE {
			o.job.gas = 0
		} else if gas != 0 {`}},
		},
	}
}
