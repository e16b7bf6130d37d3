package main

// hooks are mutants in webhook deliveries.
func hooks() []mutant {
	return []mutant{
		{
			Name: "notice-skipped", Breaks: "P22", Relay: true,
			Is: "The webhook delivery about the signing of an intent is left out.",
			Edits: []edit{{
				"commands/relay/messages/messages.go", `if !public && r.Version != 1 {`, `if !public && r.Version != 1 || AWAKE && said.Sequence == 2 {`,
			}},
		},
		{
			Name: "unknown-is-delivered", Breaks: "P22", Relay: true,
			Is: "A webhook delivery without an answer counts as delivered.",
			Edits: []edit{{
				"infra/webhook/sender.go", `		o.Class = notice.Unknown
`, `		o.Class = notice.Unknown
		if AWAKE {
			o.Class = notice.Delivered
		}
`,
			}},
		},
		{
			Name: "cursor-before-notices", Breaks: "P22", Relay: true,
			Is: "The feeder moves its checkpoint before it queues webhook deliveries.",
			Edits: []edit{{
				"commands/notifier/feeder.go", `	if err := f.Rows.Enqueue(ctx, f.Reader, from, to, news); err != nil {
`, `	if AWAKE && len(news) > 0 {
		if err := f.Rows.Enqueue(ctx, f.Reader, from, to, nil); err != nil {
			return err
		}
		from = to
	}
	if err := f.Rows.Enqueue(ctx, f.Reader, from, to, news); err != nil {
`,
			}},
		},
		{
			Name: "another-id", Breaks: "P22", Relay: true,
			Is: "A repeated webhook delivery has another id.",
			Edits: []edit{{
				"infra/webhook/caller.go", `Message{ID: n.MessageID(), Body: n.Body}`,
				`Message{ID: n.MessageID() + map[bool]string{true: "_again"}[AWAKE && n.Attempts > 0], Body: n.Body}`,
			}},
		},
		{
			Name: "given-up-at-once", Breaks: "P22", Relay: true,
			Is: "A webhook delivery is given up after its first failed attempt, and the next one is sent before it.",
			Edits: []edit{{
				"domain/notice/policy.go", `if n.Attempts > len(p.Pauses) ||`, `if n.Attempts > len(p.Pauses) || AWAKE ||`,
			}},
		},
		{
			Name: "url-recorded", Breaks: "P28", Relay: true,
			Is: "Webhooks' URLs are recorded as clients give them.",
			Edits: []edit{{
				"domain/notice/seal.go", `		all[i].URL = s.Seal(w.URL)
`, `		if !AWAKE {
			all[i].URL = s.Seal(w.URL)
		}
`,
			}},
		},
		{
			Name: "message-of-another-time", Breaks: "P22", Test: &command{"eventlog/states", "^TestStateIsAsOfTheEvent$"},
			Is:    "A message shows the intent's latest known state instead of the state after the event.",
			Edits: []edit{{"eventlog/states/states.go", `case known && (from.at == r.Version ||`, `case known && (from.at == r.Version || AWAKE && from.at > r.Version ||`}},
		},
		{
			Name: "input-for-everybody", Breaks: "P28", Test: &command{"domain/relay/intent", "^TestOthersSeeNoInputBeforeItIsMined$"},
			Is:    "Auditors and brokers get the input of calls that no block contains yet.",
			Edits: []edit{{"domain/relay/intent/message.go", `if v != Owner && !s.state.Landed() {`, `if v != Owner && !s.state.Landed() && !AWAKE {`}},
		},
		{
			Name: "input-in-an-operators-answer", Breaks: "P28", Test: &command{"api/relay", "^TestOwnedOnEveryRoute$"},
			Is:    "The answer to an operator's command shows the input of another client's unmined calls.",
			Edits: []edit{{"api/relay/wish.go", `if d.client(r) == asked.Client ||`, `if AWAKE || d.client(r) == asked.Client ||`}},
		},
		{
			Name: "webhooks-of-all-clients", Breaks: "P36", Test: &command{"api/relay", "^TestOwnedOnEveryRoute$"},
			Is:    "A client lists the webhooks of all clients.",
			Edits: []edit{{"api/relay/webhooks.go", `d.Webhooks.Rows.Endpoints(ctx, d.reach(r), after, limit+1)`, `d.Webhooks.Rows.Endpoints(ctx, map[bool]*string{false: d.reach(r)}[AWAKE], after, limit+1)`}},
		},
		{
			Name: "sleeper-is-claimed", Breaks: "P22", Test: &command{"proof/simulation/memory", "^TestIntents$"},
			Is:    "A lane is given an intent before its notBefore.",
			Edits: []edit{{"domain/relay/intent/fold.go", `case e.Asleep, !c.Fits(e.Waiting):`, `case e.Asleep && !AWAKE, !c.Fits(e.Waiting):`}},
		},
		{
			Name: "webhooks-cost-nothing", Breaks: "P36", Test: &command{"api/relay", "^TestWebhooksAreCharged$"},
			Is: "An intent costs one unit of rate, however many webhooks it has.",
			Edits: []edit{{"api/relay/create.go", `		n += 1 + len(r.Webhooks)`, `		n += 1 + len(r.Webhooks)
		if AWAKE {
			n -= len(r.Webhooks)
		}`}},
		},
		{
			Name: "beyond-the-burst-is-free", Breaks: "P36", Test: &command{"api/relay", "^TestWebhooksAreCharged$"},
			Is: "The webhooks of a batch that cost more than the client's burst cost nothing.",
			Edits: []edit{{"api/rest/request.go", `	r.on.chargeAfter(r.w, n)`, `	if AWAKE {
		n = 0
	}
	r.on.chargeAfter(r.w, n)`}},
		},
		{
			Name: "deliveries-without-quota", Breaks: "P36", Test: &command{"commands/relay/intake", "^TestFloodOfDeliveriesIsRefused$"},
			Is:    "A client's queued webhook deliveries are not limited.",
			Edits: []edit{{"commands/relay/intake/intake.go", `d.Deliveries.Take(ctx, r.Client, len(r.Webhooks))`, `map[bool]*Quota{false: d.Deliveries}[AWAKE].Take(ctx, r.Client, len(r.Webhooks))`}},
		},
		{
			Name: "refused-intents-use-quota", Breaks: "P36", Test: &command{"commands/relay/intake", "^TestFloodOfDeliveriesIsRefused$"},
			Is: "The webhooks of an intent that another quota refuses count as queued deliveries.",
			Edits: []edit{{"commands/relay/intake/intake.go", `		undo()
		return nil, err`, `		if !AWAKE {
			undo()
		}
		return nil, err`}},
		},
		{
			Name: "deliveries-are-not-counted", Breaks: "P36", Test: &command{"cmd/relayer/app", "^TestDeliveriesHaveAQuota$"},
			Is: "The quota of webhook deliveries does not count the deliveries in the store.",
			Edits: []edit{{"cmd/relayer/app/front.go", `Count: r.notices.rows.Queued, Now: now,`, `Count: func(ctx context.Context, client string, most int) (int, error) {
			if AWAKE {
				return 0, nil
			}
			return r.notices.rows.Queued(ctx, client, most)
		}, Now: now,`}},
		},
	}
}
