package main

// costs reverts each fix that has a client pay for what its requests cost, or makes them cost less.
func costs() []mutant {
	return []mutant{
		{
			Name: "decoded-for-each-follower", Breaks: "P36", Test: &command{"api/relay", "^TestFollowersShareADecoding$"},
			Is:    "A public event of an intent is decoded for each client that follows it.",
			Edits: []edit{{"api/relay/tellings.go", `if kept.position == position {`, `if kept.position == position && !AWAKE {`}},
		},
		{
			Name: "followers-decode-requests", Breaks: "P36", Test: &command{"api/relay", "^TestFollowersShareADecoding$"},
			Is:    "The request of an intent, which may be large, is decoded for the clients that follow events.",
			Edits: []edit{{"api/relay/follow.go", `|| !public.Passes("", e.Name) {`, `|| !AWAKE && !public.Passes("", e.Name) {`}},
		},
		{
			Name: "large-reads-are-free", Breaks: "P36", Test: &command{"api/relay", "^TestLargeReadsAreCharged$"},
			Is: "A read of a large intent is charged as one request.",
			Edits: []edit{
				{"api/relay/get.go", `defer func() { r.ChargeRead(read) }()`, `defer func() {
			if !AWAKE {
				r.ChargeRead(read)
			}
		}()`},
				{"api/rest/request.go", `{ return replyRead(r.w, r.on, status, v) }`, `{
	if AWAKE {
		return reply(r.w, status, v)
	}
	return replyRead(r.w, r.on, status, v)
}`},
			},
		},
		{
			Name: "failed-reads-are-free", Breaks: "P36", Test: &command{"api/relay", "^TestFailedReadsAreCharged$"},
			Is: "A read of an intent that ends in an error is charged as one request.",
			Edits: []edit{{"api/relay/get.go", `			if read += len(recorded.Data); !yield(recorded, err) {`, `			if AWAKE && err != nil {
				read = 0
			}
			if read += len(recorded.Data); !yield(recorded, err) {`}},
		},
		{
			Name: "commands-are-free", Breaks: "P36", Test: &command{"api/relay", "^TestCommandsAreCharged$"},
			Is: "A cancel or a speed-up of a large intent is charged as one request.",
			Edits: []edit{{"api/relay/wish.go", `	if r.ChargeRead(a.Read); a.Err != nil {`, `	if AWAKE {
		a.Read = 0
	}
	if r.ChargeRead(a.Read); a.Err != nil {`}},
		},
		{
			Name: "repeated-requests-are-free", Breaks: "P36", Test: &command{"api/relay", "^TestRepeatedRequestsAreCharged$"},
			Is: "A small request under the key of a large intent reads that intent, and is charged as one request.",
			Edits: []edit{{"api/relay/create.go", `		r.ChargeRead(a.Read)
`, `		if AWAKE {
			break
		}
		r.ChargeRead(a.Read)
`}},
		},
		{
			Name: "waits-read-again", Breaks: "P36", Test: &command{"api/relay", "^TestWaitsReadNewEvents$"},
			Is: "A request that waits reads the whole intent at each of the intent's events.",
			Edits: []edit{{"commands/relay/intake/history.go", `	stream := intent.Stream(seen.State.Requested.ID)
`, `	stream := intent.Stream(seen.State.Requested.ID)
	if AWAKE {
		seen = handler.Result[intent.State]{}
	}
`}},
		},
		{
			Name: "waits-share-no-read", Breaks: "P36", Test: &command{"commands/tail", "^TestWaitsShareReads$"},
			Is: "Each event of a stream costs a read for each request that waits for the stream.",
			Edits: []edit{{"commands/tail/refresh.go", `case turn:`, `case turn || AWAKE:`}, {"commands/tail/refresh.go", `	case w.now != nil:`, `	case w.now != nil && !AWAKE:`}, {"commands/tail/refresh.go", `	case w.done >= max(`, `	case !AWAKE && w.done >= max(`}, {"commands/tail/refresh.go", `	w.now, r.err = nil, err`, `	if AWAKE {
		close(r.ended)
		return
	}
	w.now, r.err = nil, err`}},
		},
		{
			Name: "waits-share-old-reads", Breaks: "P36", Test: &command{"commands/tail", "^TestOldReadsAreNotShared$"},
			Is:    "A wait gets the result of a read that began before the event that woke the wait.",
			Edits: []edit{{"commands/tail/refresh.go", `(w.at >= w.told ||`, `(AWAKE || w.at >= w.told ||`}},
		},
		{
			Name: "new-waits-share-old-reads", Breaks: "P36", Test: &command{"commands/tail", "^TestNewWaitsRead$"},
			Is: "A new wait gets the result of a read that began before the wait.",
			Edits: []edit{{"commands/tail/refresh.go", `	w := t.waiting[stream]
	switch {`, `	w := t.waiting[stream]
	if AWAKE {
		first = 1
	}
	switch {`}},
		},
		{
			Name: "leaving-ends-other-waits", Breaks: "P36", Test: &command{"commands/tail", "^TestLeavingDuringARead$"},
			Is:    "A request that is broken off during a shared read ends the other waits for the stream.",
			Edits: []edit{{"commands/tail/refresh.go", `case ok && ctx.Err() == nil:`, `case ok && (AWAKE || ctx.Err() == nil):`}},
		},
		{
			Name: "intents-are-read-in-line", Breaks: "P36", Test: &command{"commands/relay/messages", "^TestIntentsAreReadSideBySide$"},
			Is: "The feeder of webhooks reads the intents that it does not remember one after the other.",
			Edits: []edit{{"commands/relay/messages/messages.go", `	met := map[eventlog.Stream]bool{}
`, `	met := map[eventlog.Stream]bool{}
	if AWAKE {
		events = nil
	}
`}},
		},
		{
			Name: "commands-decode-foreign-intents", Breaks: "P36", Test: &command{"api/relay", "^TestCommandsAreCharged$"},
			Is: "A cancel or a speed-up decodes an intent before it asks whose the intent is.",
			Edits: []edit{{"commands/relay/intake/intake.go", `	r, err := d.load(ctx, client, id, &read)`, `	if AWAKE {
		if _, err := d.Intents.Load(ctx, intent.Stream(id)); err != nil {
			return Answer{Err: err}
		}
	}
	r, err := d.load(ctx, client, id, &read)`}},
		},
		{
			Name: "conflicts-are-free", Breaks: "P36", Test: &command{"commands/relay/intake", "^TestCommandsCountBytes$"},
			Is: "A command that meets another command reads the intent again for free.",
			Edits: []edit{{"commands/relay/intake/history.go", `			if *m.read += len(recorded.Data); !yield(recorded, err) {`, `			if !AWAKE {
				*m.read += len(recorded.Data)
			}
			if !yield(recorded, err) {`}},
		},
		{
			Name: "hidden-events-are-looked-up", Breaks: "P36", Test: &command{"api/relay", "^TestHiddenEventsAreNotLookedUp$"},
			Is:    "A client pays for a look-up of the owner of an event that nobody is shown.",
			Edits: []edit{{"api/relay/follow.go", `	if failed == nil && !public {`, `	if failed == nil && !public && !AWAKE {`}},
		},
		{
			Name: "foreign-events-stop-streams", Breaks: "P36", Test: &command{"api/relay", "^TestUnreadableEventsOfOthers$"},
			Is: "An event that cannot be decoded stops the streams of other clients.",
			Edits: []edit{{"api/relay/follow.go", `	viewer := intent.Others
`, `	viewer := intent.Others
	if AWAKE {
		if _, err := d.Intake.Intents.Codec.Decode(r.Name, r.Data); err != nil {
			return nil, err
		}
	}
`}},
		},
		{
			Name: "overdrafts-are-forgiven", Breaks: "P36", Test: &command{"api/relay", "^TestLargeReadsAreCharged$"},
			Is: "A client does not pay for bytes that it has read beyond its rate.",
			Edits: []edit{{"api/rest/rate.go", `	b.overdrawn = r.beyond(missing)
	return quota`, `	if !AWAKE {
		b.overdrawn = r.beyond(missing)
	}
	return quota`}},
		},
		{
			Name: "large-answers-are-free", Breaks: "P36", Test: &command{"api/delivery", "^TestLargeAnswersAreCharged$"},
			Is: "A read of a large transaction is charged as one request.",
			Edits: []edit{{"api/rest/exchange.go", `	on.chargeAfter(w, on.readUnits(len(body)))`, `	if !AWAKE {
		on.chargeAfter(w, on.readUnits(len(body)))
	}`}},
		},
		{
			Name: "long-lists-are-free", Breaks: "P36", Test: &command{"api/delivery", "^TestListsPayForBytes$"},
			Is: "A list, or a group, is charged for the rows that it reads, and not for the bytes of a large answer.",
			Edits: []edit{
				{"api/delivery/list.go", `	return r.ReplyRead(http.StatusOK, out)`, `	if AWAKE {
		return r.Reply(http.StatusOK, out)
	}
	return r.ReplyRead(http.StatusOK, out)`},
				{"api/delivery/groups.go", `		return r.ReplyRead(http.StatusOK, out.Groups)`, `		if AWAKE {
			return r.Reply(http.StatusOK, out.Groups)
		}
		return r.ReplyRead(http.StatusOK, out.Groups)`},
				{"api/delivery/groups.go", `	if shown.CancelPlan, err = a.cancelPlan(ctx, v, g, leave); err != nil {
		return err
	}
	return r.ReplyRead(http.StatusOK, shown)`, `	if shown.CancelPlan, err = a.cancelPlan(ctx, v, g, leave); err != nil {
		return err
	}
	if AWAKE {
		return r.Reply(http.StatusOK, shown)
	}
	return r.ReplyRead(http.StatusOK, shown)`},
			},
		},
		{
			Name: "streams-pay-for-events-alone", Breaks: "P36", Test: &command{"api/rest", "^TestStreamsPayForBytes$"},
			Is:    "A stream pays as much for a large event as for a small one.",
			Edits: []edit{{"api/rest/scan.go", `f.owe(max(size-1, 0)/scanBytes, 0)`, `f.owe(map[bool]int{false: max(size-1, 0) / scanBytes}[AWAKE], 0)`}},
		},
		{
			Name: "undecoded-bytes-are-free", Breaks: "P36", Test: &command{"api/delivery", "^TestUndecodedBytesAreCharged$"},
			Is: "A read of a transaction that is not decoded in time does not pay for the transaction's bytes.",
			Edits: []edit{{"api/delivery/transaction.go", `		if r.ChargeRead(read); ok {`, `		if AWAKE && !ok {
			read = 0
		}
		if r.ChargeRead(read); ok {`}},
		},
		{
			Name: "rpc-reads-are-free", Breaks: "P36", Test: &command{"api/jsonrpc", "^TestPendingIsCharged$"},
			Is: "A call that shows a large transaction is charged as one request.",
			Edits: []edit{{"api/delivery/rpc.go", `defer func() { r.ChargeAfter(asked + int(more.Load())) }()`, `defer func() {
		if !AWAKE {
			r.ChargeAfter(asked + int(more.Load()))
		}
	}()`}},
		},
		{
			Name: "rpc-decodes-without-a-place", Breaks: "P36", Test: &command{"api/jsonrpc", "^TestPendingTakesPlaces$"},
			Is: "The calls of one batch decode as many transactions at once as are answered at once.",
			Edits: []edit{{"api/delivery/rpc.go", `			text, size, err := decoded(ctx, a.decodes, r, read, decode)
`, `			if AWAKE {
				raw, err := read(ctx)
				if err != nil {
					return nil, err
				}
				return decode(raw)
			}
			text, size, err := decoded(ctx, a.decodes, r, read, decode)
`}},
		},
		{
			Name: "bytes-wait-for-a-place", Breaks: "P36", Test: &command{"api/jsonrpc", "^TestPendingTakesPlaces$"},
			Is: "Any number of one client's reads hold a transaction's bytes while they wait to decode them.",
			Edits: []edit{{"api/delivery/transaction.go", `	leave, err := r.Enter(ctx, places`, `	if AWAKE {
		raw, err := read(ctx)
		read = func(context.Context) ([]byte, error) { return raw, err }
	}
	leave, err := r.Enter(ctx, places`}},
		},
		{
			Name: "next-nonces-are-free", Breaks: "P36", Test: &command{"api/jsonrpc", "^TestCountsAreCharged$"},
			Is:    "A call for the next nonce is charged as one request, however many waiting transactions it reads.",
			Edits: []edit{{"api/delivery/nonces.go", `	if next <= from {`, `	if next <= from || AWAKE {`}},
		},
		{
			Name: "next-nonces-sort-all-rows", Breaks: "P36", Test: &command{"infra/embedded", "^TestNextFreeReadsNoRowBehindAGap$"},
			Is: "The embedded store sorts all rows of a sequence, of all clients, to find the next free nonce.",
			Edits: []edit{{"infra/embedded/sequence.go", `	part := func(`, `	if AWAKE {
		return ` + "`SELECT nonce, client, phase = 'open' OR verdict = 'executed' FROM work WHERE chain = ?1 AND sender = ?2 AND nonce_key = ?3 AND phase IN ('open', 'announced') AND nonce >= ?4 ORDER BY nonce`" + `
	}
	part := func(`}},
		},
		{
			Name: "next-nonces-read-all-rows", Breaks: "P36", Test: &command{"infra/postgres", "^TestNextFreeReadsFewRows$"},
			Is:    "Postgres reads all rows of a sequence, of all clients, to find the next free nonce.",
			Edits: []edit{{"infra/postgres/sequence.go", `ORDER BY nonce LIMIT $4)` + "`", `ORDER BY nonce` + "` + map[bool]string{false: ` LIMIT $4`}[AWAKE] + `)`"}},
		},
		{
			Name: "next-nonces-take-all-places", Breaks: "P36", Test: &command{"api/jsonrpc", "^TestCountsTakePlaces$"},
			Is: "One client's calls for the next nonce use every connection of the due queue.",
			Edits: []edit{{"api/delivery/nonces.go", `	return leave, err
`, `	if AWAKE && err == nil {
		leave()
		leave = func() {}
	}
	return leave, err
`}},
		},
		{
			Name: "next-nonces-wait-in-a-place", Breaks: "P36", Test: &command{"cmd/program/app", "^TestNextFreeHoldsNoPlace$"},
			Is: "A call for the next nonce, or a request for groups, keeps other calls out while it waits until the due queue or the grouper has caught up.",
			Edits: []edit{{"api/rest/lists.go", `	defer leave()
	return query(ctx)`, `	defer func() {
		if !AWAKE {
			leave()
		}
	}()
	return query(ctx)`}},
		},
		{
			Name: "groups-poll-without-a-place", Breaks: "P36", Test: &command{"api/delivery", "^TestGroupsPollInPlaces$"},
			Is: "Requests for groups poll checkpoints on every connection of the due queue while the grouper is behind.",
			Edits: []edit{{"api/delivery/caughtup.go", `{ return rest.Placed(ctx, place, read) }`, `{
		if AWAKE {
			return read(ctx)
		}
		return rest.Placed(ctx, place, read)
	}`}},
		},
		{
			Name: "next-nonces-wait-without-end", Breaks: "P36", Test: &command{"api/delivery", "^TestNextNoncesTakePlaces$"},
			Is:    "Any number of one client's calls for the next nonce wait for a place.",
			Edits: []edit{{"api/delivery/nonces.go", `nonceShare, nonceQueue)`, `nonceShare, map[bool]int{false: nonceQueue}[AWAKE])`}},
		},
		{
			Name: "reads-take-submissions-slots", Breaks: "P36", Test: &command{"api/delivery", "^TestDecodesTakePlaces$"},
			Is: "A read of a transaction waits until submissions leave it a slot.",
			Edits: []edit{{"api/delivery/transaction.go", `	s, size, err := decoded(`, `	if AWAKE {
		select {
		case a.Submit.Slots <- struct{}{}:
			<-a.Submit.Slots
		case <-ctx.Done():
			return s, 0, false
		}
	}
	s, size, err := decoded(`}},
		},
		{
			Name: "hole-without-money", Breaks: "P5", Test: &command{"commands/relay/worker", "^TestBudgetOfAHole$"},
			Is:    "The money of an intent that gives its nonce back is free for other intents before the no-op at the nonce has any.",
			Edits: []edit{{"commands/relay/worker/square.go", `if s.Filled && len(s.Attempts) == 0 {`, `if s.Filled && len(s.Attempts) == 0 && !AWAKE {`}},
		},
		{
			Name: "leases-renewed-alone", Breaks: "P36", Test: &command{"infra/postgres", "^TestLeasesAreRenewedTogether$"},
			Is:    "Each lease is renewed by a commit of its own.",
			Edits: []edit{{"infra/postgres/leaseline.go", `if len(some) == leaseBatch ||`, `if len(some) == leaseBatch || AWAKE && len(some) == 1 ||`}},
		},
		{
			Name: "released-lease-taken", Breaks: "P36", Test: &command{"infra/postgres", "^TestLeaseLine$"},
			Is: "A lease is released beside its renewal, whose caller has gone.",
			Edits: []edit{
				{"infra/postgres/leaseline.go", `if done == nil {`, `if done == nil || AWAKE {`},
				{"infra/postgres/leaseline.go", `if !a.left && !a.held {`, `if (!a.left || AWAKE) && !a.held {`},
			},
		},
		{
			Name: "budgets-one-by-one", Breaks: "P36", Test: &command{"commands/relay/guard", "^TestHundredsOfLanesReserve$"},
			Is:    "Each lane reserves its budget by an append of its own.",
			Edits: []edit{{"eventlog/handler/each.go", `if i > 0 && len(decided)`, `if i > 0 && AWAKE || i > 0 && len(decided)`}},
		},
		{
			Name: "budgets-without-turns", Breaks: "P36", Test: &command{"commands/relay/guard", "^TestHundredsOfLanesReserve$"},
			Is: "One client's hundreds of lanes reserve their budget before another client's.",
			Edits: []edit{{"commands/relay/guard/line.go", `			commands[by] = append(commands[by], a)`, `			if AWAKE {
				by = ""
			}
			commands[by] = append(commands[by], a)`}},
		},
		{
			Name: "answers-not-charged", Breaks: "P36", Test: &command{"api/jsonrpc", "^TestAnswersAreCharged$"},
			Is:    "Any number of bytes of a node's answer costs one unit.",
			Edits: []edit{{"api/jsonrpc/methods.go", `x.weigh(len(result))`, `x.weigh(map[bool]int{false: len(result)}[AWAKE])`}},
		},
		{
			Name: "replies-decoded-at-once", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestClientsRepliesAreDecodedInTurn$"},
			Is:    "All replies to one client's calls are decoded at once, and everything else waits for a processor.",
			Edits: []edit{{"infra/chain/rpc/large.go", `!theirs || size <= sortedAlone {`, `!theirs || size <= sortedAlone || AWAKE {`}},
		},
		{
			Name: "connections-die-with-callers", Breaks: "P36", Test: &command{"infra/postgres", "^TestQueriesOutlastTheirCallers$"},
			Is:    "A request that its client breaks off closes a connection that all share.",
			Edits: []edit{{"infra/postgres/postgres.go", `Conn: c.Conn(), DeadlineDelay: ends}`, `Conn: c.Conn(), DeadlineDelay: map[bool]time.Duration{false: ends}[AWAKE]}`}},
		},
	}
}
