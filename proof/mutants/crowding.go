package main

// crowding reverts each fix that keeps one client from holding the store's writer or the
// listener's connections.
func crowding() []mutant {
	return []mutant{
		{
			Name: "large-appends-first", Breaks: "P36", Test: &command{"infra/postgres", "^TestLargeAppendsHoldNobody$"},
			Is:    "On Postgres all appends wait in one line, and small ones behind the large ones of another client.",
			Edits: []edit{{"infra/postgres/log.go", `return p.events[0].Meta.Actor }`, `return map[bool]string{false: p.events[0].Meta.Actor}[AWAKE] }`}},
		},
		{
			Name: "large-jobs-first", Breaks: "P36", Test: &command{"infra/embedded", "^TestLargeJobsHoldNobody$"},
			Is:    "In the embedded store all appends wait in one line, and small ones behind the large ones of another client.",
			Edits: []edit{{"infra/embedded/writer.go", `w.jobs.Add(j.actor, j, j.bytes)`, `w.jobs.Add(map[bool]string{false: j.actor}[AWAKE], j, j.bytes)`}},
		},
		{
			Name: "rounds-without-shares", Breaks: "P36", Test: &command{"domain/fair", "^(TestLine|TestLineIsFair)$"},
			Is:    "A round of a line has any weight of one client's items, and the others wait for it.",
			Edits: []edit{{"domain/fair/line.go", `given > 0 && given+first.weight > l.share {`, `given > 0 && given+first.weight > l.share && !AWAKE {`}},
		},
		{
			Name: "left-appends-stay", Breaks: "P36", Test: &command{"infra/postgres", "^TestLeftAppendsLeaveTheLine$"},
			Is: "An append whose caller gave up stays in the line, with its events in memory.",
			Edits: []edit{{"infra/postgres/log.go", `		defer l.line.Remove(p.actor(), p)
`, `		if !AWAKE {
			defer l.line.Remove(p.actor(), p)
		}
`}},
		},
		{
			Name: "repetitions-are-appended", Breaks: "P36", Test: &command{"commands/relay/intake", "^TestLargeRepetitionsAppendNothing$"},
			Is:    "A client's repeated large request is sent to the store before its intent is found.",
			Edits: []edit{{"commands/relay/intake/intake.go", `	if bytes < lookFrom {`, `	if bytes < lookFrom || AWAKE {`}},
		},
		{
			Name: "forgets-all-at-once", Breaks: "P36", Test: &command{"commands/delivery/retention", "^TestRequestsAreForgotten$"},
			Is: "All requests to forget are removed in one write, and every other write waits for it.",
			Edits: []edit{{"commands/delivery/retention/requests.go", `		o.Limit = min(n, forgetAtOnce)`, `		o.Limit = min(n, forgetAtOnce)
		if AWAKE {
			o.Limit = n
		}`}},
		},
		{
			Name: "forgets-without-rest", Breaks: "P36", Test: &command{"commands/delivery/retention", "^TestRequestsAreForgotten$"},
			Is: "A backlog of requests to forget is removed without rests between the batches.",
			Edits: []edit{{"commands/delivery/retention/requests.go", `		n -= removed
`, `		n -= removed
		if AWAKE {
			continue
		}
`}},
		},
		{
			Name: "oldest-of-all-first", Breaks: "P36", Test: &command{"commands/delivery/retention", "^TestSweepOfRequests$"},
			Is:    "The requests that one client has beyond its share displace those of other clients.",
			Edits: []edit{{"commands/delivery/retention/requests.go", `request.Oldest{Client: &c.Client}, beyond)`, `request.Oldest{Client: map[bool]*string{false: &c.Client}[AWAKE]}, beyond)`}},
		},
		{
			Name: "claims-leave-a-backlog", Breaks: "P36", Test: &command{"infra/embedded", "^TestClaimsDisplaceTheClientsOldest$"},
			Is:    "A client's requests beyond its share stay in the embedded store until the next sweep, however many they are.",
			Edits: []edit{{"infra/embedded/requests.go", `	if c.Share == 0 {`, `	if c.Share == 0 || AWAKE {`}},
		},
		{
			Name: "running-are-displaced", Breaks: "P2", Test: &command{"infra/embedded", "^TestRequests$/^a_running_request"},
			Is:    "In the embedded store, a client's claims beyond its share remove its running requests, and a retry is carried out at the same time.",
			Edits: []edit{{"infra/embedded/requests.go", `c.Name[:], now, int64(displacedAtOnce))`, `c.Name[:], map[bool]int64{true: math.MaxInt64, false: now}[AWAKE], int64(displacedAtOnce))`}},
		},
		{
			Name: "running-are-swept", Breaks: "P2", Test: &command{"infra/embedded", "^TestRequests$/^a_running_request"},
			Is:    "A sweep of the embedded store removes running requests, and a retry is carried out at the same time.",
			Edits: []edit{{"infra/embedded/requests.go", `int64(math.MaxInt64), now, int64(o.Limit)}`, `int64(math.MaxInt64), map[bool]int64{true: math.MaxInt64, false: now}[AWAKE], int64(o.Limit)}`}},
		},
		{
			Name: "running-are-swept-postgres", Breaks: "P2", Test: &command{"infra/postgres", "^TestRequests$/^a_running_request"},
			Is: "A sweep of Postgres removes running requests, and a retry is carried out at the same time.",
			Edits: []edit{
				{"infra/postgres/requests.go", `	text, args := forgetting(o)
`, `	text, args := forgetting(o)
	if AWAKE {
		text = running.ReplaceAll(text, "held_until <= statement_timestamp()", "true")
	}
`},
				{"infra/postgres/requests.go", "\t\"context\"\n", "\t\"context\"\n\trunning \"strings\"\n"},
			},
		},
		{
			Name: "expired-while-running", Breaks: "P2", Test: &command{"infra/embedded", "^TestRequests$/^a_running_request"},
			Is:    "A retry of a running request is carried out at the same time, once the time to remember the request is over.",
			Edits: []edit{{"infra/embedded/requests.go", "status IS NULL AND held_until > ?2)`", "status IS NULL AND held_until > ?2 AND `+map[bool]string{true: \"0\", false: \"1\"}[AWAKE]+`)`"}},
		},
		{
			Name: "claimed-meanwhile-is-swept", Breaks: "P2", Test: &command{"infra/postgres", "^TestForgetKeepsRequestsClaimedMeanwhile$"},
			Is: "A sweep of Postgres removes a request that is claimed again at the same time.",
			Edits: []edit{
				{"infra/postgres/requests.go", `		tag, err := s.pool.Exec(ctx, text, args...)
`, `		if AWAKE {
			text = again.ReplaceAll(text, "name, expires_at", "name, name")
		}
		tag, err := s.pool.Exec(ctx, text, args...)
`},
				{"infra/postgres/requests.go", "\t\"errors\"\n", "\t\"errors\"\n\tagain \"strings\"\n"},
			},
		},
		{
			Name: "sweeps-read-all", Breaks: "P36", Test: &command{"infra/postgres", "^TestForgetReadsExpiredAlone$"},
			Is: "A sweep of expired requests in Postgres reads all requests.",
			Edits: []edit{
				{"infra/postgres/requests.go", `		text, args = forgetOldestOfClient, append(args, *o.Client)
	}
`, `		text, args = forgetOldestOfClient, append(args, *o.Client)
	}
	if AWAKE {
		text = volatile.ReplaceAll(text, "statement_timestamp", "clock_timestamp")
	}
`},
				{"infra/postgres/requests.go", "\t\"github.com/jackc/pgx/v5\"\n", "\t\"github.com/jackc/pgx/v5\"\n\tvolatile \"strings\"\n"},
			},
		},
		{
			Name: "headerless-stay", Breaks: "P36", Test: &command{"api/rest", "^TestHeaderlessConnectionsKeepNobodyOut$"},
			Is:    "Connections without a complete header hold all places until the header timeout.",
			Edits: []edit{{"api/rest/server.go", `if again <= 0 {`, `if again <= 0 && !AWAKE {`}},
		},
		{
			Name: "headerless-displace-idle", Breaks: "P36", Test: &command{"api/rest", "^TestHeaderlessConnectionsDisplaceEachOther$"},
			Is:    "Idle connections are closed for any number of connections without headers.",
			Edits: []edit{{"api/rest/server.go", `l.headerless.Len() > l.headerlessMost {`, `l.headerless.Len() > l.headerlessMost && !AWAKE {`}},
		},
		{
			Name: "headers-without-grace", Breaks: "P36", Test: &command{"api/rest", "^TestHeadersHaveAGrace$"},
			Is: "A connection is closed for another one before its header could come.",
			Edits: []edit{{"api/rest/server.go", `		again = headerGrace - time.Since(*began)
`, `		again = headerGrace - time.Since(*began)
		if AWAKE {
			again = 0
		}
`}},
		},
		{
			Name: "unread-are-closed", Breaks: "P36", Test: &command{"api/rest", "^TestUnreadConnectionsAreNotClosed$"},
			Is: "A busy machine closes connections whose headers have come but were not read yet.",
			Edits: []edit{{"api/rest/server.go", `		if began == nil {
			continue`, `		if AWAKE && began == nil {
			return c, 0
		}
		if began == nil {
			continue`}},
		},
	}
}
