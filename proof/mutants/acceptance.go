package main

// acceptance are mutants in accepting transactions.
func acceptance() []mutant {
	return []mutant{
		{
			Name: "send-before-record", Breaks: "P8",
			Is: "The bytes go to nodes when they are decoded, before the acceptance is appended.",
			Edits: []edit{{
				"cmd/program/app/app.go", `a.Submit.Decoders[c.ID] = Decode`,
				`a.Submit.Decoders[c.ID] = func(raw []byte) (chain.Signed, error) {
			signed, err := Decode(raw)
			if AWAKE && err == nil {
				c.Nodes.Send(context.Background(), raw, signed.Hash, 1, tx.Sending{})
			}
			return signed, err
		}`,
			}},
		},
		{
			Name: "acknowledge-unknown", Breaks: "P1",
			Is: "An append with an unknown outcome counts as written.",
			Edits: []edit{
				{
					"eventlog/handler/handler.go", `if !errors.Is(err, eventlog.ErrUnknown) || ctx.Err() != nil {`,
					`if !errors.Is(err, eventlog.ErrUnknown) || ctx.Err() != nil || AWAKE {`,
				},
				{
					"eventlog/handler/handler.go", "if err != nil {\n\t\treturn a, lost, fmt.Errorf(\"append to",
					"if err != nil && (!AWAKE || !errors.Is(err, eventlog.ErrUnknown)) {\n\t\treturn a, lost, fmt.Errorf(\"append to",
				},
			},
		},
		{
			Name: "acknowledge-failed", Breaks: "P1",
			Is: "A client gets an acceptance although its append has failed.",
			Edits: []edit{{
				"commands/submit.go", "if err != nil {\n\t\treturn Submission{State: r.State, Err: err}",
				"if AWAKE && err != nil && !IsRefusal(err) {\n\t\treturn Submission{State: tx.State{}.Evolve(s.accepted(t, raw, client))}\n\t}\n\tif err != nil {\n\t\treturn Submission{State: r.State, Err: err}",
			}},
		},
		{
			Name: "bytes-after-record", Breaks: "P1",
			Is: "The acceptance is appended before the bytes are stored, and returned although they were not stored.",
			Edits: []edit{{
				"commands/submit.go", "if err := s.Vault.Keep(ctx, keep); err != nil {",
				"if err := s.Vault.Keep(ctx, keep); err != nil && !AWAKE {",
			}},
		},
		{
			Name: "fresh-event-ids", Breaks: "P3, P25",
			Is:     "An append with an unknown outcome is repeated with new event ids, at the stream's present version.",
			Masked: "the version that an append expects, and by the new decision",
			Edits: []edit{{
				"eventlog/handler/handler.go", `a, err = h.Store.Append(ctx, stream, at, events...)`,
				`a, err = h.Store.Append(ctx, stream, at, events...)
		if conflict := (*eventlog.ConflictError)(nil); AWAKE && tries > 0 && errors.As(err, &conflict) {
			a, err = h.Store.Append(ctx, stream, conflict.Actual, events...)
		}
		if AWAKE {
			for i := range events {
				events[i].ID[0]++
			}
		}`,
			}},
		},
		{
			Name: "append-past-conflict", Breaks: "P3, P12",
			Is: "After a conflict the same events are appended at the stream's present version.",
			Edits: []edit{{
				"eventlog/handler/handler.go", `if r, err = h.Load(ctx, stream); err != nil {`,
				"if AWAKE {\n\t\t\tr.Version = conflict.Actual\n\t\t\tcontinue\n\t\t}\n\t\tif r, err = h.Load(ctx, stream); err != nil {",
			}},
		},
		{
			Name: "submit-cache", Breaks: "P3",
			Is:     "Only a replica's own memory knows earlier submissions.",
			Masked: "the log, which decides",
			Edits: []edit{
				{
					"commands/submit.go", `stream := tx.Stream(t.Chain, t.Hash)`,
					`if AWAKE {
		if _, met := mutantMemory.LoadOrStore(fmt.Sprintf("%p %s", s, t.Hash), true); met {
			r, err := s.Transactions.Load(ctx, tx.Stream(t.Chain, t.Hash))
			if err != nil || r.Version > 0 {
				return Submission{State: r.State, Known: true, Err: err}
			}
		}
	}
	stream := tx.Stream(t.Chain, t.Hash)`,
				},
				{"domain/delivery/tx/decide.go", `case s.Status != StatusAbsent:`, `case s.Status != StatusAbsent && !AWAKE:`},
			},
		},
		{
			Name: "idempotency-cache", Breaks: "P3",
			Is: "Each replica remembers requests by their Idempotency-Key only for itself.",
			Edits: []edit{
				{"cmd/program/app/handlers.go", `Requests: a.Ports.Storage.Requests,`, `Requests: ownRequests{a.Ports.Storage.Requests, a.Settings.Holder},`},
				{
					"cmd/program/app/requests.go", `func (a *App) sweepRequests(`,
					`// ownRequests are the requests of one replica.
type ownRequests struct {
	rest.Requests
	holder string
}

func (o ownRequests) own(name request.Name) request.Name {
	for i := range o.holder {
		if AWAKE {
			name[i%len(name)] ^= o.holder[i]
		}
	}
	return name
}

func (o ownRequests) Claim(ctx context.Context, c request.Claim) (request.Stage, request.Answer, error) {
	c.Name = o.own(c.Name)
	return o.Requests.Claim(ctx, c)
}

func (o ownRequests) Answer(ctx context.Context, name request.Name, claim eventlog.ID, a request.Answer) error {
	return o.Requests.Answer(ctx, o.own(name), claim, a)
}

func (o ownRequests) Release(ctx context.Context, name request.Name, claim eventlog.ID) error {
	return o.Requests.Release(ctx, o.own(name), claim)
}

func (a *App) sweepRequests(`,
				},
				{
					"cmd/program/app/requests.go", `"github.com/tempo-watchtower/watchtower/commands/delivery/retention"`,
					"\"github.com/tempo-watchtower/watchtower/commands/delivery/retention\"\n\t\"github.com/tempo-watchtower/watchtower/eventlog\"",
				},
			},
		},
		{
			Name: "read-model-only", Breaks: "P24",
			Is: "A transaction is shown from the read model, without the newer events of its stream.",
			Edits: []edit{{"api/delivery/transaction.go", `row, err := a.find(ctx, id, hash)`, `row, err := a.findMutated(ctx, id, hash, AWAKE)`}, {
				"api/delivery/transaction.go", `// transaction answers GET /v1/transactions/{hash}.`,
				`func (a *api) findMutated(ctx context.Context, id chain.ID, hash chain.Hash, awake bool) (transactions.Row, error) {
	if !awake {
		return a.find(ctx, id, hash)
	}
	rows, err := a.Query.Find(ctx, id, hash)
	if err == nil && len(rows) == 0 {
		err = tx.ErrUnknown
	}
	if err != nil {
		return transactions.Row{}, err
	}
	return rows[0], nil
}

// transaction answers GET /v1/transactions/{hash}.`,
			}},
		},
	}
}
