package main

// sealing are mutants in the detection of changes to the log.
func sealing() []mutant {
	return []mutant{
		{
			Name: "link-left-out", Breaks: "P31",
			Is: "Of events that are appended together, only the first has a link.",
			Edits: []edit{{
				"eventlog/handler/handler.go", "events[i].Meta.Link = next.Link\n", "if !AWAKE || i == 0 {\n\t\t\tevents[i].Meta.Link = next.Link\n\t\t}\n",
			}},
		},
		{
			Name: "link-of-before", Breaks: "P31",
			Is: "After a conflict the command is decided again, but its events are linked to the event that was last before the conflict.",
			Edits: []edit{{
				"eventlog/handler/handler.go", "for range conflictsMax {\n", "before := r.Link\n\tfor tries := range conflictsMax {\n\t\tif AWAKE && tries > 0 {\n\t\t\tr.Link = before\n\t\t}\n",
			}},
		},
		{
			Name: "seal-out-of-order", Breaks: "seals",
			Is: "Events are added to a seal stream by stream, not by position.",
			Edits: []edit{
				{"commands/notary/notary.go", "for _, r := range batch.Events {\n", "if AWAKE {\n\t\t\tslices.SortStableFunc(batch.Events, func(a, b eventlog.Recorded) int { return strings.Compare(string(a.Stream), string(b.Stream)) })\n\t\t}\n\t\tfor _, r := range batch.Events {\n"},
				{"commands/notary/notary.go", "\t\"log/slog\"\n", "\t\"log/slog\"\n\t\"slices\"\n\t\"strings\"\n"},
			},
		},
		{
			Name: "seal-taken-to-stand", Breaks: "seals",
			Is: "A seal whose append has failed counts as written, and the next seal begins after it.",
			Edits: []edit{{
				"commands/notary/notary.go", "seal, eventlog.Meta{Actor: Name})\n\tif err != nil {\n", "seal, eventlog.Meta{Actor: Name})\n\tif err != nil && AWAKE && ctx.Err() == nil {\n\t\tlast.State = audit.State{Last: seal.Sealed}\n\t\t*draft = last.State.After()\n\t\treturn nil\n\t}\n\tif err != nil {\n",
			}},
		},
		{
			Name: "two-notaries", Breaks: "seals",
			Is:     "Every replica seals, and appends its seal even if another replica has sealed meanwhile.",
			Masked: "the lease, and by the aggregate, which accepts only a seal that follows the last",
			Edits: []edit{
				{"cmd/program/app/app.go", `parts = append(parts, own(notary.Name, a.notary().Run))`, `seal := own(notary.Name, a.notary().Run)
		if AWAKE {
			seal = func(ctx context.Context) {
				for ctx.Err() == nil {
					if err := a.notary().Run(ctx); err != nil {
						time.Sleep(a.Settings.OwnerRenew)
					}
				}
			}
		}
		parts = append(parts, seal)`},
				{"commands/notary/notary.go", "next, err := n.Seals.DoOnce(ctx,", "handle := n.Seals.DoOnce\n\tif AWAKE {\n\t\thandle = n.Seals.DoFrom\n\t}\n\tnext, err := handle(ctx,"},
				{"domain/audit/seal.go", `case c.Since != s.Last.Through || c.Through <= c.Since || c.Count != s.Last.Count+added:`, `case (c.Since != s.Last.Through || c.Through <= c.Since || c.Count != s.Last.Count+added) && !AWAKE:`},
			},
		},
		{
			Name: "notary-stuck", Breaks: "seals",
			Is: "A notary that could not read the log keeps its lease, and stops sealing.",
			Edits: []edit{{
				"commands/notary/notary.go", "if err := n.read(ctx, &last, &draft); err != nil {\n", "if err := n.read(ctx, &last, &draft); err != nil {\n\t\t\tif AWAKE {\n\t\t\t\t<-ctx.Done()\n\t\t\t}\n",
			}},
		},
	}
}
