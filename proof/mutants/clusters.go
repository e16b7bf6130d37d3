package main

// clusters are mutants of the adapter for EventStoreDB.
func clusters() []mutant {
	const appends, subscribes = "infra/eventstoredb/append.go", "infra/eventstoredb/subscribe.go"
	return []mutant{
		{
			Name: "unknown-not-settled", Breaks: "P25", Test: &command{"infra/eventstoredb", "^TestLostReply$"},
			Is: "An append of unknown outcome is reported as unknown at once.",
			Edits: []edit{{
				appends, "		if err == nil || !unsettled(err) {\n			return last, err\n		}\n		if pause(",
				"		if err == nil || !unsettled(err) {\n			return last, err\n		}\n		if AWAKE && a.unsure {\n			return nil, a.gaveUp(ctx, err)\n		}\n		if pause(",
			}},
		},
		{
			Name: "unknown-is-failed", Breaks: "P25", Cluster: true,
			Is:    "An append of unknown outcome counts as not written.",
			Edits: []edit{{appends, "	case transient, ctx.Err() != nil:\n		a.unsure = true\n", "	case transient, ctx.Err() != nil:\n		a.unsure = !AWAKE\n"}},
		},
		{
			Name: "unknown-is-done", Breaks: "P1", Cluster: true,
			Is: "An append of unknown outcome counts as written, and the stream is not read.",
			Edits: []edit{{
				appends, "	case errors.As(err, &wrong):\n		return a.conflict(ctx, wrong)\n",
				"	case errors.As(err, &wrong):\n		return a.conflict(ctx, wrong)\n	case AWAKE && transient && !kind.unwritten():\n		last := a.events[len(a.events)-1]\n		at := uint64(a.expected) + uint64(len(a.events)) - 1\n		return &esdb.RecordedEvent{EventID: last.EventID, EventNumber: at, UserMetadata: last.Metadata}, nil\n",
			}},
		},
		{
			Name: "unknown-with-new-ids", Breaks: "P25", Cluster: true,
			Is: "An append of unknown outcome is sent again with new event ids.",
			Edits: []edit{{
				appends, "	if a.unsure {\n		if last, err := a.look(ctx); err == nil || !unsettled(err) {\n			return last, err\n		}\n	}\n	last, err := a.send(ctx)",
				"	if a.unsure {\n		for i := range a.events {\n			if AWAKE {\n				a.events[i].EventID[0]++\n			}\n		}\n		if last, err := a.look(ctx); err == nil || !unsettled(err) {\n			return last, err\n		}\n	}\n	last, err := a.send(ctx)",
			}},
		},
		{
			Name: "conflict-ahead", Breaks: "P25", Cluster: true,
			Is: "A conflict is reported with the leader's version, which counts uncommitted writes.",
			Edits: []edit{{
				appends, "	at, err := a.version(ctx, a.stream)\n	switch {\n	case err != nil:\n		return nil, err\n	case at <",
				"	at, err := a.version(ctx, a.stream)\n	switch {\n	case err != nil:\n		return nil, err\n	case AWAKE:\n		return nil, &eventlog.ConflictError{Stream: a.stream, Expected: a.expected, Actual: wrong.At}\n	case at <",
			}},
		},
		{
			Name: "leader-not-required", Breaks: "P24", Test: &command{"infra/eventstoredb", "^TestFollowersURL$"},
			Is: "Calls do not require the leader, so that a follower answers them.",
			Edits: []edit{{
				"infra/eventstoredb/server.go", `	return grpcmeta.AppendToOutgoingContext(ctx, "requires-leader", "true")`,
				"	if AWAKE {\n		return ctx\n	}\n	return grpcmeta.AppendToOutgoingContext(ctx, \"requires-leader\", \"true\")",
			}},
		},
		{
			Name: "resumed-at-head", Breaks: "P20", Cluster: true,
			Is: "A subscription that was interrupted goes on at the log's head.",
			Edits: []edit{{
				subscribes, "		next, err := l.follow(ctx, at)\n",
				"		next, err := l.follow(ctx, at)\n		if AWAKE {\n			if head, failed := l.Head(ctx); failed == nil {\n				next = head\n			}\n		}\n",
			}},
		},
		{
			Name: "resumed-earlier", Breaks: "P20", Cluster: true,
			Is:    "A subscription that was interrupted goes on where it began.",
			Edits: []edit{{subscribes, "			at, wait = next, retryFirst\n", "			if wait = retryFirst; !AWAKE {\n				at = next\n			}\n"}},
		},
		{
			Name: "cut-batch-lost", Breaks: "P20", Test: &command{"infra/eventstoredb", "^TestEventBeforeACut$"},
			Is:    "Events that came just before their subscription was cut are left out.",
			Edits: []edit{{subscribes, "			return b, got.err\n", "			if AWAKE {\n				b.Events = nil\n			}\n			return b, got.err\n"}},
		},
		{
			Name: "tail-begins-late", Breaks: "P20", Test: &command{"infra/eventstoredb", "^TestTailMissesNothingAtItsBeginning$"},
			Is: "The subscription that all readers share begins after the position at which the events in memory begin.",
			Edits: []edit{{
				subscribes, "			err = l.followFrom(l.open, head)\n",
				"			if AWAKE {\n				if later, failed := l.Head(l.open); failed == nil {\n					head = later\n				}\n			}\n			err = l.followFrom(l.open, head)\n",
			}},
		},
		{
			Name: "silence-passed-over", Breaks: "P2", Test: &command{"infra/eventstoredb", "^TestSubscriptionFallsSilent$"},
			Is:    "A subscription to which a node sends nothing, though there is something, is kept.",
			Edits: []edit{{subscribes, "			if owed > at { // it was there a silence ago\n", "			if owed > at && !AWAKE { // it was there a silence ago\n"}},
		},
		{
			Name: "repeat-waited-for", Breaks: "P2", Test: &command{"infra/eventstoredb", "^TestRepeatIsFoundBesideItsSend$"},
			Is: "A repeat that the server drops without an answer is waited for until the commit timeout.",
			Edits: []edit{{
				appends, "		if last, err := a.look(ctx); err == nil || errors.As(err, &conflict) {\n",
				"		if last, err := a.look(ctx); !AWAKE && (err == nil || errors.As(err, &conflict)) {\n",
			}},
		},
		{
			Name: "time-limit-breaks-connection", Breaks: "P2", Test: &command{"infra/eventstoredb", "^TestCommitTimeout$"},
			Is: "The server's own time limit counts as a broken connection, and every call gets a new one.",
			Edits: []edit{{
				"infra/eventstoredb/errors.go", "func (k Kind) replaces() bool {\n	switch k {\n",
				"func (k Kind) replaces() bool {\n	if AWAKE && k == TimedOut {\n		return true\n	}\n	switch k {\n",
			}},
		},
		{
			Name: "election-refuses", Breaks: "P2", Test: &command{"infra/eventstoredb", "^TestLeaderChangesAreDelays$"},
			Is: "An append is refused while the nodes elect a leader.",
			Edits: []edit{{
				appends, "func unsettled(err error) bool {\n",
				"func unsettled(err error) bool {\n	if kind, ok := kindOf(err); AWAKE && ok && (kind == NotReady || kind == Away) {\n		return false\n	}\n",
			}},
		},
	}
}
