package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/simulation"
)

// sum is the summary of several worlds.
type sum struct {
	worlds, broken            int
	faulty, simulated         time.Duration
	requests, retries, events int
	sent, steps, lives        int
	wall, busy                time.Duration
	faults, some, points      map[string]int
	judged                    map[string]int // cases of each promise
	in                        map[string]int // number of worlds with a fault or event
	twins                     int
	alone, beside             delays // of victims, over all twin worlds
}

// delays are one client's delays.
type delays struct{ sends, submits []time.Duration }

func (d *delays) add(l promises.Life) {
	d.sends, d.submits = append(d.sends, l.Sends...), append(d.submits, l.Submits...)
}

func newSum() *sum {
	return &sum{faults: map[string]int{}, some: map[string]int{}, points: map[string]int{}, judged: map[string]int{}, in: map[string]int{}}
}

func (s *sum) add(r simulation.Report) {
	s.worlds++
	s.broken += len(r.Violations)
	s.faulty += time.Duration(r.Plan.Hours * float64(time.Hour))
	s.simulated += r.Simulated
	s.requests, s.retries, s.events = s.requests+r.Requests, s.retries+r.Retries, s.events+r.Events
	s.sent, s.steps, s.lives = s.sent+r.Sent, s.steps+r.Steps, s.lives+r.Lives
	s.busy += r.Processor
	if r.Plan.Twins {
		s.twins++
		s.alone.add(r.Life)
		s.beside.add(r.Beside)
	}
	for into, from := range map[*map[string]int]map[string]int{&s.faults: r.Faults, &s.some: r.Some, &s.points: r.Points, &s.judged: r.Judged} {
		for name, n := range from {
			(*into)[name] += n
			if n > 0 && into != &s.points {
				s.in[name]++
			}
		}
	}
}

func line(r simulation.Report) string {
	text := fmt.Sprintf("seed %d: trace %016x, %s simulated in %s, %d requests, %d events, %d faults, %d lives",
		r.Plan.Seed, r.Trace, r.Simulated.Round(time.Second), r.Processor.Round(10*time.Millisecond), r.Requests, r.Events, r.FaultCount(), r.Lives)
	if len(r.Violations) > 0 {
		text += "\n  " + strings.Join(r.Violations, "\n  ")
	}
	return text
}

func (s *sum) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()                                                                 //nolint:errcheck // for people
	row := func(name string, value any) { fmt.Fprintf(w, "%s\t%v\n", name, value) } //nolint:errcheck // likewise
	injected := 0
	for _, n := range s.faults {
		injected += n
	}
	fmt.Fprintln(w) //nolint:errcheck // likewise
	row("worlds", s.worlds)
	row("simulated hours with faults", fmt.Sprintf("%.1f", s.faulty.Hours()))
	row("simulated hours in all", fmt.Sprintf("%.1f", s.simulated.Hours()))
	row("requests of clients", fmt.Sprintf("%d (%.2f/s while there are faults), asked again %d times", s.requests, float64(s.requests)/max(s.faulty.Seconds(), 1), s.retries))
	row("events", s.events)
	row("broadcasts that reached nodes", s.sent)
	row("steps", s.steps)
	row("lives of replicas", s.lives)
	row("faults injected", injected)
	row("promises broken", s.broken)
	row("wall time, processor time", fmt.Sprintf("%s, %s (%.2f ms a request)", s.wall.Round(time.Second), s.busy.Round(time.Second),
		s.busy.Seconds()*1000/float64(max(s.requests, 1))))
	if s.twins > 0 {
		row("worlds lived through with and without hostile clients", s.twins)
		row("victims' time from eligible to first send, p99", compared(s.alone.sends, s.beside.sends))
		row("victims' time from accepted to submitted, p99", compared(s.alone.submits, s.beside.submits))
	}
	for _, part := range []struct {
		title  string
		counts map[string]int
	}{{"faults", s.faults}, {"it happened", s.some}, {"crash points passed", s.points}, {"promises", s.judged}} {
		fmt.Fprintf(w, "\n%s\n", part.title) //nolint:errcheck // likewise
		for _, name := range slices.Sorted(maps.Keys(part.counts)) {
			said := strconv.Itoa(part.counts[name])
			if n := s.in[name]; n > 0 {
				said += fmt.Sprintf(" in %d worlds", n)
			}
			row("  "+name, said)
		}
	}
}

// compared describes the effect of hostile clients on a delay.
func compared(alone, beside []time.Duration) string {
	if len(alone) == 0 || len(beside) == 0 {
		return "none"
	}
	without, with := promises.Percentile(alone, 99), promises.Percentile(beside, 99)
	return fmt.Sprintf("%s without hostile clients, %s with them (%.2f times, of %d and %d)",
		without.Round(10*time.Microsecond), with.Round(10*time.Microsecond), float64(with)/float64(max(without, 1)), len(alone), len(beside))
}

// happened returns an error if an expected event happened in no world.
func (s *sum) happened(expected []string) error {
	var missing []string
	for _, name := range expected {
		if s.some[name]+s.faults[name]+s.judged[name] == 0 {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("it never happened: %s", strings.Join(missing, "; "))
	}
	return nil
}
