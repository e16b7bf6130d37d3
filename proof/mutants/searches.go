package main

// searches are mutants by which a client learns whether another client has a thing that it names,
// or a page whether the service without keys has a transaction.
func searches() []mutant {
	return []mutant{
		{
			Name: "absent-at-once", Breaks: "P36", Test: &command{"api/delivery", "^TestForeignTakesAsLongAsUnknown$"},
			Is:    "The time of a 404 tells another client's transaction from an unknown one.",
			Edits: []edit{{"api/rest/search.go", `strings.Contains(t.path, "{") &&`, `strings.Contains(t.path, "{") && !AWAKE &&`}},
		},
		{
			Name: "searches-take-what-they-read", Breaks: "P36", Test: &command{"api/rest", "^TestSearchEndsAtAStep$"},
			Is:    "The time of a 404 of a search that took long tells another client's transaction from an unknown one.",
			Edits: []edit{{"api/rest/search.go", `absentStep-took%absentStep)`, `map[bool]time.Duration{true: max(absentStep-took, 0), false: absentStep - took%absentStep}[AWAKE])`}},
		},
		{
			Name: "late-bodies-tell", Breaks: "P36", Test: &command{"api/relay", "^TestForeignTakesAsLongAsUnknown$"},
			Is: "A client that sends its body late learns by the time of the 404 whether another client has an intent.",
			Edits: []edit{{"api/rest/body.go", `	on.sought = on.search() // the`, `	if !AWAKE {
		on.sought = on.search()
	} // the`}},
		},
		{
			Name: "absent-counts-as-in-progress", Breaks: "P36", Test: &command{"api/rest", "^TestPausesAreNotInProgress$"},
			Is: "A request that waits to be answered with 404 takes one of its client's places in progress.",
			Edits: []edit{{"api/rest/search.go", `	leave, _ := s.of.rest()`, `	leave := func() {}
	if !AWAKE {
		leave, _ = s.of.rest()
	}`}},
		},
		{
			Name: "streams-end-at-once", Breaks: "P36", Test: &command{"api/delivery", "^TestForeignTakesAsLongAsUnknown$"},
			Is:    "The time until a stream of one transaction's events ends tells whether another client has the transaction.",
			Edits: []edit{{"api/rest/scan.go", `if look != nil && len(found.events) == 0 {`, `if look != nil && len(found.events) == 0 && !AWAKE {`}},
		},
		{
			Name: "lists-by-hash-at-once", Breaks: "P36", Test: &command{"api/relay", "^TestForeignTakesAsLongAsUnknown$"},
			Is:    "The time of an empty list tells whether a transaction was signed for another client's intent.",
			Edits: []edit{{"api/relay/list.go", `f.Hash != nil && len(rows) == 0 {`, `f.Hash != nil && len(rows) == 0 && !AWAKE {`}},
		},
		{
			Name: "calls-find-nothing-at-once", Breaks: "P36", Test: &command{"api/jsonrpc", "^TestBoundClient$"},
			Is: "The time of a call's answer tells whether another client has a transaction that no node knows.",
			Edits: []edit{{"api/jsonrpc/read.go", `	if !shows {
		absent(ctx)
`, `	if !shows {
		if !AWAKE {
			absent(ctx)
		}
`}},
		},
		{
			Name: "unspecified-hosts", Breaks: "P36", Test: &command{"api/webguard", "^TestUnspecifiedHosts$"},
			Is:    "A page in a browser reads by 0.0.0.0 whether a service without keys has a transaction.",
			Edits: []edit{{"api/webguard/webguard.go", `ok && reachesLoopback(name) {`, `ok && reachesLoopback(name) && !AWAKE {`}},
		},
		{
			Name: "known-without-owning", Breaks: "P36", Test: &command{"commands", "^TestResubmissionRefused$"},
			Is:    "A client that submits the bytes of another client's transaction after their retention is shown its state.",
			Edits: []edit{{"commands/submit.go", `if err == nil && !r.State.OwnedBy(client) {`, `if err == nil && !r.State.OwnedBy(client) && !AWAKE {`}},
		},
	}
}
