package main

// claims reverts each fix that keeps one client's claims of access keys from using up the nodes that it
// shares with others, or from delaying others' claims.
func claims() []mutant {
	return []mutant{
		{
			Name: "keys-are-own-reads", Breaks: "P36", Test: &command{"infra/chain/rpc", "^(TestKeysAreAskedInTheClientsName|TestRepeatsPauseTheirClientAlone)$"},
			Is:    "Questions about the access keys of one client's claims use up the service's own reads, and a node's pause after one holds for all clients.",
			Edits: []edit{{"infra/chain/rpc/grants.go", `r.stateAt(ctx, e, useOf(ctx), at`, `r.stateAt(ctx, e, map[bool]purpose{false: useOf(ctx), true: broadcast + 1}[AWAKE], at`}},
		},
		{
			Name: "liar-keeps-clients-keys-back", Breaks: "P36", Test: &command{"infra/chain/rpc", "^TestALiarKeepsNoClientsKeysBack$"},
			Is:    "While the endpoint that reads use lies about access keys, no client's access key is confirmed.",
			Edits: []edit{{"infra/chain/rpc/grants.go", `other != nil && !isOwn(ctx) {`, `other != nil && !isOwn(ctx) && !AWAKE {`}},
		},
		{
			Name: "claims-ask-as-the-service", Breaks: "P36", Test: &command{"cmd/program/app", "^TestClaimsPauseNoPayment$"},
			Is:    "A node that asks for a pause because of one client's claims of access keys gets no other client's payment until the pause is over.",
			Edits: []edit{{"cmd/program/app/chain.go", `		Keychain:  func(client string) grouping.Keychain { return reader.Repeating(client) },`, "\t\tKeychain: func(client string) grouping.Keychain {\n\t\t\tif AWAKE {\n\t\t\t\treturn reader\n\t\t\t}\n\t\t\treturn reader.Repeating(client)\n\t\t},"}},
		},
		{
			Name: "claims-are-not-paced", Breaks: "P36", Test: &command{"commands/delivery/grouping", "^TestClaimsArePaced$"},
			Is:    "One client's claims of access keys cause hundreds of calls of nodes in one second.",
			Edits: []edit{{"commands/delivery/grouping/waiting.go", `len(keys) < keysMax) {`, `len(keys) < keysMax || AWAKE) {`}},
		},
		{
			Name: "new-claims-first", Breaks: "P36", Test: &command{"commands/delivery/grouping", "^TestNewClaimsKeepNoOldOnesWaiting$"},
			Is:    "A client's new claims of access keys are asked about before its older ones, which wait for as long as there are new ones.",
			Edits: []edit{{"commands/delivery/grouping/verifier.go", `until: r.Now()})`, `until: map[bool]time.Time{false: r.Now()}[AWAKE]})`}},
		},
		{
			Name: "claims-in-one-name", Breaks: "P36", Test: &command{"commands/delivery/grouping", "^(TestClaimsArePaced|TestFailedQuestionsRest)$"},
			Is:    "All clients' claims of access keys use the calls of one client, so that one client's pause holds for all of them.",
			Edits: []edit{{"commands/delivery/grouping/verifier.go", `r.Keychain(q.client), q.claims)`, `r.Keychain(map[bool]string{false: q.client, true: "mallory"}[AWAKE]), q.claims)`}},
		},
		{
			Name: "failed-questions-at-once-again", Breaks: "P36", Test: &command{"commands/delivery/grouping", "^TestFailedQuestionsRest$"},
			Is: "A question about access keys that no node answered is asked again in every step.",
			Edits: []edit{{"commands/delivery/grouping/waiting.go", `	if answered {
		of.until`, `	if answered || AWAKE {
		of.until`}},
		},
		{
			Name: "questions-in-one-line", Breaks: "P36", Test: &command{"commands/delivery/grouping", "^TestUnansweredQuestionsHoldNobody$"},
			Is: "While a node does not answer about one client's access keys, no other client's are asked about.",
			Edits: []edit{{"commands/delivery/grouping/verifier.go", `	return errors.Join(found, r.trouble.take())
}`, `	if AWAKE {
		r.asking.Wait()
	}
	return errors.Join(found, r.trouble.take())
}`}},
		},
	}
}
