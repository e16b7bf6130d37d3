package metrics_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/goccy/go-yaml"
)

// known is every name an expression may ask for, with its labels.
func known() map[string][]string {
	process := []string{"job", "instance"} // what Prometheus adds
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
	return names
}

// judge parses an expression and checks each name and label in it.
func judge(t *testing.T, where, expression string, names map[string][]string) {
	t.Helper()
	expression = strings.ReplaceAll(expression, "$__rate_interval", "5m")
	e, err := metricsql.Parse(expression)
	if err != nil {
		t.Errorf("%s: %v\n%s", where, err, expression)
		return
	}
	var allowed []string
	metricsql.VisitAll(e, func(e metricsql.Expr) {
		m, ok := e.(*metricsql.MetricExpr)
		if !ok {
			return
		}
		for _, filters := range m.LabelFilterss {
			labels, ok := names[filters[0].Value]
			if filters[0].Label != "__name__" || !ok {
				t.Errorf("%s asks for %q, which is not exported", where, filters[0].Value)
				return
			}
			for _, f := range filters[1:] {
				if !slices.Contains(labels, f.Label) {
					t.Errorf("%s: %s has no label %s", where, filters[0].Value, f.Label)
				}
			}
			allowed = append(allowed, labels...)
		}
	})
	metricsql.VisitAll(e, func(e metricsql.Expr) {
		a, ok := e.(*metricsql.AggrFuncExpr)
		if !ok {
			return
		}
		for _, label := range a.Modifier.Args {
			if !slices.Contains(allowed, label) {
				t.Errorf("%s: nothing in it has the label %s", where, label)
			}
		}
	})
}

type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

// Every rule asks for what is exported, and every alert is explained.
func TestRules(t *testing.T) {
	text, err := os.ReadFile(rulesPath)
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
	page, err := os.ReadFile(docPath)
	if err != nil {
		t.Fatal(err)
	}
	names, alerts := known(), 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			judge(t, r.Record+r.Alert, r.Expr, names)
			if r.Record != "" {
				names[r.Record] = []string{"job", "chain", "stage"}
				continue
			}
			alerts++
			if severity := r.Labels["severity"]; severity != "page" && severity != "ticket" || r.Annotations["summary"] == "" {
				t.Errorf("%s: severity %q, summary %q", r.Alert, severity, r.Annotations["summary"])
			}
			if !strings.Contains(string(page), "| `"+r.Alert+"` |") {
				t.Errorf("%s is not in docs/observability.md", r.Alert)
			}
		}
	}
	if told := strings.Count(string(page), "| `Watchtower"); told != alerts {
		t.Errorf("%d alerts, the page has %d", alerts, told)
	}
}

// Every panel asks for what is exported, and for something.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(boardPath)
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
	seen := map[int]bool{}
	for _, p := range board.Panels {
		if seen[p.ID] || p.Title == "" || (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("panel %d %q has %d targets", p.ID, p.Title, len(p.Targets))
		}
		seen[p.ID] = true
		for _, target := range p.Targets {
			judge(t, p.Title, target.Expr, known())
		}
	}
	if len(seen) < 10 {
		t.Errorf("%d panels", len(seen))
	}
}
