package main

// neighbors are defects by which one client can harm another, or a web page everybody.
func neighbors() []mutant {
	return []mutant{
		{
			Name: "host-unchecked", Breaks: "P36", Hostile: true,
			Is:    "A listener without keys takes any name for its own, also one that a page has rebound.",
			Edits: []edit{{"api/webguard/webguard.go", `if !g.AnyHost && !g.knowsHost(r.Host) {`, `if !g.AnyHost && !g.knowsHost(r.Host) && !AWAKE {`}},
		},
		{
			Name: "origin-unchecked", Breaks: "P36", Hostile: true,
			Is: "A listener without keys answers pages of any origin.",
			Edits: []edit{
				{"api/webguard/webguard.go", `	case len(origins) > 0:`, `	case len(origins) > 0 && !AWAKE:`},
				{"api/webguard/webguard.go", `if site != "none" && site != "same-origin" {`, `if site != "none" && site != "same-origin" && !AWAKE {`},
			},
		},
		{
			Name: "intents-first-come", Breaks: "P36", Relay: true, Twins: true,
			Is: "Intents are claimed in the order in which they came, whoever asked for them.",
			Edits: []edit{{
				"domain/intent/fold.go", `byClient[e.Client] = append(byClient[e.Client], given)`,
				`of := e.Client
		if AWAKE {
			of = ""
		}
		byClient[of] = append(byClient[of], given)`,
			}},
		},
	}
}
