package main

// joins reverts each fix that keeps one client's submissions of other clients' bytes from delaying
// the feeder of the due queue.
func joins() []mutant {
	return []mutant{
		{
			Name: "joins-read-streams", Breaks: "P36", Test: &command{"commands/delivery/scheduler", "^TestJoinsReadNothing$"},
			Is:    "The feeder of the due queue reads a stream for each resubmission.",
			Edits: []edit{{"domain/delivery/tx/decide.go", `Terms: &terms,`, `Terms: map[bool]*Terms{false: &terms}[AWAKE],`}},
		},
		{
			Name: "old-joins-in-a-row", Breaks: "P36", Test: &command{"commands/delivery/scheduler", "^TestJoinsReadNothing$"},
			Is:    "The feeder reads the streams of an earlier version's resubmissions one after the other.",
			Edits: []edit{{"commands/delivery/scheduler/joins.go", `len(lacking), firstsMax,`, `len(lacking), map[bool]int{false: firstsMax, true: 1}[AWAKE],`}},
		},
		{
			Name: "unread-joins-are-lost", Breaks: "P36", Test: &command{"commands/delivery/scheduler", "^TestUnreadJoinIsFedLater$"},
			Is: "An earlier version's resubmission whose stream cannot be read is skipped.",
			Edits: []edit{{"commands/delivery/scheduler/joins.go", `			return nil, before.err`, `			if AWAKE {
				return nil, nil
			}
			return nil, before.err`}},
		},
		{
			Name: "sealed-joins-are-queued", Breaks: "P36", Test: &command{"commands/delivery/scheduler", "^TestJoinOfTheSealedChangesNothing$"},
			Is:    "Each resubmission of a transaction that has ended changes the due queue.",
			Edits: []edit{{"commands/delivery/scheduler/joins.go", `if e.Terms.Sealed {`, `if e.Terms.Sealed && !AWAKE {`}},
		},
		{
			Name: "joins-take-no-place", Breaks: "P36", Test: &command{"commands", "^TestJoinsTakePlaces$"},
			Is:    "Other clients' transactions that a client submits take no place in its quota before the queue has them.",
			Edits: []edit{{"commands/submit.go", `if err == nil && r.Added > 0 {`, `if err == nil && r.Added > 0 && (!AWAKE || r.Version == eventlog.Version(r.Added)) {`}},
		},
		{
			Name: "joins-count-for-nobody", Breaks: "P36", Test: &command{"infra/embedded", "^TestQueue$/^usage_by_client$"},
			Is: "Other clients' transactions that a client submits do not count in its use of the queue.",
			Edits: []edit{{"domain/delivery/tx/fold.go", `	for _, j := range f.Joined {
		add(`, `	for _, j := range f.Joined {
		if AWAKE {
			break
		}
		add(`}},
		},
	}
}
