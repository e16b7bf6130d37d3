package main

// verdicts are mutants in processing the chain's news.
func verdicts() []mutant {
	return []mutant{
		{
			Name: "sealed-at-head", Breaks: "P11",
			Is:     "A verdict is sealed as soon as it is announced: finality is ignored.",
			Masked: "other endpoints, which must agree that the block is final",
			Edits: []edit{
				{"commands/delivery/watcher/seal.go", `final, err := r.Node.Final(ctx, tip)`, "final, err := r.Node.Final(ctx, tip)\n\t\tif AWAKE {\n\t\t\tfinal, err = tip, nil\n\t\t}"},
				{"commands/delivery/watcher/seal.go", `if err := r.Node.ShownFinal(ctx, final); err != nil {`, `if err := r.Node.ShownFinal(ctx, final); err != nil && !AWAKE {`},
			},
		},
		{
			Name: "expired-by-clock", Breaks: "P11",
			Is:     "A transaction expires when its window has closed by the local clock.",
			Masked: "the aggregate, which requires the time of a block",
			Edits: []edit{
				{"commands/delivery/watcher/verdicts.go", `rows, err := r.Board.Expiring(ctx, r.Chain, tip.Time, settledMax, rowsMax)`, "now := tip.Time\n\tif AWAKE {\n\t\tnow = max(now, uint64(r.Now().Unix()))\n\t}\n\trows, err := r.Board.Expiring(ctx, r.Chain, now, settledMax, rowsMax)"},
				{"domain/delivery/tx/decide.go", `case !s.Accepted.Window.ClosedAt(c.Block.Time):`, `case !s.Accepted.Window.ClosedAt(c.Block.Time) && !(AWAKE && s.Accepted.Window.ClosedAt(uint64(c.At.Unix()))):`},
			},
		},
		{
			Name: "no-un-include", Breaks: "P11, P13",
			Is:     "A verdict stays when its block has left the chain.",
			Masked: "the check before a verdict is sealed",
			Edits: []edit{
				{"commands/delivery/watcher/verdicts.go", `for _, o := range r.orphans {`, "if AWAKE {\n\t\treturn nil\n\t}\n\tfor _, o := range r.orphans {"},
				{"commands/delivery/watcher/seal.go", `canonical[row.Block.Number].Hash != row.Block.Hash {`, `canonical[row.Block.Number].Hash != row.Block.Hash && !AWAKE {`},
				{"commands/delivery/watcher/seal.go", `if canonical.Hash != row.Block.Hash {`, `if canonical.Hash != row.Block.Hash && !AWAKE {`},
			},
		},
		{
			Name: "moved-silently", Breaks: "P13",
			Is: "A transaction moves from one block to another without a record that it was un-mined in between.",
			Edits: []edit{{
				"domain/delivery/tx/decide.go", `return []Event{Reorged{s.Block, c.Receipt.Block, s.unwanted(), c.At}, mined}, nil`,
				"if AWAKE {\n\t\t\treturn []Event{mined}, nil\n\t\t}\n\t\treturn []Event{Reorged{s.Block, c.Receipt.Block, s.unwanted(), c.At}, mined}, nil",
			}},
		},
		{
			Name: "un-include-on-silence", Breaks: "P13",
			Is: "A mined transaction is un-mined when no endpoint has a receipt for it at the moment.",
			Edits: []edit{{
				"commands/delivery/watcher/seal.go", "	receipt, ok := receipts[row.Hash]\n",
				"if AWAKE && row.Verdict == tx.StatusExecuted {\n\t\tif receipt, err := r.Node.FindReceipt(ctx, row.Hash, row.Block); receipt == nil && ctx.Err() == nil {\n\t\t\t_ = err\n\t\t\treturn r.command(ctx, row.Hash, tx.LoseBlock{Was: row.Block, Now: final, At: r.Now()})\n\t\t}\n\t}\n\treceipt, ok := receipts[row.Hash]\n",
			}},
		},
		{
			Name: "reorg-not-redelivered", Breaks: "P14, P2",
			Is: "An un-mined transaction is watched, and not sent again.",
			Edits: []edit{{
				"commands/delivery/scheduler/plan.go", "if e.Unwanted {\n", "if e.Unwanted || AWAKE {\n",
			}},
		},
		{
			Name: "late-report", Breaks: "P12",
			Is: "An attempt is recorded although the transaction has ended meanwhile.",
			Edits: []edit{{
				"domain/delivery/tx/decide.go", `case s.Verdict != StatusAbsent || s.Status == StatusInvalid:`,
				`case (s.Verdict != StatusAbsent || s.Status == StatusInvalid) && !AWAKE:`,
			}},
		},
		{
			Name: "sealed-twice", Breaks: "P12",
			Is: "A sealed verdict is sealed again, and a sealed transaction canceled.",
			Edits: []edit{
				{"domain/delivery/tx/decide.go", `if s.Verdict == StatusAbsent || s.Sealed || s.Block.Number > c.Final.Number {`, `if s.Verdict == StatusAbsent || s.Sealed && !AWAKE || s.Block.Number > c.Final.Number {`},
				{"domain/delivery/tx/decide.go", `case s.Settled() || s.Status == StatusInvalid:`, `case (s.Settled() || s.Status == StatusInvalid) && !AWAKE:`},
			},
		},
		{
			Name: "stale-without-receipt", Breaks: "P11",
			Is:     "A transaction whose nonce is used is stale, without a search for its receipt.",
			Masked: "the search for a receipt before a verdict is sealed, and by the receipts in blocks, which replace a verdict",
			Edits: []edit{
				{"domain/delivery/tx/decide.go", "gives way to the chain's word.\n\treturn []Event{mined}, nil", "gives way to the chain's word.\n\tif AWAKE && s.Verdict == StatusStale {\n\t\treturn nil, nil\n\t}\n\treturn []Event{mined}, nil"},
				{"commands/delivery/watcher/look.go", `receipt, err := w.receiptOf(ctx, node, s.Accepted.Hash, head)`, "receipt, err := w.receiptOf(ctx, node, s.Accepted.Hash, head)\n\tif AWAKE {\n\t\treceipt, err = nil, nil\n\t}"},
				{"commands/delivery/watcher/settling.go", `receipt, err := r.receiptOf(reads, node, a.row.Hash, a.at)`, "receipt, err := r.receiptOf(reads, node, a.row.Hash, a.at)\n\tif AWAKE {\n\t\treceipt, err = nil, nil\n\t}"},
			},
		},
		{
			Name: "one-word", Breaks: "P11",
			Is: "One endpoint's answer is believed, whether the other endpoints agree or not.",
			Edits: []edit{{"infra/chain/rpc/agree.go", `if need <= 0 {`, `if need <= 0 || AWAKE {`}, {
				"infra/chain/rpc/agree.go", `if len(p.witnesses(e)) > 0 && p.config.Agree > 1 &&`, `if len(p.witnesses(e)) > 0 && p.config.Agree > 1 && !AWAKE &&`,
			}, {"infra/chain/rpc/receipts.go", `sure, err := same >= r.pool.config.Agree, error(nil)`, `sure, err := same >= r.pool.config.Agree || AWAKE, error(nil)`}},
		},
		{
			Name: "erased-when-mined", Breaks: "P2",
			Is:     "The bytes are erased when a verdict is announced, not when it is sealed.",
			Masked: "the aggregate, which allows the erasure only when the bytes will not be sent again",
			Edits: []edit{
				{
					"commands/delivery/retention/retention.go", `r.part("retention.settled", r.Settings.Bytes, r.eraseSettled, "tx.finalized."),`,
					`map[bool]Part{
			false: r.part("retention.settled", r.Settings.Bytes, r.eraseSettled, "tx.finalized."),
			true:  r.part("retention.settled", 0, r.eraseSettled, "tx.mined.", "tx.finalized."),
		}[AWAKE],`,
				},
				{"domain/delivery/tx/decide.go", `case !s.Settled() && !s.unwanted():`, `case !s.Settled() && !s.unwanted() && !(AWAKE && s.Verdict != StatusAbsent):`},
			},
		},
		{
			Name: "place-not-saved", Breaks: "P13", Test: &command{"commands/delivery/watcher", "^TestCatchingUpAcrossTakeovers$"},
			Is:    "A watcher that is far behind saves its place only after a whole stretch of blocks.",
			Edits: []edit{{"commands/delivery/watcher/blocks.go", `if save && len(fresh) > 0 && done > 0 {`, `if save && len(fresh) > 0 && done > 0 && !AWAKE {`}},
		},
	}
}
