package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChains(t *testing.T) {
	a, b, c := Endpoint{URL: NewSecret("http://a")}, Endpoint{URL: NewSecret("https://b:8545/KEY")}, Endpoint{URL: NewSecret("http://c")}
	list := `confirmations: 31337=3
chains:
  - id: 42431
    name: tempo
    endpoints: [http://a, {url: https://b:8545/KEY, name: bee, websocket: wss://b/KEY}]
  - id: 31337
    confirmations: 12
    endpoints:
      - http://c
  - {id: 1, confirmations: 20, endpoints: ["http://c"]}
`
	detailed := Endpoint{Name: "bee", URL: b.URL, WebSocket: NewSecret("wss://b/KEY")}
	rate, slots, none := 25, 16, 0
	limited := Endpoint{URL: NewSecret("http://d"), Budget: BudgetPart{Rate: &rate, Daily: &none, Concurrency: &slots}}
	for _, test := range []struct {
		name                          string
		in                            input
		want                          []Chain
		chains, confirmations, origin string
	}{
		{
			"text", input{env: []string{"WATCHTOWER_CHAINS= 42431 = http://a , https://b:8545/KEY ; 9223372036854775807=http://c"}},
			[]Chain{{ID: 42431, Name: "42431", Endpoints: []Endpoint{a, b}}, {ID: chainIDMax, Name: "9223372036854775807", Endpoints: []Endpoint{c}}},
			"42431=http://a,https://b:8545/…;9223372036854775807=http://c", "42431=0;9223372036854775807=0", "default",
		},
		{
			"text in the file", input{file: "chains: 1=http://a?x=y\n", flags: []string{"--confirmations=1=5"}},
			[]Chain{{ID: 1, Name: "1", Confirmations: 5, Endpoints: []Endpoint{{URL: NewSecret("http://a?x=y")}}}},
			"1=http://a/…", "1=5", "flag --confirmations",
		},
		{
			"list", input{file: list},
			[]Chain{
				{ID: 42431, Name: "tempo", Endpoints: []Endpoint{a, detailed}},
				{ID: 31337, Name: "31337", Confirmations: 3, Endpoints: []Endpoint{c}},
				{ID: 1, Name: "1", Confirmations: 20, Endpoints: []Endpoint{c}},
			},
			"42431=http://a,https://b:8545/…;31337=http://c;1=http://c", "42431=0;31337=3;1=20", "w.yaml:1",
		},
		{
			"confirmations of the list alone", input{file: "chains:\n  - {id: 1, confirmations: 2, endpoints: [http://a]}\n"},
			[]Chain{{ID: 1, Name: "1", Confirmations: 2, Endpoints: []Endpoint{a}}},
			"1=http://a", "1=2", "w.yaml:2",
		},
		{
			"budgets", input{file: "chains:\n  - {id: 1, endpoints: [{url: http://d, rate: 25, daily: 0, concurrency: 16}]}\n"},
			[]Chain{{ID: 1, Name: "1", Endpoints: []Endpoint{limited}}},
			"1=http://d", "1=0", "default",
		},
		{
			"0 overrides", input{file: list, env: []string{"WATCHTOWER_CONFIRMATIONS=31337=0"}, flags: []string{"--chains=31337=http://a"}},
			[]Chain{{ID: 31337, Name: "31337", Endpoints: []Endpoint{a}}},
			"31337=http://a", "31337=0", "env WATCHTOWER_CONFIRMATIONS",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, settings := test.in.mustResolve(t)
			if diff := cmp.Diff(test.want, got.Chains); diff != "" {
				t.Error(diff)
			}
			shown := []string{settings["chains"].Value, settings["confirmations"].Value, settings["confirmations"].Origin}
			if diff := cmp.Diff([]string{test.chains, test.confirmations, test.origin}, shown); diff != "" {
				t.Error(diff)
			}
			if err := got.CheckServe(); err != nil {
				t.Error(err)
			}
		})
	}
}

// An endpoint's own budget takes precedence over the default, and may lift it.
func TestBudgetOf(t *testing.T) {
	c, _ := input{
		file: "endpoints: {rate: 10, burst: 20, daily: 30}\nchains:\n  - {id: 1, endpoints: [http://a, {url: http://b, daily: 0, burst: 5}]}\n",
	}.mustResolve(t)
	var got []Budget
	for _, e := range c.Chains[0].Endpoints {
		got = append(got, c.Endpoints.Budget.Of(e))
	}
	want := []Budget{{Rate: 10, Burst: 20, Daily: 30, Concurrency: 64}, {Rate: 10, Burst: 5, Daily: 0, Concurrency: 64}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOverlap(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"127.0.0.1:1", "127.0.0.1:2", false},
		{"127.0.0.1:1", "127.0.0.2:1", false},
		{"127.0.0.1:0", "127.0.0.1:0", false},
		{"127.0.0.1:1", "127.0.0.1:1", true},
		{"127.0.0.1:1", "localhost:1", true},
		{"127.0.0.1:1", ":1", true},
		{"0.0.0.0:1", "10.0.0.1:1", true},
		{"[::]:1", "[::1]:1", true},
		{"[::1]:1", "127.0.0.1:1", false},
	} {
		if got := Overlap(test.a, test.b); got != test.want {
			t.Errorf("Overlap(%s, %s) = %v", test.a, test.b, got)
		}
		if got := Overlap(test.b, test.a); got != test.want {
			t.Errorf("Overlap(%s, %s) = %v", test.b, test.a, got)
		}
	}
}
