package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// figure is a measured value's name, and its yardstick.
type figure struct {
	Section string `json:"section"`
	Store   string `json:"store,omitempty"`
	What    string `json:"what"`
	Unit    string `json:"unit"`
	// Yardstick describes Against, which is in the same unit.
	Yardstick string  `json:"yardstick,omitempty"`
	Against   float64 `json:"against,omitempty"`
	Goal      goal    `json:"goal,omitzero"`
}

// goal is a limit for the figure.
type goal struct {
	AtLeast float64 `json:"atLeast,omitempty"`
	AtMost  float64 `json:"atMost,omitempty"`
	// Reach makes the yardstick the minimum.
	Reach bool `json:"-"`
	// Within makes this multiple of the yardstick the maximum.
	Within float64 `json:"-"`
}

func (g goal) String() string {
	switch {
	case g.AtLeast != 0:
		return "≥ " + number(g.AtLeast)
	case g.AtMost != 0:
		return "≤ " + number(g.AtMost)
	}
	return ""
}

// kept reports whether a value meets the goal; "" without a goal.
func (g goal) kept(v float64) string {
	switch {
	case g == goal{}:
		return ""
	case v >= g.AtLeast && (g.AtMost == 0 || v <= g.AtMost):
		return "yes"
	}
	return "no"
}

// sheet collects the values of figures over the runs.
type sheet struct{ rows []*row }

// row is a figure of all runs: Against is the median of the runs' yardsticks.
type row struct {
	figure
	values, against []float64
}

func newSheet() *sheet { return &sheet{} }

// note adds one run's value of a figure.
func (s *sheet) note(f figure, v float64) {
	at := slices.IndexFunc(s.rows, func(r *row) bool {
		return r.Section == f.Section && r.Store == f.Store && r.What == f.What && r.Unit == f.Unit
	})
	if at < 0 {
		at = len(s.rows)
		s.rows = append(s.rows, &row{})
	}
	s.rows[at].add(f, v)
}

func (r *row) add(f figure, v float64) {
	r.figure, r.values, r.against = f, append(r.values, v), append(r.against, f.Against)
	if r.Against = median(r.against); r.Goal.Reach {
		r.Goal.AtLeast = r.Against
	}
	if r.Goal.Within > 0 {
		r.Goal.AtMost = r.Goal.Within * r.Against
	}
}

// durations records the median and the 99th percentile, in milliseconds. The goals apply to the
// latter.
func (s *sheet) durations(f figure, all []time.Duration) {
	f.Unit = "ms"
	what, aim := f.What, f.Goal
	f.What, f.Goal = what+", p50", goal{}
	s.note(f, milliseconds(percentile(all, 0.50)))
	f.What, f.Goal = what+", p99", aim
	s.note(f, milliseconds(percentile(all, 0.99)))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// percentile is the smallest value that at least a share p of all values does not exceed.
func percentile(all []time.Duration, p float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(int(math.Ceil(p*float64(len(sorted))))-1, 0)]
}

// median is the middle value, or the mean of the two in the middle.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// ordered returns the rows in printing order: by section, and within it the stores side by side.
func (s *sheet) ordered() []*row {
	order := sections()
	rows := slices.Clone(s.rows)
	first := map[string]int{} // position of each figure, over all stores
	for i, r := range rows {
		if name := r.Section + "\x00" + r.What + "\x00" + r.Unit; first[name] == 0 {
			first[name] = i + 1
		}
	}
	slices.SortStableFunc(rows, func(a, b *row) int {
		if d := slices.Index(order, a.Section) - slices.Index(order, b.Section); d != 0 {
			return d
		}
		return first[a.Section+"\x00"+a.What+"\x00"+a.Unit] - first[b.Section+"\x00"+b.What+"\x00"+b.Unit]
	})
	return rows
}

func (s *sheet) print(w io.Writer, about machine) error {
	fmt.Fprintln(w, about) //nolint:errcheck // Flush tells
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "measure\tstore\tfigure\tunit\tyardstick\tratio\tgoal\tkept") //nolint:errcheck // Flush tells
	section := ""
	for _, r := range s.ordered() {
		if r.Section != section {
			section = r.Section
			fmt.Fprintf(table, "%s\t\t\t\t\t\t\t\n", section) //nolint:errcheck // Flush tells
		}
		v := median(r.values)
		yardstick, ratio := "", ""
		if r.Against != 0 {
			yardstick, ratio = r.Yardstick+" "+number(r.Against), fmt.Sprintf("%.2f", v/r.Against)
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", //nolint:errcheck // Flush tells
			r.What, r.Store, number(v), r.Unit, yardstick, ratio, r.Goal, r.Goal.kept(v))
	}
	return table.Flush()
}

// number formats a value with three or four significant digits.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// told is a figure with its values, in JSON.
type told struct {
	figure
	Median float64   `json:"median"`
	Values []float64 `json:"values"`
	Ratio  float64   `json:"ratio,omitempty"`
	Kept   string    `json:"kept,omitempty"`
}

func (s *sheet) json(w io.Writer, about machine, runs []shown, besides []beside) error {
	out := struct {
		Machine machine  `json:"machine"`
		Figures []told   `json:"figures"`
		Runs    []shown  `json:"runs,omitempty"`
		Besides []beside `json:"neighbours,omitempty"`
	}{Machine: about, Runs: runs, Besides: besides}
	for _, r := range s.ordered() {
		t := told{figure: r.figure, Median: median(r.values), Values: r.values}
		if t.Kept = r.Goal.kept(t.Median); r.Against != 0 {
			t.Ratio = t.Median / r.Against
		}
		out.Figures = append(out.Figures, t)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}
