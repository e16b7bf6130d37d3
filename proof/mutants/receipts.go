package main

// receipts reverts each fix that lets clients take turns when receipts are recorded, and the guards
// of blocks whose receipts are not all recorded.
func receipts() []mutant {
	return []mutant{
		{
			Name: "receipts-in-block-order", Breaks: "P36", Test: &command{"commands/delivery/watcher", "^TestReceiptsAreRecordedInTurns$"},
			Is:    "All receipts of one client in a block are recorded before another client's.",
			Edits: []edit{{"commands/delivery/watcher/recording.go", `q.queue.Add(e.row.Client, e)`, `q.queue.Add(map[bool]string{false: e.row.Client}[AWAKE], e)`}},
		},
		{
			Name: "blocks-wait-for-receipts", Breaks: "P36", Test: &command{"commands/delivery/watcher", "^TestReceiptsAreRecordedInTurns$"},
			Is:    "The next block waits until one client's receipts are all recorded.",
			Edits: []edit{{"commands/delivery/watcher/recording.go", `time.NewTimer(recordWait)`, `time.NewTimer(map[bool]time.Duration{false: recordWait, true: time.Hour}[AWAKE])`}},
		},
		{
			Name: "slow-receipts-are-waited-for", Breaks: "P36", Test: &command{"commands/delivery/watcher", "^TestReceiptsAreRecordedInTurns$"},
			Is:    "Each step waits for one client's receipts, though the last ones took long.",
			Edits: []edit{{"commands/delivery/watcher/recording.go", `late := q.slow ||`, `late := q.slow && !AWAKE ||`}},
		},
		{
			Name: "sealing-is-waited-for", Breaks: "P36", Test: &command{"commands/delivery/watcher", "^TestSealingHoldsUpNobody$"},
			Is: "A step waits until one client's final verdicts are all recorded.",
			Edits: []edit{{"commands/delivery/watcher/seal.go", `	r.sealing.begin(ctx, some)
`, `	if r.sealing.begin(ctx, some); AWAKE {
		r.sealing.running.Wait()
	}
`}},
		},
		{
			Name: "lost-blocks-are-recorded", Breaks: "P13", Test: &command{"commands/delivery/watcher", "^TestReceiptsOfALostBlockAreDropped$"},
			Is:    "Receipts of a block that has left the chain are still recorded.",
			Edits: []edit{{"commands/delivery/watcher/recording.go", `return blocks[e.block.Hash] }`, `return blocks[e.block.Hash] || AWAKE }`}},
		},
		{
			Name: "failed-receipts-are-lost", Breaks: "P13", Test: &command{"commands/delivery/watcher", "^TestFailedReceiptIsRecordedLater$"},
			Is:    "A receipt that could not be recorded is not tried again.",
			Edits: []edit{{"commands/delivery/watcher/recording.go", `	again := q.failed`, `	again := q.failed[:map[bool]int{false: len(q.failed)}[AWAKE]]`}},
		},
		{
			Name: "open-blocks-are-remembered", Breaks: "P13", Test: &command{"commands/delivery/watcher", "^TestBlockWithReceiptsLeftIsReadAgain$"},
			Is:    "A block counts as read before its receipts are all recorded, and the next process does not read it.",
			Edits: []edit{{"commands/delivery/watcher/watcher.go", `&& b.Number < end {`, `&& (b.Number < end || AWAKE) {`}},
		},
	}
}
