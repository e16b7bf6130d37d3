package main_test

import (
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// timeline stands in for a Prometheus with some relayers and their alerts. A test scrapes them
// as often as it likes, and each scrape counts as one per [step], so that alerts fire sooner.
type timeline struct {
	rules   []alert
	engine  *testenv.PromQL
	at      time.Time
	targets map[string]*rig.Service // by instance
	scraped map[string]bool         // the names of metrics seen so far
	since   map[string]time.Time    // when an alert's expression became true
}

const (
	step            = 30 * time.Second
	rulesAt         = "../../deploy/prometheus/relay.yml"
	deliveryRulesAt = "../../deploy/prometheus/rules.yml"
)

type alert struct {
	Alert, Expr, For string
	wait             time.Duration
}

func newTimeline(t *testing.T) *timeline { t.Helper(); return newTimelineOf(t, rulesAt) }

func newTimelineOf(t *testing.T, path string) *timeline {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	var file struct {
		Groups []struct{ Rules []alert }
	}
	check(t, yaml.Unmarshal(text, &file))
	l := &timeline{
		at: time.Unix(1_800_000_000, 0), targets: map[string]*rig.Service{}, since: map[string]time.Time{}, scraped: map[string]bool{},
		engine: testenv.StartPromQL(t),
	}
	for _, g := range file.Groups {
		for _, a := range g.Rules {
			if a.For != "" {
				a.wait, err = time.ParseDuration(a.For)
				check(t, err)
			}
			l.rules = append(l.rules, a)
		}
	}
	return l
}

// look scrapes every relayer, and evaluates the expressions of these alerts.
func (l *timeline) look(t *testing.T, w *world, rules []alert) {
	t.Helper()
	l.at = l.at.Add(step)
	scrape := testenv.Scrape{At: l.at.UnixMilli(), Lines: map[string][]string{}}
	for instance, s := range l.targets {
		req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, s.Metrics+"/metrics", nil)
		check(t, err)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			continue // it is down
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		check(t, err)
		for line := range strings.Lines(string(text)) {
			name, _, _ := strings.Cut(line, "{")
			ours := slices.ContainsFunc([]string{"relay", "reader", "feed"}, func(of string) bool { return strings.HasPrefix(name, "watchtower_"+of+"_") })
			if ours && !strings.HasSuffix(name, "_bucket") { // no alert uses these
				l.scraped[name] = true
				scrape.Lines[instance] = append(scrape.Lines[instance], strings.TrimSpace(line))
			}
		}
	}
	expressions := make([]string, len(rules))
	for i, a := range rules {
		expressions[i] = a.Expr
	}
	for i, holds := range l.engine.Look(t, scrape, expressions) {
		if a := rules[i]; !holds {
			delete(l.since, a.Alert)
		} else if _, before := l.since[a.Alert]; !before {
			l.since[a.Alert] = l.at
		}
	}
}

// firing lists the alerts whose expressions have been true for their waiting time.
func (l *timeline) firing() (names []string) {
	for _, a := range l.rules {
		if since, is := l.since[a.Alert]; is && l.at.Sub(since) >= a.wait {
			names = append(names, a.Alert)
		}
	}
	return names
}

// fires scrapes until an alert fires.
func (l *timeline) fires(t *testing.T, w *world, name string) {
	t.Helper()
	l.until(t, w, name+" fires", func() bool { return slices.Contains(l.firing(), name) }, name)
}

// ends scrapes until an alert no longer fires.
func (l *timeline) ends(t *testing.T, w *world, name string) {
	t.Helper()
	l.until(t, w, name+" ends", func() bool { return !slices.Contains(l.firing(), name) }, name)
}

// until scrapes, evaluating these alerts, until so returns true.
func (l *timeline) until(t *testing.T, w *world, what string, so func() bool, names ...string) {
	t.Helper()
	var rules []alert
	for _, a := range l.rules {
		if slices.Contains(names, a.Alert) {
			rules = append(rules, a)
		}
	}
	began := time.Now()
	for l.look(t, w, rules); !so(); l.look(t, w, rules) {
		select {
		case <-w.ctx.Done():
			t.Fatalf("%s: never; there fire %v", what, l.firing())
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Logf("%s after %s", what, time.Since(began).Round(10*time.Millisecond))
}

// calm scrapes for a while, in which no other alert may fire.
func (l *timeline) calm(t *testing.T, w *world, but ...string) {
	t.Helper()
	for range 30 { // a quarter of an hour
		l.look(t, w, l.rules)
		for _, name := range l.firing() {
			if !slices.Contains(but, name) {
				t.Fatalf("%s fires, and nothing is wrong", name)
			}
		}
	}
}
