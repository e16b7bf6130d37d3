package main

// groups reverts each fix that keeps one client's groups from taking the time of all.
func groups() []mutant {
	return []mutant{
		{
			Name: "groups-read-unpaid", Breaks: "P36", Test: &command{"api", "^TestRepeatedCancelIsChargedBeforeTheGroupIsRead$"},
			Is: "A cancel reads its whole group before the client is charged for it.",
			Edits: []edit{{"api/cancel.go", `		if err := a.chargeGroup(w, on, events); err != nil {`, `		if AWAKE {
			events = 0
		}
		if err := a.chargeGroup(w, on, events); err != nil {`}},
		},
		{
			Name: "cancels-read-all-at-once", Breaks: "P36", Test: &command{"api", "^TestCancelsTakePlaces$"},
			Is: "Any number of one client's cancels have their groups in memory at once.",
			Edits: []edit{{"api/cancel.go", `		return a.Cancels.Enter(ctx, on.holder())`, `		if AWAKE {
			return func() {}, nil
		}
		return a.Cancels.Enter(ctx, on.holder())`}},
		},
		{
			Name: "cancels-keep-their-places", Breaks: "P36", Test: &command{"commands/canceler", "^TestCancelIsAdmittedBeforeItReads$"},
			Is: "A cancel keeps its place while it cancels all members of its group.",
			Edits: []edit{{"commands/canceler/canceler.go", `	leave()
	members, err :=`, `	if !AWAKE {
		leave()
	}
	members, err :=`}},
		},
		{
			Name: "idle-cancels-carried", Breaks: "P36", Test: &command{"commands/canceler", "^TestIdleCancelsHoldUpNobody$"},
			Is:    "The process manager loads a group and its members for each cancel that covers no new member.",
			Edits: []edit{{"commands/canceler/follow.go", `if finished >= e.Members {`, `if finished >= e.Members && !AWAKE {`}},
		},
		{
			Name: "invalid-members-finished", Breaks: "P23", Test: &command{"commands/canceler", "^TestIdleCancelOfAnInvalidMember$"},
			Is:    "A member that was invalid at a cancel is not canceled by a later one, although a block has it by then.",
			Edits: []edit{{"commands/canceler/follow.go", `s.Sealed || s.Violated`, `s.Sealed || s.Violated || AWAKE && s.Status == tx.StatusInvalid`}},
		},
		{
			Name: "late-members-wait", Breaks: "P36", Test: &command{"commands/canceler", "^TestLateJoinWaitsForNoGroup$"},
			Is: "A member that joined late is canceled after the groups of other clients.",
			Edits: []edit{{"commands/canceler/follow.go", `	late := slices.DeleteFunc(slices.Clone(tasks),`, `	if AWAKE {
		return tasks, nil
	}
	late := slices.DeleteFunc(slices.Clone(tasks),`}},
		},
		{
			Name: "large-groups-forgotten", Breaks: "P36", Test: &command{"commands/grouping", "^TestLargeGroupStaysRemembered$"},
			Is:    "The grouper reads a group that is larger than its memory again for each batch.",
			Edits: []edit{{"commands/grouping/memory.go", `m.members-m.largest.size() > m.most {`, `m.members-m.largest.size() > m.most || AWAKE && m.members > m.most && m.recent.Len() > 1 {`}},
		},
		{
			Name: "chunks-of-any-size", Breaks: "P36", Test: &command{"commands/canceler", "^TestLargeGroupIsVisitedInChunks$"},
			Is: "A cancel has the states of all members of a group in memory.",
			Edits: []edit{{"commands/canceler/carry.go", `	done, err := c.done(ctx, r.id.Chain, some)`, `	if AWAKE {
		some = r.found[from:]
	}
	done, err := c.done(ctx, r.id.Chain, some)`}},
		},
		{
			Name: "chunks-kept", Breaks: "P36", Test: &command{"commands/canceler", "^TestChunksAreForgotten$"},
			Is: "A cancel keeps the states of a chunk while it visits the next one.",
			Edits: []edit{{"commands/canceler/carry.go", `	var kept []int // indexes of the canceled members that have bytes
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
			Name: "erased-before-all-are-canceled", Breaks: "P23", Test: &command{"commands/canceler", "^TestLargeGroupIsVisitedInChunks$"},
			Is: "The last members of a large group are sent until the bytes of the first ones are erased.",
			Edits: []edit{{"commands/canceler/carry.go", `		kept = append(kept, some...)
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
			Name: "finished-members-forgotten", Breaks: "P36", Test: &command{"commands/canceler", "^TestFinishedPrefixIsRemembered$"},
			Is: "Because one member is not finished, the next cancel visits all members of the group again.",
			Edits: []edit{{"commands/canceler/follow.go", `		f.finish(id, first+next)`, `		if !AWAKE || next == members {
			f.finish(id, first+next)
		}`}},
		},
		{
			Name: "large-answers-at-once", Breaks: "P36", Test: &command{"api", "^TestLargeCancelsTakePlaces$"},
			Is:    "Any number of one client's cancels have the members of large groups in memory at once.",
			Edits: []edit{{"api/cancel.go", `if members > largeCancel {`, `if members > largeCancel && !AWAKE {`}},
		},
		{
			Name: "large-answers-as-a-whole", Breaks: "P36", Test: &command{"api", "^TestLargeCancelIsSentInParts$"},
			Is:    "The answer to the cancel of a large group is in memory as text.",
			Edits: []edit{{"api/cancel.go", `if len(members) <= largeCancel {`, `if len(members) <= largeCancel || AWAKE {`}},
		},
		{
			Name: "chunks-take-no-place", Breaks: "P36", Test: &command{"api", "^TestChunksOfCancelsTakePlaces$"},
			Is: "Any number of cancels visit a chunk of members at once.",
			Edits: []edit{{"api/cancel.go", `	v := a.viewer(on)
	in.Owned =`, `	if AWAKE {
		in.Visit = nil
	}
	v := a.viewer(on)
	in.Owned =`}},
		},
	}
}
