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
			Edits: []edit{{"commands/canceler/follow.go", `f.noteCancel(id, recorded.Position) >= e.Members {`, `f.noteCancel(id, recorded.Position) >= e.Members && !AWAKE {`}},
		},
		{
			Name: "invalid-members-finished", Breaks: "P23", Test: &command{"commands/canceler", "^TestIdleCancelOfAnInvalidMember$"},
			Is:    "A member that was invalid at a cancel is not canceled by a later one, although a block has it by then.",
			Edits: []edit{{"commands/canceler/follow.go", `m.State.Sealed || m.State.Violated`, `m.State.Sealed || m.State.Violated || AWAKE && m.State.Status == tx.StatusInvalid`}},
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
	}
}
