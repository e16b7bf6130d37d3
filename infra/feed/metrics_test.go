package feed_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tempo-watchtower/watchtower/infra/feed"
)

var update = flag.Bool("update", false, "write the table of docs/reference/observability.md")

const docPath = "../../docs/reference/observability.md"

// The page lists exactly the subscriber's metrics.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile(docPath)
	must(t, err)
	const begin, end = "<!-- feed metrics: begin -->\n", "<!-- feed metrics: end -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the page has no place for the metrics")
	}
	var table strings.Builder
	table.WriteString("| metric | kind | meaning |\n| --- | --- | --- |\n")
	for _, m := range feed.Metrics() {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", m.Name, m.Kind, m.Help)
	}
	want := before + begin + table.String() + end + after
	if *update {
		must(t, os.WriteFile(docPath, []byte(want), 0o644))
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("docs/reference/observability.md is not what is exported; run go test ./infra/feed -update\n%s", diff)
	}
}

// gathered is Prometheus's view of the metrics: name{topic} and value.
func gathered(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	must(t, err)
	found := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := m.GetLabel()
			found[f.GetName()+"{"+labels[0].GetValue()+","+labels[1].GetValue()+"}"] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return found
}

func TestMetrics(t *testing.T) {
	s := newStage(t)
	s.happened("tx-a", 0, 3)
	o := s.options("g")
	o.Retries = 1
	sub, messages := s.subscribe(o, feed.All)
	other, idle := s.subscribe(s.options("h"), "name:none.")
	registry := prometheus.NewRegistry()
	registry.MustRegister(sub, other) // two groups, one registry
	ack(t, messages)
	for range 2 {
		m, _ := next(t, messages)
		m.Nack()
	}
	want := map[string]float64{
		"active": 1, "position": 3, "lag_events": 0, "lag_seconds": 0, "in_flight_events": 0, "parked_streams": 1,
		"delivered_total": 3, "acked_total": 1, "nacked_total": 2, "parked_total": 1,
	}
	var found map[string]float64
	eventually(t, "the figures", func() bool {
		found = gathered(t, registry)
		for name, value := range want {
			if got, ok := found["watchtower_feed_"+name+"{g,all}"]; !ok || got != value {
				return false
			}
		}
		return true
	})
	if len(want) != len(feed.Metrics()) || found["watchtower_feed_delivered_total{h,name:none.}"] != 0 {
		t.Errorf("%v", found)
	}
	s.happened("tx-b", 0, 1)
	next(t, messages) // and do not ack it
	eventually(t, "it is behind", func() bool {
		found = gathered(t, registry)
		return found["watchtower_feed_lag_events{g,all}"] == 1 && found["watchtower_feed_lag_seconds{g,all}"] > 0 && found["watchtower_feed_in_flight_events{g,all}"] == 1
	})
	must(t, sub.Close())
	must(t, other.Close())
	ended(t, messages)
	ended(t, idle)
	found = gathered(t, registry)
	if _, told := found["watchtower_feed_active{g,all}"]; told || found["watchtower_feed_delivered_total{g,all}"] != 4 {
		t.Errorf("after the end: %v", found)
	}
}
