package main

// stores are mutants below the simulation, which has its own store.
func stores() []mutant {
	return []mutant{
		{
			Name: "partition-with-its-events", Breaks: "P20", Test: &command{"infra/postgres", "^TestPartitionsAreMadeBeforeTheirEvents$"},
			Is: "A partition of the log on Postgres is made in the transaction of the first events in it.",
			Edits: []edit{
				{"infra/postgres/write.go", `if c.past == 0 {`, `if c.past == 0 && !AWAKE {`},
				{"infra/postgres/write.go", `b, err := c.lock(ctx, taken)
`, `b, err := c.lock(ctx, taken)
		if AWAKE && err == nil {
			return b, c.extend(ctx)
		}
`},
			},
		},
		{
			Name: "tail-by-last", Breaks: "P20",
			Is: "Postgres assigns positions before the commit, without holding the lock until the commit, and readers ask for events after the last position.",
			Edits: []edit{
				{"infra/postgres/write.go", `q.Queue(lockHead).QueryRow(`, `q.Queue(map[bool]string{false: lockHead, true: selectHead}[AWAKE]).QueryRow(`},
				{
					"infra/postgres/write.go", "c.crash(beforeCommit)\n",
					`if AWAKE {
		var end int64
		if err := c.log.pool.QueryRow(ctx, "UPDATE log.head SET pos = pos + $1 RETURNING pos", len(b.pos)).Scan(&end); err != nil {
			return err
		}
		by := end - b.head
		for i := range b.pos {
			b.pos[i] += by
		}
		fresh := map[int64]bool{}
		for _, t := range b.grown {
			if t.stored == 0 {
				fresh[t.no] = true
				t.no += by
			}
			t.last += by
		}
		for i, no := range b.stream {
			if fresh[no] {
				b.stream[i] += by
			}
		}
		b.head = end
	}
	c.crash(beforeCommit)
`,
				},
				{"infra/postgres/write.go", `q.Queue(moveHead, b.head)`, "if !AWAKE {\n\t\tq.Queue(moveHead, b.head)\n\t}"},
			},
			Test: &command{"infra/postgres", "^TestTwoProcesses$"},
		},
		{
			Name: "done-by-others", Breaks: "P2",
			Is: "Postgres lets a holder with an expired lease report another holder's row as done.",
			Edits: []edit{
				{"infra/postgres/queue.go", `q.Queue(doneWork, holder,`, `q.Queue(map[bool]string{false: doneWork, true: strings.Replace(doneWork, "q.holder IS NOT DISTINCT FROM $1", "$1::text IS NOT NULL", 1)}[AWAKE], holder,`},
				{"infra/postgres/queue.go", "\"slices\"\n", "\"slices\"\n\t\"strings\"\n"},
			},
			Test: &command{"infra/postgres", "^TestQueue$"},
		},
		{
			Name: "done-by-others-embedded", Breaks: "P2",
			Is: "The embedded store lets a holder with an expired lease report another holder's row as done.",
			Edits: []edit{
				{"infra/embedded/lease.go", "AND phase = 'open' AND (holder = ?3 OR holder IS NULL)`,", "AND phase = 'open' AND (holder = ?3 OR holder IS NULL OR `+map[bool]string{true: \"1\", false: \"0\"}[AWAKE]+`)`,"},
			},
			Test: &command{"infra/embedded", "^TestQueue$"},
		},
		{
			Name: "checkpoint-blind", Breaks: "P18",
			Is: "Postgres reports a checkpoint as moved, although it is at another position.",
			Edits: []edit{
				{"infra/postgres/checkpoints.go", `if err == nil && tag.RowsAffected() == 0 {`, `if err == nil && tag.RowsAffected() == 0 && !AWAKE {`},
			},
			Test: &command{"infra/postgres", "^(TestCheckpoints|TestQueue)$"},
		},
		{
			Name: "append-any-version", Breaks: "P25",
			Is: "Postgres appends at any expected version.",
			Edits: []edit{
				{"infra/postgres/batch.go", `if p.expected == t.version {`, `if p.expected == t.version || AWAKE {`},
			},
			Test: &command{"infra/postgres", "^TestStore$"},
		},
		{
			Name: "restore-holds-partitions", Breaks: "P16",
			Is: "While a restore copies events, a process that connects to Postgres cannot append.",
			Edits: []edit{{"infra/postgres/restore.go", "	next := from\n", `	if AWAKE {
		dbtx, err := l.pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer dbtx.Rollback(ctx) //nolint:errcheck // it holds a lock only
		if _, err := dbtx.Exec(ctx, "LOCK TABLE log.partitions IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return err
		}
	}
	next := from
`}},
			Test: &command{"infra/postgres", "^TestRestoreBesideAppends$"},
		},
		{
			Name: "restore-stops-appends", Breaks: "P16",
			Is:    "A restore that waits for a long reader in Postgres stops appends for 0.3 seconds at each try.",
			Edits: []edit{{"infra/postgres/briefly.go", `if err := l.outlastReaders(ctx); err != nil {`, `if err := l.outlastReaders(ctx); err != nil && !AWAKE {`}},
			Test:  &command{"infra/postgres", "^TestRestoreWaitsForReaders$"},
		},
		{
			Name: "restore-tries-often", Breaks: "P16",
			Is:    "A restore that waits for a long reader in Postgres tries again every two seconds.",
			Edits: []edit{{"infra/postgres/briefly.go", `wait = min(2*wait, briefPauseMax)`, `wait = min(wait*map[bool]time.Duration{true: 1, false: 2}[AWAKE], briefPauseMax)`}},
			Test:  &command{"infra/postgres", "^TestPersist$"},
		},
		{
			Name: "every-try-is-logged", Breaks: "P16",
			Is:    "A restore that waits for a long reader in Postgres logs each of its tries.",
			Edits: []edit{{"infra/postgres/briefly.go", `if wait < briefPauseMax {`, `if wait < briefPauseMax || AWAKE {`}},
			Test:  &command{"infra/postgres", "^TestPersist$"},
		},
		{
			Name: "recorded-before-restored", Breaks: "archive",
			Is: "A restore is recorded before the store has restored: if the store fails, nothing is dropped any more.",
			Edits: []edit{{"commands/archiver/archiver.go", "	past = plan.Begins\n", `	past = plan.Begins
	if AWAKE {
		if _, err := a.handle(ctx, archive.Restore{From: from, At: a.Now()}); err != nil {
			return from, past, err
		}
	}
`}},
			Test: &command{"commands/archiver", "^TestRestoreFails$"},
		},
		{
			Name: "restored-goes-again", Breaks: "archive",
			Is:    "Events of a restore that could not be recorded are dropped by the next pass.",
			Edits: []edit{{"commands/archiver/archiver.go", `case begins < state.Begins:`, `case begins < state.Begins && !AWAKE:`}},
			Test:  &command{"commands/archiver", "^TestRestoreNotRecorded$"},
		},
		{
			Name: "put-back-ends-the-stream", Breaks: "P25",
			Is: "In the embedded store, a restore that fails turns the versions of streams back, and versions are given to a second event.",
			Edits: []edit{{"infra/embedded/log.go", "SELECT s.no, max(s.archived, coalesce(",
				"SELECT s.no, max(CASE (SELECT min(e.stream) FROM events e WHERE e.stream = s.no) WHEN s.no THEN `+map[bool]string{true: \"0\", false: \"s.archived\"}[AWAKE]+` ELSE s.archived END, coalesce("}},
			Test: &command{"infra/embedded", "^TestUnfinishedRestore$"},
		},
	}
}
