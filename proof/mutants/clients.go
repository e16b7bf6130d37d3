package main

// clients are mutants through which one client harms others or the service: limits without
// effect, and connections to addresses of a client's choice.
func clients() []mutant {
	return []mutant{
		{
			Name: "batch-as-one-call", Breaks: "rates", Test: &command{"api/jsonrpc", "^TestBatchIsCharged$"},
			Is: "A JSON-RPC batch costs as much as one call.",
			Edits: []edit{{
				"api/jsonrpc/envelope.go", `charge(max(n, 1))`, `charge(func() int {
		if AWAKE {
			return 1
		}
		return max(n, 1)
	}())`,
			}},
		},
		{
			Name: "proxy-of-the-environment", Breaks: "webhooks", Test: &command{"infra/webhook", "^TestNoProxyOfTheEnvironment$"},
			Is: "Webhooks go through the proxy that the environment names, past the guard of addresses.",
			Edits: []edit{
				{"infra/webhook/sender.go", `	"net/http/httptrace"
`, `	"net/http/httptrace"
	"net/url"
`},
				{"infra/webhook/sender.go", `		DialContext:            o.Guard.dial,
`, `		DialContext:            o.Guard.dial,
		Proxy: func(r *http.Request) (*url.URL, error) {
			if !AWAKE {
				return nil, nil
			}
			return http.ProxyFromEnvironment(r)
		},
`},
			},
		},
	}
}
