package main

// schedule are mutants in following the log and in finding due work.
func schedule() []mutant {
	return []mutant{
		{
			Name: "redis-only", Breaks: "P2",
			Is: "With Redis, workers look at the queue only when Redis reports due work.",
			Edits: []edit{
				{"commands/delivery/scheduler/worker.go", `w.rest(ctx, min(max(until, minRest), w.Poll))`, "if AWAKE && w.Poll > time.Hour {\n\t\t\t\tuntil = w.Poll\n\t\t\t}\n\t\t\tw.rest(ctx, min(max(until, minRest), w.Poll))"},
				{"cmd/program/app/chain.go", `Lease: a.Settings.WorkLease, Poll: a.Settings.SchedulerPoll,`, `Lease: a.Settings.WorkLease, Poll: map[bool]time.Duration{false: a.Settings.SchedulerPoll, true: 1000 * time.Hour}[AWAKE && a.Ports.Redis != nil],`},
				{"cmd/program/app/app.go", `for _, w := range a.workers {`, "if AWAKE && a.Ports.Redis != nil {\n\t\t\t\treturn\n\t\t\t}\n\t\t\tfor _, w := range a.workers {"},
			},
		},
		{
			Name: "batch-skipped", Breaks: "P2",
			Is: "The feeder's checkpoint moves past a batch that the queue did not accept.",
			Edits: []edit{{
				"eventlog/follower/feeding.go", `if err := f.Apply(ctx, from, batch.Next, changes); err != nil {`,
				"if err := f.Apply(ctx, from, batch.Next, changes); err != nil {\n\t\tif AWAKE && !errors.Is(err, eventlog.ErrMoved) {\n\t\t\treturn batch.Next, f.Checkpoints.MoveCheckpoint(ctx, f.Reader, from, batch.Next)\n\t\t}",
			}},
		},
		{
			Name: "follower-skips", Breaks: "P23, P3",
			Is: "A process manager's checkpoint moves past events that it could not handle.",
			Edits: []edit{{
				"eventlog/follower/follower.go", `if err := handle(ctx, batch.Events); err != nil {`,
				`if err := handle(ctx, batch.Events); err != nil && !AWAKE {`,
			}},
		},
		{
			Name: "checkpoint-apart", Breaks: "P18, P19",
			Is: "A projection's checkpoint is committed before its rows.",
			Edits: []edit{{
				"eventlog/projector/projector.go", "if len(batch.Events) > 0 {\n\t\tif err := p.Fold(",
				"if AWAKE {\n\t\tif err := dbtx.Commit(); err != nil {\n\t\t\treturn err\n\t\t}\n\t\tif dbtx, err = p.DB.BeginTx(ctx, nil); err != nil {\n\t\t\treturn err\n\t\t}\n\t\tdefer func() { dbtx.Rollback() }()\n\t}\n\tif len(batch.Events) > 0 {\n\t\tif err := p.Fold(",
			}},
		},
		{
			Name: "no-wake", Breaks: "P2, P14",
			Is: "A due row that cannot be read is deferred for ever.",
			Edits: []edit{{
				"commands/delivery/broadcaster/broadcaster.go", `done.NextAt, done.Note = b.Now().Add(b.Schedule.RetryMax/4), what`,
				"done.NextAt, done.Note = b.Now().Add(b.Schedule.RetryMax/4), what\n\tif AWAKE {\n\t\tdone.NextAt = b.Now().Add(1000 * time.Hour)\n\t}",
			}},
		},
	}
}

// owners are mutants in work that one replica at a time may do.
func owners() []mutant {
	lease := []edit{
		{"eventlog/lease/lease.go", "case !held:\n", "case !held && !AWAKE:\n"},
		{"eventlog/lease/lease.go", "case err == nil && held:\n", "case err == nil && (held || AWAKE):\n"},
	}
	return []mutant{
		{
			Name: "no-lease", Breaks: "P18, P19",
			Is:     "Every replica does the work of the lease holder: projections, watching, following.",
			Masked: "the projections' compare-and-set, and the versions in their rows",
			Edits: append([]edit{
				{"eventlog/projector/projector.go", "AND position = $3`,\n\t\tint64(batch.Next), p.Name, int64(from))", "AND (position = $3 OR $4)`,\n\t\tint64(batch.Next), p.Name, int64(from), AWAKE)"},
				{"eventlog/projector/projector.go", `if n, err := moved.RowsAffected(); err != nil || n != 1 {`, `if n, err := moved.RowsAffected(); (err != nil || n != 1) && !AWAKE {`},
				{"projections/delivery/transactions/row.go", `case recorded.Version <= r.Version:`, `case recorded.Version <= r.Version && !AWAKE:`},
				{"projections/delivery/transactions/row.go", `case recorded.Version != r.Version+1:`, `case recorded.Version != r.Version+1 && !AWAKE:`},
			}, lease...),
		},
	}
}

// canceling are mutants in owners' cancels.
func canceling() []mutant {
	return []mutant{
		{
			Name: "cancel-ignored", Breaks: "P23",
			Is:     "Bytes are sent without a check that their owner has canceled them.",
			Masked: "the queue, where the row is not due any more, and by the erasure of the bytes",
			Edits: []edit{
				{"commands/delivery/broadcaster/broadcaster.go", "case !r.State.Sendable():\n\t\t// The queue", "case !r.State.Sendable() && !(AWAKE && r.State.Canceled && r.State.Verdict == tx.StatusAbsent):\n\t\t// The queue"},
				{"commands/delivery/scheduler/plan.go", `if e.Verdict != tx.StatusAbsent {`, `if e.Verdict != tx.StatusAbsent || AWAKE {`},
				{"commands/delivery/canceler/carry.go", `if err := c.Payloads.Erase(ctx, on, hashes); err != nil {`, `erase := c.Payloads.Erase
		if AWAKE {
			erase = func(context.Context, chain.ID, []chain.Hash) error { return nil }
		}
		if err := erase(ctx, on, hashes); err != nil {`},
			},
		},
		{
			Name: "cancel-late-members", Breaks: "P23",
			Is: "A cancel does not reach members that were accepted before it and had not joined yet.",
			Edits: []edit{{
				"commands/delivery/canceler/canceler.go", `if err := c.CatchUp(ctx, ids); err != nil {`, "catchUp := c.CatchUp\n\tif AWAKE {\n\t\tcatchUp = func(context.Context, []group.ID) error { return nil }\n\t}\n\tif err := catchUp(ctx, ids); err != nil {",
			}},
		},
		{
			Name: "cancel-half", Breaks: "P23",
			Is:     "A cancel that was interrupted is not continued.",
			Masked: "the client, which repeats its request",
			Edits: []edit{
				{"commands/delivery/canceler/follow.go", `found := canceled(r.State)[finished:]`, "if AWAKE {\n\t\t\treturn nil\n\t\t}\n\t\tfound := canceled(r.State)[finished:]"},
				{"commands/delivery/canceler/canceler.go", `found, key := result.State.Found(by), result.State.NonceKey`, "found, key := result.State.Found(by), result.State.NonceKey\n\tif AWAKE && len(found) > 1 {\n\t\tfound = found[:1]\n\t}"},
			},
		},
		{
			Name: "canceled-bytes-kept", Breaks: "P23",
			Is:     "A canceled transaction is not sent any more, but its bytes are kept.",
			Masked: "retention, which follows cancels too",
			Edits: []edit{
				{"commands/delivery/canceler/carry.go", `return s.Canceled && err == nil && len(facts) > 0`, `return s.Canceled && err == nil && len(facts) > 0 && !AWAKE`},
				{"commands/delivery/retention/retention.go", `return r.erase(ctx, events, func(s tx.State) bool { return s.Canceled || s.Refused })`, `return r.erase(ctx, events, func(s tx.State) bool { return !AWAKE && (s.Canceled || s.Refused) })`},
			},
		},
	}
}
