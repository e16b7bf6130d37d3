package metrics_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/tempo-watchtower/watchtower/infra/feed"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// known is every metric name that an expression may use, with its labels.
func known() map[string][]string {
	process := []string{"job", "instance"} // added by Prometheus
	names := map[string][]string{
		"up": process, "process_resident_memory_bytes": process, "go_memstats_heap_inuse_bytes": process, "go_goroutines": process,
	}
	for _, d := range whole().Described() {
		labels := append(slices.Clone(d.Labels), process...)
		names[d.Name] = labels
		if d.Kind == "histogram" {
			names[d.Name+"_sum"], names[d.Name+"_count"] = labels, labels
			names[d.Name+"_bucket"] = append(slices.Clone(labels), "le")
			delete(names, d.Name)
		}
	}
	for _, m := range feed.Metrics() { // exported by consumers' own processes
		names[m.Name] = append([]string{"group", "topic"}, process...)
	}
	return names
}

// judge parses an expression and checks each name and label in it.
func judge(t *testing.T, parser *testenv.PromQL, where, expression string, names map[string][]string) {
	t.Helper()
	d := parser.Describe(t, strings.ReplaceAll(expression, "$__rate_interval", "5m"))[0]
	if d.Error != "" {
		t.Errorf("%s: %v\n%s", where, d.Error, expression)
		return
	}
	var allowed []string
	for _, m := range d.Metrics {
		labels, ok := names[m.Name]
		if !ok {
			t.Errorf("%s asks for %q, which is not exported", where, m.Name)
			continue
		}
		for _, label := range m.Labels {
			if !slices.Contains(labels, label) {
				t.Errorf("%s: %s has no label %s", where, m.Name, label)
			}
		}
		allowed = append(allowed, labels...)
	}
	for _, label := range d.Grouping {
		if !slices.Contains(allowed, label) {
			t.Errorf("%s: nothing in it has the label %s", where, label)
		}
	}
}

type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

// alerts returns the alerts of a rules file, after checking that all its expressions use
// exported metrics.
func alerts(t *testing.T, path string) (all []rule) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	names, parser := known(), testenv.StartPromQL(t)
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			judge(t, parser, r.Record+r.Alert, r.Expr, names)
			if r.Record != "" {
				names[r.Record] = []string{"job", "chain", "stage"}
				continue
			}
			if severity := r.Labels["severity"]; severity != "page" && severity != "ticket" || r.Annotations["summary"] == "" {
				t.Errorf("%s: severity %q, summary %q", r.Alert, severity, r.Annotations["summary"])
			}
			all = append(all, r)
		}
	}
	return all
}

// Every rule uses exported metrics, and every alert is documented.
func TestRules(t *testing.T) {
	page, err := os.ReadFile(docPath)
	if err != nil {
		t.Fatal(err)
	}
	all := alerts(t, rulesPath)
	for _, r := range all {
		if !strings.Contains(string(page), "| `"+r.Alert+"` |") {
			t.Errorf("%s is not in docs/reference/observability.md", r.Alert)
		}
	}
	if told := strings.Count(string(page), "| `Watchtower"); told != len(all) {
		t.Errorf("%d alerts, the page has %d", len(all), told)
	}
}

// Every alert of the relay links to a runbook page: its meaning, the things to look at, and the
// actions. Metrics named there are exported.
func TestRelayRules(t *testing.T) {
	const path, place = "../../docs/howto/relay-runbook.md", "/docs/howto/relay-runbook.md#"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		name, page, _ := strings.Cut(part, "\n")
		pages[name] = page
	}
	all, exported := alerts(t, "../../deploy/prometheus/relay.yml"), known()
	for _, r := range all {
		page := pages[r.Alert]
		if !strings.Contains(page, "\n**Look at** ") || !strings.Contains(page, "\n**Do:** ") {
			t.Errorf("%s has no whole page", r.Alert)
		}
		if url := r.Annotations["runbook_url"]; !strings.HasSuffix(url, place+strings.ToLower(r.Alert)) {
			t.Errorf("%s leads to %s", r.Alert, url)
		}
		for _, name := range regexp.MustCompile("`(watchtower_[a-z_]+)").FindAllStringSubmatch(page, -1) {
			_, counted := exported[name[1]+"_count"] // a histogram
			if _, ok := exported[name[1]]; !ok && !counted {
				t.Errorf("%s speaks of %s, which is not exported", r.Alert, name[1])
			}
		}
	}
	if len(pages) != len(all) {
		t.Errorf("%d alerts, and %d pages", len(all), len(pages))
	}
}

// Every panel uses at least one metric, and only exported ones.
func TestDashboard(t *testing.T) {
	for _, board := range []string{"watchtower", "relay"} {
		t.Run(board, func(t *testing.T) { judgeBoard(t, boards+board+".json") })
	}
}

func judgeBoard(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			ID      int
			Type    string
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	seen, parser := map[int]bool{}, testenv.StartPromQL(t)
	for _, p := range board.Panels {
		if seen[p.ID] || p.Title == "" || (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("panel %d %q has %d targets", p.ID, p.Title, len(p.Targets))
		}
		seen[p.ID] = true
		for _, target := range p.Targets {
			judge(t, parser, p.Title, target.Expr, known())
		}
	}
	if len(seen) < 10 {
		t.Errorf("%d panels", len(seen))
	}
}
