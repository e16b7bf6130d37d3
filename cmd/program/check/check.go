// Package check tells a monitoring system whether a running service is well: it asks the service's
// health, and compares its metrics with the conditions of the alerts.
package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// State is the state of a check, in the numbers of the Monitoring Plugins Development Guidelines.
type State int

const (
	OK State = iota
	Warning
	Critical
	Unknown
)

func (s State) String() string {
	switch s {
	case OK:
		return "OK"
	case Warning:
		return "WARNING"
	case Critical:
		return "CRITICAL"
	case Unknown:
	}
	return "UNKNOWN"
}

// MarshalText writes the state in lower case.
func (s State) MarshalText() ([]byte, error) { return []byte(strings.ToLower(s.String())), nil }

// rank orders states by urgency: an unknown state is less urgent than a critical one.
func (s State) rank() int { return slices.Index([]State{OK, Warning, Unknown, Critical}, s) }

// worse returns the more urgent state.
func worse(a, b State) State {
	if b.rank() > a.rank() {
		return b
	}
	return a
}

// Result is the result of one check.
type Result struct {
	Check  string            `json:"check"`
	State  State             `json:"state"`
	Says   string            `json:"says"`
	Labels map[string]string `json:"labels,omitempty"` // of the chain, endpoint, reader and so on
	// Value is the number that was compared, in Unit: "s" for seconds, empty for counts. From Warning
	// and Critical on, exclusive, the state is one of these. All are nil where no number decides.
	Value    *float64 `json:"value,omitempty"`
	Unit     string   `json:"unit,omitempty"`
	Warning  *float64 `json:"warning,omitempty"`
	Critical *float64 `json:"critical,omitempty"`
}

// Name is the check with its labels.
func (r Result) Name() string {
	name := r.Check
	for _, value := range r.values() {
		name += "_" + value
	}
	return name
}

// values are the values of the labels, by the labels' names.
func (r Result) values() (all []string) {
	for _, name := range r.names() {
		all = append(all, r.Labels[name])
	}
	return all
}

func (r Result) names() (all []string) {
	for name := range r.Labels {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// Report is the results of all checks.
type Report struct {
	State   State    `json:"state"`
	Results []Result `json:"results"`
}

// reportOf sorts results: the most urgent first.
func reportOf(results []Result) Report {
	slices.SortStableFunc(results, func(a, b Result) int {
		return cmp.Or(cmp.Compare(b.State.rank(), a.State.rank()), cmp.Compare(a.Name(), b.Name()))
	})
	r := Report{Results: results}
	for _, one := range results {
		r.State = worse(r.State, one.State)
	}
	return r
}

// Thresholds are the bounds that the flags set.
type Thresholds struct {
	LagWarning, LagCritical       uint64  // events
	OldestWarning, OldestCritical float64 // seconds
}

// above judges a value by two bounds, exclusive.
func above(r Result, value, warning, critical float64) Result {
	r.Value, r.Warning, r.Critical = &value, &warning, &critical
	switch {
	case value > critical:
		r.State = Critical
	case value > warning:
		r.State = Warning
	}
	return r
}

func count(n float64, what string) string { return fmt.Sprintf("%.0f %s", n, what) }
