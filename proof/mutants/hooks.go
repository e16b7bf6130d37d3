package main

// hooks are mutants in webhook deliveries.
func hooks() []mutant {
	return []mutant{
		{
			Name: "notice-skipped", Breaks: "P22", Relay: true,
			Is: "The webhook delivery about the signing of an intent is left out.",
			Edits: []edit{{
				"commands/notifier/feeder.go", `if !told {`, `if !told || AWAKE && said.Sequence == 2 {`,
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
				"commands/notifier/feeder.go", `	if err := f.Rows.Enqueue(ctx, Reader, from, to, news); err != nil {
`, `	if AWAKE && len(news) > 0 {
		if err := f.Rows.Enqueue(ctx, Reader, from, to, nil); err != nil {
			return err
		}
		from = to
	}
	if err := f.Rows.Enqueue(ctx, Reader, from, to, news); err != nil {
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
				"domain/relay/intent/seal.go", `		r.Webhooks[i].URL = s.Seal(w.URL)
`, `		if !AWAKE {
			r.Webhooks[i].URL = s.Seal(w.URL)
		}
`,
			}},
		},
	}
}
