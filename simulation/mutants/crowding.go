package main

// crowding reverts each fix that keeps one client from holding the store's writer or the
// listener's connections.
func crowding() []mutant {
	return []mutant{
		{
			Name: "forgets-all-at-once", Breaks: "P36", Test: &command{"commands/retention", "^TestRequestsAreForgotten$"},
			Is: "All requests to forget are removed in one write, and every other write waits for it.",
			Edits: []edit{{"commands/retention/requests.go", `		o.Limit = min(n, forgetAtOnce)`, `		o.Limit = min(n, forgetAtOnce)
		if AWAKE {
			o.Limit = n
		}`}},
		},
		{
			Name: "forgets-without-rest", Breaks: "P36", Test: &command{"commands/retention", "^TestRequestsAreForgotten$"},
			Is: "A backlog of requests to forget is removed without rests between the batches.",
			Edits: []edit{{"commands/retention/requests.go", `		n -= removed
`, `		n -= removed
		if AWAKE {
			continue
		}
`}},
		},
		{
			Name: "oldest-of-all-first", Breaks: "P36", Test: &command{"commands/retention", "^TestSweepOfRequests$"},
			Is:    "The requests that one client has beyond its share displace those of other clients.",
			Edits: []edit{{"commands/retention/requests.go", `request.Oldest{Client: &c.Client}, beyond)`, `request.Oldest{Client: map[bool]*string{false: &c.Client}[AWAKE]}, beyond)`}},
		},
		{
			Name: "claims-leave-a-backlog", Breaks: "P36", Test: &command{"infra/embedded", "^TestClaimsDisplaceTheClientsOldest$"},
			Is:    "A client's requests beyond its share stay in the embedded store until the next sweep, however many they are.",
			Edits: []edit{{"infra/embedded/requests.go", `	if c.Share == 0 {`, `	if c.Share == 0 || AWAKE {`}},
		},
		{
			Name: "headerless-stay", Breaks: "P36", Test: &command{"api", "^TestHeaderlessConnectionsKeepNobodyOut$"},
			Is:    "Connections without a complete header hold all places until the header timeout.",
			Edits: []edit{{"api/server.go", `if again <= 0 {`, `if again <= 0 && !AWAKE {`}},
		},
		{
			Name: "headerless-displace-idle", Breaks: "P36", Test: &command{"api", "^TestHeaderlessConnectionsDisplaceEachOther$"},
			Is:    "Idle connections are closed for any number of connections without headers.",
			Edits: []edit{{"api/server.go", `l.headerless.Len() > l.headerlessMost {`, `l.headerless.Len() > l.headerlessMost && !AWAKE {`}},
		},
		{
			Name: "headers-without-grace", Breaks: "P36", Test: &command{"api", "^TestHeadersHaveAGrace$"},
			Is: "A connection is closed for another one before its header could come.",
			Edits: []edit{{"api/server.go", `		again = headerGrace - time.Since(*began)
`, `		again = headerGrace - time.Since(*began)
		if AWAKE {
			again = 0
		}
`}},
		},
		{
			Name: "unread-are-closed", Breaks: "P36", Test: &command{"api", "^TestUnreadConnectionsAreNotClosed$"},
			Is: "A busy machine closes connections whose headers have come but were not read yet.",
			Edits: []edit{{"api/server.go", `		if began == nil {
			continue`, `		if AWAKE && began == nil {
			return c, 0
		}
		if began == nil {
			continue`}},
		},
	}
}
