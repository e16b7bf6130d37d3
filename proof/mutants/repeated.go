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
			Edits: []edit{{"infra/postgres/postgres.go", `&Leases{pool: db.leases}`, `&Leases{pool: map[bool]*pgxpool.Pool{false: db.leases, true: db.log}[AWAKE]}`}},
		},
		{
			Name: "expired-are-all-read-postgres", Breaks: "P36", Test: &command{"infra/postgres", "^TestExpiringReadsFewRows$"},
			Is:    "The watcher reads all expired transactions of a client at each block.",
			Edits: []edit{{"infra/postgres/board.go", `expires_at, hash LIMIT $3) first`, "expires_at, hash LIMIT $3` + map[bool]string{true: ` + 1000000`}[AWAKE] + `) first"}},
		},
		{
			Name: "expired-are-all-read-embedded", Breaks: "P36", Test: &command{"infra/embedded", "^TestExpiringReadsFewRows$"},
			Is:    "The watcher sorts all expired transactions of a client at each block.",
			Edits: []edit{{"infra/embedded/board.go", `ORDER BY expires_at, no LIMIT ?4"`, `ORDER BY " + map[bool]string{true: "+"}[AWAKE] + "expires_at, no LIMIT ?4"`}},
		},
		{
			Name: "slow-settlers-are-waited-for", Breaks: "P36", Test: &command{"commands/delivery/watcher", "^TestStepsDoNotWaitForSlowSettlers$"},
			Is:    "Each step of the watcher waits for a client whose transactions take long to settle.",
			Edits: []edit{{"commands/delivery/watcher/settling.go", `if r.settlers.isSlow(one) {`, `if r.settlers.isSlow(one) && !AWAKE {`}},
		},
		{
			Name: "checks-for-each", Breaks: "P36", Test: &command{"api/rest", "^TestChecksAreShared$"},
			Is:    "Each request to /readyz and /health asks the database.",
			Edits: []edit{{"api/rest/checks.go", `age < checkFor {`, `age < checkFor && !AWAKE {`}},
		},
	}
}
