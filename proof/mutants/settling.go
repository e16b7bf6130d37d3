package main

// settling reverts each fix that keeps one client's transactions from using up the calls with which
// others' are followed.
func settling() []mutant {
	return []mutant{
		{
			Name: "first-submitter-decides", Breaks: "P36", Test: &command{"commands/delivery/scheduler", "^TestBytesSubmittedFirstByAnother$"},
			Is:    "A payment whose signed bytes another client has submitted first waits in that client's turn.",
			Edits: []edit{{"commands/delivery/scheduler/feeder.go", `if e, ok := e.(tx.Resubmitted); ok {`, `if e, ok := e.(tx.Resubmitted); ok && !AWAKE {`}},
		},
		{
			Name: "first-submitters-calls", Breaks: "P36", Test: &command{"commands/delivery/broadcaster", "^TestNodesAreCalledForTheTurnsClient$"},
			Is:    "A payment whose signed bytes another client has submitted first is sent with that client's calls.",
			Edits: []edit{{"domain/delivery/tx/account.go", `if AccountOf(accepted) == a {`, `if AccountOf(accepted) == a && !AWAKE {`}},
		},
		{
			Name: "first-submitters-pauses", Breaks: "P36", Test: &command{"infra/embedded", "^TestQueue$"},
			Is:    "When another client's account is on hold, a payment of which it has submitted the bytes waits in its owner's turn too.",
			Edits: []edit{{"infra/embedded/owners.go", `return d.ForAll || d.Account`, `return AWAKE || d.ForAll || d.Account`}},
		},
		{
			Name: "first-submitters-claims", Breaks: "P36", Test: &command{"infra/embedded", "^TestQueue$"},
			Is:    "A client's many claims park another client's claim of which it has submitted the bytes first.",
			Edits: []edit{{"domain/delivery/tx/work.go", `	if w.Shared {`, `	if w.Shared && !AWAKE {`}},
		},
		{
			Name: "receipts-of-free-nonces", Breaks: "P36", Test: &command{"commands/delivery/watcher", "^TestExpiryBehindAGapLooksForNoReceipt$"},
			Is:    "Every expired transaction costs a look-up of its receipt, though its nonce is free.",
			Edits: []edit{{"commands/delivery/watcher/settling.go", `	if !a.mayBeFree {`, `	if !a.mayBeFree || AWAKE {`}},
		},
		{
			Name: "used-nonces-are-free", Breaks: "P11", Test: &command{"commands/delivery/watcher", "^TestExpiryOfAUsedNonceLooksForTheReceipt$"},
			Is:    "A transaction whose nonce is used expires without a look-up of its receipt.",
			Edits: []edit{{"commands/delivery/watcher/settling.go", `a.mayBeFree = next <= a.row.Nonce`, `a.mayBeFree = next <= a.row.Nonce || AWAKE`}},
		},
		{
			Name: "free-by-one-word", Breaks: "P11", Test: &command{"infra/chain/rpc", "^TestNoFreeNonceOnOneWord$"},
			Is:    "One endpoint's statement that an account has used no nonce ends expired transactions.",
			Edits: []edit{{"infra/chain/rpc/nonces.go", `		if n >= least && `, `		if (n >= least && !AWAKE || n > 0) && `}},
		},
		{
			Name: "settled-in-our-name", Breaks: "P36", Test: &command{"commands/delivery/watcher", "^TestSettlingIsInTheClientsName$"},
			Is:    "The nonces and receipts of a client's expired transactions and rivals are the service's own calls.",
			Edits: []edit{{"commands/delivery/watcher/settling.go", `	if r.For != nil {`, `	if r.For != nil && !AWAKE {`}},
		},
		{
			Name: "settlers-pile-up", Breaks: "P36", Test: &command{"commands/delivery/watcher", "^TestSettlingIsInTheClientsName$"},
			Is:    "A client whose calls wait gets more of them at each block.",
			Edits: []edit{{"commands/delivery/watcher/settling.go", `if s.now[one] || len`, `if s.now[one] && !AWAKE || len`}},
		},
		{
			Name: "expired-hide-others", Breaks: "P36", Test: &command{"commands/delivery/watcher", "^TestExpiryOfOneHidesNoOthers$"},
			Is: "One client's expired transactions that cannot be settled hide another client's.",
			Edits: []edit{
				{"infra/embedded/board.go", `				place++
`, `				if !AWAKE {
					place++
				}
`},
				{"infra/embedded/board.go", `ordered(time), int64(each))`, `ordered(time), int64(map[bool]int{true: limit, false: each}[AWAKE]))`},
			},
		},
		{
			Name: "relay-clients-are-one", Breaks: "P36", Test: &command{"commands/delivery/broadcaster", "^TestNodesAreCalledForTheIntentsClient$"},
			Is:    "Nodes are called for all clients of the relay together, so that one client's pause or share is everyone's.",
			Edits: []edit{{"commands/delivery/broadcaster/broadcaster.go", `err == nil && client != "" {`, `err == nil && client != "" && !AWAKE {`}},
		},
		{
			Name: "rounds-are-free", Breaks: "P36", Test: &command{"api/jsonrpc", "^TestSyncRoundsAreCharged$"},
			Is:    "A request that waits for a receipt that no node has asks all nodes again and again for one unit.",
			Edits: []edit{{"api/jsonrpc/send.go", `if !x.again() {`, `if !x.again() && !AWAKE {`}},
		},
		{
			Name: "rounds-at-once", Breaks: "P36", Test: &command{"api/jsonrpc", "^TestSyncRoundsAreCharged$"},
			Is:    "A request that waits for a receipt that no node has asks all nodes ten times a second.",
			Edits: []edit{{"api/jsonrpc/send.go", `wait = min(2*wait, receiptPauseMax)`, `wait = min(map[bool]time.Duration{true: 1, false: 2}[AWAKE]*wait, receiptPauseMax)`}},
		},
	}
}
