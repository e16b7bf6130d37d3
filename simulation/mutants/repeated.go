package main

// repeated reverts each fix that keeps repeated requests of one client from using up the store's
// connections, and expired transactions of one client from delaying the watcher.
func repeated() []mutant {
	return []mutant{
		{
			Name: "repetitions-store-bytes", Breaks: "P36", Test: &command{"commands", "^TestRepetitionsWriteNothing$"},
			Is:    "Each repetition of an accepted transaction stores its bytes again.",
			Edits: []edit{{"commands/repeated.go", `if err != nil || version == 0 {`, `if err != nil || version == 0 || AWAKE {`}},
		},
		{
			Name: "lost-bytes-stay-lost", Breaks: "P1", Test: &command{"commands", "^TestRepetitionsWriteNothing$"},
			Is:    "A repetition of an accepted transaction whose bytes are lost does not store them.",
			Edits: []edit{{"commands/repeated.go", `err != nil || kept == gone {`, `err != nil || kept == gone && !AWAKE {`}},
		},
		{
			Name: "repetitions-at-once", Breaks: "P36", Test: &command{"commands", "^TestEqualSubmissionsTakeTurns$"},
			Is:    "Concurrent submissions of one new transaction by one client each write its bytes.",
			Edits: []edit{{"commands/repeated.go", `	if t == nil {`, `	if t == nil || AWAKE {`}},
		},
		{
			Name: "claims-lock-first", Breaks: "P36", Test: &command{"infra/postgres", "^TestRepeatedClaimLocksNothing$"},
			Is: "Each repetition of a request with an Idempotency-Key locks the request's row.",
			Edits: []edit{{"infra/postgres/requests.go", `			write := takeRequest
`, `			write := takeRequest
			if AWAKE {
				if _, err := s.pool.Exec(ctx, "SELECT FROM work.requests WHERE name = $1 FOR UPDATE", c.Name[:]); err != nil {
					return err
				}
			}
`}},
		},
		{
			Name: "leases-share-connections", Breaks: "P36", Test: &command{"infra/postgres", "^TestLeasesHaveTheirOwnConnections$"},
			Is:    "Leases wait for a connection while clients' writes use all of them.",
			Edits: []edit{{"infra/postgres/postgres.go", `&Leases{db.leases}`, `&Leases{map[bool]*pgxpool.Pool{false: db.leases, true: db.log}[AWAKE]}`}},
		},
		{
			Name: "checks-for-each", Breaks: "P36", Test: &command{"api", "^TestChecksAreShared$"},
			Is:    "Each request to /readyz and /health asks the database.",
			Edits: []edit{{"api/checks.go", `age < checkFor {`, `age < checkFor && !AWAKE {`}},
		},
	}
}
