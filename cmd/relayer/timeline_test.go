package main_test

import (
	"context"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// timeline stands in for a Prometheus with some relayers and their alerts. A test scrapes them
// as often as it likes, and each scrape counts as one per [step], so that alerts fire sooner.
type timeline struct {
	rules   []alert
	engine  *promql.Engine
	at      time.Time
	targets map[string]*rig.Service       // by instance
	series  map[string]map[string]*series // by metric name, then by instance and labels
	since   map[string]time.Time          // when an alert's expression became true
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

// series is one line's values, as Prometheus stores them.
type series struct {
	labels  labels.Labels
	samples []chunks.Sample
	seen    time.Time // last time
	stale   bool
}

// sample is a value at a time.
type sample struct {
	t int64 // milliseconds
	f float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) F() float64                    { return s.f }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

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
		at: time.Unix(1_800_000_000, 0), targets: map[string]*rig.Service{}, series: map[string]map[string]*series{}, since: map[string]time.Time{},
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute}),
	}
	t.Cleanup(func() { check(t, l.engine.Close()) })
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
				l.take(t, instance, strings.TrimSpace(line))
			}
		}
	}
	for _, all := range l.series {
		for _, s := range all {
			if s.seen != l.at && !s.stale {
				s.stale = true
				s.samples = append(s.samples, sample{l.at.UnixMilli(), math.Float64frombits(value.StaleNaN)})
			}
		}
	}
	for _, a := range rules {
		if !l.holds(t, w.ctx, a.Expr) {
			delete(l.since, a.Alert)
		} else if _, before := l.since[a.Alert]; !before {
			l.since[a.Alert] = l.at
		}
	}
}

// take stores one line of metrics.
func (l *timeline) take(t *testing.T, instance, line string) {
	t.Helper()
	cut := strings.LastIndexByte(line, ' ')
	f, err := strconv.ParseFloat(line[cut+1:], 64)
	check(t, err)
	name, _, _ := strings.Cut(line[:cut], "{")
	if l.series[name] == nil {
		l.series[name] = map[string]*series{}
	}
	key := instance + " " + line[:cut]
	s := l.series[name][key]
	if s == nil {
		of, err := parser.ParseMetric(line[:cut])
		check(t, err)
		s = &series{labels: labels.NewBuilder(of).Set("job", "relayer").Set("instance", instance).Labels()}
		l.series[name][key] = s
	}
	s.samples, s.seen, s.stale = append(s.samples, sample{l.at.UnixMilli(), f}), l.at, false
}

// holds reports whether an expression has a result now.
func (l *timeline) holds(t *testing.T, ctx context.Context, expression string) bool {
	t.Helper()
	q, err := l.engine.NewInstantQuery(ctx, l, nil, expression, l.at)
	check(t, err)
	defer q.Close()
	r := q.Exec(ctx)
	check(t, r.Err)
	found, err := r.Vector()
	check(t, err)
	return len(found) > 0
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

// timeline implements Prometheus's storage, for queries by metric name.

func (l *timeline) Querier(_, _ int64) (storage.Querier, error) { return l, nil }
func (l *timeline) Close() error                                { return nil }

func (l *timeline) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (l *timeline) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (l *timeline) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	var of map[string]*series
	for _, m := range matchers {
		if m.Name == labels.MetricName && m.Type == labels.MatchEqual {
			of = l.series[m.Value]
		}
	}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		s := of[key]
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
			found = append(found, storage.NewListSeries(s.labels, s.samples))
		}
	}
	return &seriesSet{left: found}
}

// seriesSet iterates over the result of a query.
type seriesSet struct {
	left []storage.Series
	here storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.here, s.left = s.left[0], s.left[1:]
	return true
}

func (s *seriesSet) At() storage.Series                { return s.here }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
