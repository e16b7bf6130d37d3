package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestServe(t *testing.T) {
	requests := `{"parse":["sum by (chain) (rate(sent_total{pool=\"hot\"}[5m])) > 0","sum("]}
{"look":{"at":60000,"lines":{"a":["sent_total{chain=\"1\"} 1"]},"expressions":["sent_total > 0","sent_total > 1","absent(other)"]}}
{"look":{"at":90000,"lines":{},"expressions":["sent_total"]}}
{"look":{"at":120000,"lines":{"a":["nonsense"]},"expressions":[]}}
`
	want := []string{
		`{"described":[{"metrics":[{"name":"sent_total","labels":["pool"]}],"grouping":["chain"]},{"error":`,
		`{"holds":[true,false,true]}`,
		`{"holds":[false]}`, // the line has gone from the scrape
		`{"error":`,
	}
	var out bytes.Buffer
	if err := serve(t.Context(), strings.NewReader(requests), &out); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, w := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], w) {
			t.Errorf("answer %d of %q does not begin with %s", i, got, w)
		}
	}
}
