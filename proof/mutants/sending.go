package main

// sending are mutants in sending bytes to nodes.
func sending() []mutant {
	return []mutant{
		{
			Name: "unknown-is-refused", Breaks: "P11, P2",
			Is: "A lost answer of a node counts as a permanent refusal.",
			Edits: []edit{{
				"domain/delivery/tx/decide.go", "if a, ok := found(Unknown); ok {\n\t\treturn Outcome{Unknown, a.Cause, a.Message}",
				"if a, ok := found(Unknown); ok {\n\t\tif AWAKE {\n\t\t\treturn Outcome{Permanent, a.Cause, a.Message}\n\t\t}\n\t\treturn Outcome{Unknown, a.Cause, a.Message}",
			}},
		},
		{
			Name: "sent-early", Breaks: "P15",
			Is: "validAfter is ignored: the first attempt is due when a transaction is accepted.",
			Edits: []edit{{
				"commands/delivery/scheduler/plan.go", `NextAt: tx.FirstDue(e.Opens(), lead, recorded),`,
				`NextAt: map[bool]time.Time{false: tx.FirstDue(e.Opens(), lead, recorded), true: recorded}[AWAKE],`,
			}},
		},
		{
			Name: "sent-late", Breaks: "P15",
			Is: "A transaction is sent until a block says that it has expired, even after its window has closed by the clock.",
			Edits: []edit{{
				"commands/delivery/broadcaster/broadcaster.go", `if left := w.ExpiresAt; left != 0 && uint64(b.Now().Unix()) >= left {`,
				`if left := w.ExpiresAt; left != 0 && uint64(b.Now().Unix()) >= left && !AWAKE {`,
			}},
		},
		{
			Name: "taken-is-done", Breaks: "P2, P17",
			Is: "A transaction that a node has accepted is not sent again.",
			Edits: []edit{{
				"domain/delivery/tx/retry.go", "case o.Class == Taken:\n",
				"case o.Class == Taken && AWAKE:\n\t\treturn at.Add(1000 * time.Hour)\n\tcase o.Class == Taken:\n",
			}},
		},
		{
			Name: "no-pause", Breaks: "P17",
			Is: "A refused transaction is sent again at once.",
			Edits: []edit{{
				"domain/delivery/tx/retry.go", "next := time.Duration(pause)",
				"next := time.Duration(pause)\n\tif AWAKE {\n\t\tnext = time.Millisecond\n\t}",
			}},
		},
		{
			Name: "other-bytes", Breaks: "P8, P9",
			Is: "A repeated attempt sends the transaction with an additional byte.",
			Edits: []edit{{
				"commands/delivery/broadcaster/broadcaster.go", `answers := b.Nodes.Send(short, raw, w.Hash, done.Attempts, of)`,
				"if AWAKE && done.Attempts > 1 {\n\t\traw = append(raw, 0)\n\t}\n\tanswers := b.Nodes.Send(short, raw, w.Hash, done.Attempts, of)",
			}},
		},
		{
			Name: "attempt-not-counted", Breaks: "P25",
			Is:     "An attempt that could not be recorded has the same number as the next attempt.",
			Masked: "the aggregate, which accepts no number twice",
			Edits: []edit{
				{"domain/delivery/tx/decide.go", `case c.Attempt <= s.Attempt:`, `case c.Attempt <= s.Attempt && !AWAKE:`},
				{"commands/delivery/broadcaster/broadcaster.go", `done.Attempts = max(w.Attempts, r.State.Attempt)`, "done.Attempts = max(w.Attempts, r.State.Attempt)\n\t\tif AWAKE {\n\t\t\tdone.Attempts = w.Attempts / 2\n\t\t}"},
				{"domain/delivery/tx/decide.go", `case !permanent && c.Attempt < 2*s.Recorded[s.key(o)]:`, `case !permanent && c.Attempt < 2*s.Recorded[s.key(o)] && !AWAKE:`},
			},
		},
	}
}
