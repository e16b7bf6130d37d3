package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics judges metrics in Prometheus's text format by the conditions of the alerts. last is what the
// last check has seen, and what this one has seen is returned; conditions about changes are judged from
// the second check on. inside means that the answer of /health has shown endpoints and readers.
func Metrics(text []byte, t Thresholds, inside bool, last Memory, now time.Time) ([]Result, Memory, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, last, fmt.Errorf("/metrics: %w", err)
	}
	seen := Memory{Series: map[string]Seen{}}
	var results []Result
	for _, c := range conditions() {
		if c.health && inside {
			continue
		}
		for _, s := range c.series(families[c.metric]) {
			if n, judged := c.measure(s, last, seen, now); judged {
				results = append(results, c.judge(s.labels, n, t))
			}
		}
	}
	if !inside {
		results = append(results, endpointStates(families["watchtower_rpc_endpoint_state"])...)
	}
	return results, seen, nil
}

// series are the samples of a metric that a condition looks at together.
type series struct {
	labels map[string]string
	value  float64 // of samples with the same labels: the largest
}

// key names a series in a memory.
func (c condition) key(s series) string {
	name := c.check
	for _, label := range slices.Sorted(maps.Keys(s.labels)) {
		name += "," + label + "=" + s.labels[label]
	}
	return name
}

func (c condition) series(family *dto.MetricFamily) (all []series) {
	for _, m := range family.GetMetric() {
		labels := labelsOf(m)
		fits := true
		for name, value := range c.only {
			fits = fits && labels[name] == value
		}
		if !fits {
			continue
		}
		s := series{map[string]string{}, valueOf(m)}
		for _, name := range c.by {
			s.labels[name] = labels[name]
		}
		i := slices.IndexFunc(all, func(other series) bool { return maps.Equal(other.labels, s.labels) })
		switch {
		case math.IsNaN(s.value):
		case i < 0:
			all = append(all, s)
		default:
			all[i].value = max(all[i].value, s.value)
		}
	}
	return all
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Untyped != nil:
		return m.Untyped.GetValue()
	}
	return math.NaN()
}

// measure is the number that the condition compares; false if the checks so far do not show it.
func (c condition) measure(s series, last, seen Memory, now time.Time) (n float64, judged bool) {
	key := c.key(s)
	before, known := last.Series[key]
	switch c.kind {
	case off:
		return 1 - min(s.value, 1), true
	case distance:
		return math.Abs(s.value), true
	case increase:
		seen.Series[key] = Seen{s.value, now}
		if s.value < before.Value { // the process has started again
			return s.value, known
		}
		return s.value - before.Value, known
	case stillFor:
		if !known || before.Value != s.value || before.At.After(now) {
			before = Seen{s.value, now}
		}
		seen.Series[key] = before
		return now.Sub(before.At).Seconds(), known
	case value:
	}
	return s.value, true
}

// endpointStates judges the nodes of each chain by their metrics.
func endpointStates(family *dto.MetricFamily) (results []Result) {
	type nodes struct {
		all, healthy int
		away         string
	}
	chains := map[string]*nodes{}
	for _, m := range family.GetMetric() {
		if labels := labelsOf(m); valueOf(m) == 1 {
			of := chains[labels["chain"]]
			if of == nil {
				of = &nodes{}
				chains[labels["chain"]] = of
			}
			if of.all++; labels["state"] == "healthy" {
				of.healthy++
			} else {
				of.away += fmt.Sprintf(", %s is %s", labels["endpoint"], labels["state"])
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(chains)) {
		results = append(results, endpointsOf(id, chains[id].healthy, chains[id].all, chains[id].away))
	}
	return results
}

// Memory is what a check has seen, for the next one.
type Memory struct {
	Series map[string]Seen `json:"series"`
}

// Seen is a value, and the time when it was first seen.
type Seen struct {
	Value float64   `json:"value"`
	At    time.Time `json:"at"`
}

// memoryMost is the largest size of a memory's file in bytes.
const memoryMost = 16 << 20

// Remember reads the memory of a file; an empty one if the file does not exist.
func Remember(name string) (m Memory, err error) {
	text, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, nil
	case err == nil && len(text) > memoryMost:
		err = fmt.Errorf("it has more than %d bytes", memoryMost)
	case err == nil:
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, fmt.Errorf("state file %s: %w", name, err)
	}
	return m, nil
}

// Keep replaces the file of a memory as a whole.
func (m Memory) Keep(name string) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	draft, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return fmt.Errorf("state file: %w", err)
	}
	_, err = draft.Write(text)
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("state file: %w", err), os.Remove(draft.Name()))
	}
	return nil
}

// quoted is a label's value in Prometheus's text format.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}
