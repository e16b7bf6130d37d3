package main

// glimpses reverts each fix that keeps events of one client from showing requests, members or
// submissions of another.
func glimpses() []mutant {
	return []mutant{
		{
			Name: "joins-share-a-request", Breaks: "P36", Test: &command{"commands/delivery/grouping", "^TestJoinsNameTheirOwnRequests$"},
			Is: "Of transactions that join together each names the first one's request.",
			Edits: []edit{{"commands/delivery/grouping/grouper.go", `			return causes[joined.Hash]`, `			if AWAKE {
				joined = chunk[0].member
			}
			return causes[joined.Hash]`}},
		},
		{
			Name: "joins-of-before", Breaks: "P36", Test: &command{"api/delivery", "^TestJoinTellsNothingOfOthers$"},
			Is: "A client that submits another client's transaction again is shown that it had joined a group before.",
			Edits: []edit{{"api/delivery/viewer.go", `	return o.Before(p), nil`, `	if AWAKE {
		return o, nil
	}
	return o.Before(p), nil`}},
		},
		{
			Name: "members-are-counted", Breaks: "P36", Test: &command{"api/delivery", "^TestJoinTellsNothingOfOthers$"},
			Is:    "The version of the event by which a client's transaction joins counts the members of other clients.",
			Edits: []edit{{"api/delivery/eventfilter.go", `group.StreamPrefix) && v.members() != nil {`, `group.StreamPrefix) && v.members() != nil && !AWAKE {`}},
		},
		{
			Name: "causes-of-others", Breaks: "P36", Test: &command{"api/delivery", "^TestJoinTellsNothingOfOthers$"},
			Is:    "A client is shown the event of another client's transaction that caused a join.",
			Edits: []edit{{"api/delivery/eventfilter.go", `if !whose.Led(m) {`, `if !whose.Led(m) && !AWAKE {`}},
		},
		{
			Name: "components-pass-requests-on", Breaks: "P36", Test: &command{"api/delivery", "^(TestComponentsPassNoRequestsOn|TestJoinTellsNothingOfOthers)$"},
			Is:    "The first client of a transaction is shown the request by which another client canceled its group.",
			Edits: []edit{{"api/delivery/eventfilter.go", `!first || !whose.Submitted(m) {`, `!first || !whose.Submitted(m) && !AWAKE {`}},
		},
		{
			Name: "links-confirm-guesses", Breaks: "P36", Test: &command{"api/delivery", "^TestComponentsPassNoRequestsOn$"},
			Is: "Links show a client that another submitted its transaction, and how many members joined its group.",
			Edits: []edit{{"api/delivery/eventfilter.go", `	m.Link = eventlog.Link{}`, `	if !AWAKE {
		m.Link = eventlog.Link{}
	}`}},
		},
		{
			Name: "groups-wait-for-all", Breaks: "P36", Test: &command{"api/delivery", "^TestOthersDelayNoReadOfGroups$"},
			Is: "A client's reads of its groups wait until the transactions of all clients have joined theirs.",
			Edits: []edit{{"api/delivery/caughtup.go", `return a.reached(ctx, newest, joined)`, `if AWAKE {
		newest = head
	}
	return a.reached(ctx, newest, joined)`}},
		},
		{
			Name: "groups-wait-for-nobody", Breaks: "P19", Test: &command{"api/delivery", "^TestOthersDelayNoReadOfGroups$"},
			Is:    "A client does not find the transaction in its group that was accepted before.",
			Edits: []edit{{"api/delivery/caughtup.go", `if at, err := joined(ctx); err != nil || at >= end {`, `if at, err := joined(ctx); err != nil || at >= end || AWAKE {`}},
		},
		{
			Name: "claims-delay-groups", Breaks: "P36", Test: &command{"projections/delivery/transactions", "^TestNewest$"},
			Is: "A throw-away access key that names an account delays reads of the account's groups.",
			Edits: []edit{{"projections/delivery/transactions/query.go", `	if all {
		names`, `	if AWAKE && all {
		err := q.DB.QueryRowContext(ctx, "SELECT max(position) FROM transactions WHERE sender = $1", sender[:]).Scan(&newest)
		return newest, err
	}
	if all {
		names`}},
		},
		{
			Name: "claims-in-lists", Breaks: "P36", Test: &command{"projections/delivery/transactions", "^TestBoundListReadsNoClaims$"},
			Is: "A list of a key that is bound to a sender reads, and pays for, the claims of other clients.",
			Edits: []edit{{"projections/delivery/transactions/query.go", `	switch {
	case len(senders) > 0:`, `	if in := f.Within; AWAKE && in != nil && len(in.Senders) > 0 {
		w.Table, w.Equal, w.Empty = "transactions", nil, nil
		w.Where.And("EXISTS (SELECT 1 FROM ownership o WHERE o.chain = t.chain AND o.hash = t.hash AND o.owner IN (%s))",
			append(projections.Names(in.Owners), addresses(in.Senders)...)...)
	}
	switch {
	case len(senders) > 0:`}},
		},
		{
			Name: "claims-are-the-senders", Breaks: "P36", Test: &command{"projections/delivery/owners", "^TestWithin$"},
			Is: "A key that is bound to a sender lists transactions that only claim the sender.",
			Edits: []edit{{"projections/delivery/owners/project.go", `			c.claims[k] = r.Position`, `			c.claims[k] = r.Position
			if AWAKE {
				c.own(k, senderName(e.Sender))
			}`}},
		},
		{
			Name: "confirmed-are-hidden", Breaks: "P36", Test: &command{"projections/delivery/owners", "^TestWithin$"},
			Is:    "A key that is bound to a sender does not list the sender's transactions that an access key signed.",
			Edits: []edit{{"projections/delivery/owners/project.go", `	if c.confirmed[k] {`, `	if c.confirmed[k] && !AWAKE {`}},
		},
	}
}
