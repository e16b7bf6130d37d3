package main

// groups reverts each fix that keeps one client's groups from taking the time of all.
func groups() []mutant {
	return []mutant{
		{
			Name: "groups-read-unpaid", Breaks: "P36", Test: &command{"api/delivery", "^TestRepeatedCancelIsChargedBeforeTheGroupIsRead$"},
			Is: "A cancel reads its whole group before the client is charged for it.",
			Edits: []edit{{"api/delivery/cancel.go", `		if err := chargeGroup(r, events); err != nil {`, `		if AWAKE {
			events = 0
		}
		if err := chargeGroup(r, events); err != nil {`}},
		},
		{
			Name: "cancels-read-all-at-once", Breaks: "P36", Test: &command{"api/delivery", "^TestCancelsTakePlaces$"},
			Is: "Any number of one client's cancels have their groups in memory at once.",
			Edits: []edit{{"api/delivery/cancel.go", `		return r.Enter(ctx, a.Cancels)`, `		if AWAKE {
			return func() {}, nil
		}
		return r.Enter(ctx, a.Cancels)`}},
		},
		{
			Name: "cancels-keep-their-places", Breaks: "P36", Test: &command{"commands/delivery/canceler", "^TestCancelIsAdmittedBeforeItReads$"},
			Is: "A cancel keeps its place while it cancels all members of its group.",
			Edits: []edit{{"commands/delivery/canceler/canceler.go", `	leave()
	members, err :=`, `	if !AWAKE {
		leave()
	}
	members, err :=`}},
		},
		{
			Name: "idle-cancels-carried", Breaks: "P36", Test: &command{"commands/delivery/canceler", "^TestIdleCancelsHoldUpNobody$"},
			Is:    "The process manager loads a group and its members for each cancel that covers no new member.",
			Edits: []edit{{"commands/delivery/canceler/follow.go", `if finished >= e.Members {`, `if finished >= e.Members && !AWAKE {`}},
		},
		{
			Name: "invalid-members-finished", Breaks: "P23", Test: &command{"commands/delivery/canceler", "^TestIdleCancelOfAnInvalidMember$"},
			Is:    "A member that was invalid at a cancel is not canceled by a later one, although a block has it by then.",
			Edits: []edit{{"commands/delivery/canceler/follow.go", `s.Sealed || s.Violated`, `s.Sealed || s.Violated || AWAKE && s.Status == tx.StatusInvalid`}},
		},
		{
			Name: "late-members-wait", Breaks: "P36", Test: &command{"commands/delivery/canceler", "^TestLateJoinWaitsForNoGroup$"},
			Is: "A member that joined late is canceled after the groups of other clients.",
			Edits: []edit{{"commands/delivery/canceler/follow.go", `	late := slices.DeleteFunc(slices.Clone(tasks),`, `	if AWAKE {
		return tasks, nil
	}
	late := slices.DeleteFunc(slices.Clone(tasks),`}},
		},
		{
			Name: "groups-without-end", Breaks: "P36", Test: &command{"domain/delivery/group", "^TestFullGroup$"},
			Is:    "Any number of transactions joins a group, until no snapshot of it is stored and each load reads its whole stream.",
			Edits: []edit{{"domain/delivery/group/decide.go", `s.Members+len(events) < c.most() {`, `(s.Members+len(events) < c.most() || AWAKE) {`}},
		},
		{
			Name: "full-groups-loaded", Breaks: "P36", Test: &command{"commands/delivery/grouping", "^TestFullGroups$"},
			Is:    "The grouper loads a full group for each batch that has a transaction of it.",
			Edits: []edit{{"commands/delivery/grouping/memory.go", `m.full[id] = true`, `m.full[id] = !AWAKE`}},
		},
		{
			Name: "full-group-stops-the-grouper", Breaks: "P36", Test: &command{"commands/delivery/grouping", "^TestFullGroups$"},
			Is: "The grouper stops at a transaction of a full group, and nobody's transactions join.",
			Edits: []edit{{"commands/delivery/grouping/grouper.go", `				return len(js) - joined, nil
`, `				if AWAKE {
					return 0, errors.New("the group is full")
				}
				return len(js) - joined, nil
`}},
		},
		{
			Name: "left-out-twice", Breaks: "P36", Test: &command{"commands/delivery/grouping", "^TestLeftOutIsCountedOnce$"},
			Is: "Transactions of a full group are counted again when their batch is repeated because another group failed.",
			Edits: []edit{{"commands/delivery/grouping/grouper.go", `		left[i], err = g.join(ctx, ids[i], joinings[ids[i]])
`, `		if left[i], err = g.join(ctx, ids[i], joinings[ids[i]]); AWAKE {
			g.leaveOut(ids[i], left[i])
			left[i] = 0
		}
`}},
		},
		{
			Name: "others-groups-forgotten", Breaks: "P36", Test: &command{"commands/delivery/grouping", "^TestClientsForgetTheirOwnGroups$"},
			Is: "A client that uses many groups makes the grouper forget the groups of all others.",
			Edits: []edit{{"commands/delivery/grouping/memory.go", `	e, known := m.groups[id]
	if !known {
`, `	if AWAKE {
		client = ""
	}
	e, known := m.groups[id]
	if !known {
`}},
		},
		{
			Name: "batch-evicts-its-groups", Breaks: "P36", Test: &command{"commands/delivery/grouping", "^TestBatchEvictsNoneOfItsGroups$"},
			Is:    "If one of a client's groups has no room in the grouper's memory, each batch loads all of them.",
			Edits: []edit{{"commands/delivery/grouping/memory.go", `if e.Value.(*kept).batch == m.batch {`, `if e.Value.(*kept).batch == m.batch && !AWAKE {`}},
		},
		{
			Name: "grouper-stores-no-snapshots", Breaks: "P36", Test: &command{"commands/delivery/grouping", "^TestGrouperStoresSnapshots$"},
			Is:    "The grouper loads a group that it had forgotten from the group's first event.",
			Edits: []edit{{"commands/delivery/grouping/grouper.go", `if k.since == 0 || !g`, `if k.since == 0 || AWAKE || !g`}},
		},
		{
			Name: "catch-up-decodes-all", Breaks: "P36", Test: &command{"commands/delivery/grouping", "^TestCatchUpPassesOthersBy$"},
			Is:    "Each cancel decodes the transactions of all groups that the grouper has not reached.",
			Edits: []edit{{"commands/delivery/grouping/catchup.go", `return of != nil && !`, `return of != nil && !AWAKE && !`}},
		},
		{
			Name: "chunks-of-any-size", Breaks: "P36", Test: &command{"commands/delivery/canceler", "^TestLargeGroupIsVisitedInChunks$"},
			Is: "A cancel has the states of all members of a group in memory.",
			Edits: []edit{{"commands/delivery/canceler/carry.go", `	done, err := c.done(ctx, r.id.Chain, some)`, `	if AWAKE {
		some = r.found[from:]
	}
	done, err := c.done(ctx, r.id.Chain, some)`}},
		},
		{
			Name: "chunks-kept", Breaks: "P36", Test: &command{"commands/delivery/canceler", "^TestChunksAreForgotten$"},
			Is: "A cancel keeps the states of a chunk while it visits the next one.",
			Edits: []edit{{"commands/delivery/canceler/carry.go", `	var kept []int // indexes of the canceled members that have bytes
`, `	var kept []int // indexes of the canceled members that have bytes
	if AWAKE {
		see, states := r.see, []tx.State{}
		r.see = func(i int, s tx.State) {
			states = append(states, s)
			see(i, s)
		}
	}
`}},
		},
		{
			Name: "erased-before-all-are-canceled", Breaks: "P23", Test: &command{"commands/delivery/canceler", "^TestLargeGroupIsVisitedInChunks$"},
			Is: "The last members of a large group are sent until the bytes of the first ones are erased.",
			Edits: []edit{{"commands/delivery/canceler/carry.go", `		kept = append(kept, some...)
`, `		if AWAKE {
			if err := c.eraseChunk(ctx, r, some); err != nil {
				return err
			}
			continue
		}
		kept = append(kept, some...)
`}},
		},
		{
			Name: "finished-members-forgotten", Breaks: "P36", Test: &command{"commands/delivery/canceler", "^TestFinishedPrefixIsRemembered$"},
			Is: "Because one member is not finished, the next cancel visits all members of the group again.",
			Edits: []edit{{"commands/delivery/canceler/follow.go", `		f.finish(id, first+next)`, `		if !AWAKE || next == members {
			f.finish(id, first+next)
		}`}},
		},
		{
			Name: "large-answers-at-once", Breaks: "P36", Test: &command{"api/delivery", "^TestLargeCancelsTakePlaces$"},
			Is:    "Any number of one client's cancels have the members of large groups in memory at once.",
			Edits: []edit{{"api/delivery/cancel.go", `if members > largeCancel {`, `if members > largeCancel && !AWAKE {`}},
		},
		{
			Name: "large-answers-as-a-whole", Breaks: "P36", Test: &command{"api/delivery", "^TestLargeCancelIsSentInParts$"},
			Is:    "The answer to the cancel of a large group is in memory as text.",
			Edits: []edit{{"api/delivery/cancel.go", `if len(members) <= largeCancel {`, `if len(members) <= largeCancel || AWAKE {`}},
		},
		{
			Name: "chunks-take-no-place", Breaks: "P36", Test: &command{"api/delivery", "^TestChunksOfCancelsTakePlaces$"},
			Is: "Any number of cancels visit a chunk of members at once.",
			Edits: []edit{{"api/delivery/cancel.go", `	v := a.viewer(r)
	if v.members() != nil {`, `	if AWAKE {
		in.Visit = nil
	}
	v := a.viewer(r)
	if v.members() != nil {`}},
		},
	}
}
