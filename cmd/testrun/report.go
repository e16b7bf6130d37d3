package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// namesShown limits the tests listed by name per reason for skipping.
const namesShown = 5

// totals are the counts of the last line.
type totals struct {
	passed, failed, skipped int
	optional                int // of the skipped: tests that need a service which testrun cannot start
}

func (t totals) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
}

// report prints the tables: the tests run, by package; each backend, and the number of tests
// that missed it; skipped tests with reasons; failed tests. The caller prints the totals, which
// are the last line.
func report(w io.Writer, r *results, all *backends, took time.Duration) totals {
	tallies := map[*pkg]tally{}
	var sum totals
	slices.SortFunc(r.packages, func(a, b *pkg) int { return cmp.Compare(a.path, b.path) })
	for _, p := range r.packages {
		t := p.tally()
		tallies[p] = t
		sum.passed += t.passed
		sum.failed += len(t.failed)
		sum.skipped += len(t.skipped)
		for _, skipped := range t.skipped {
			if strings.HasPrefix(skipped.reason, testenv.Optional) {
				sum.optional++
			}
		}
	}
	printPackages(w, r.packages, tallies)
	fmt.Fprintf(w, "\nBackends\n")
	printBackends(w, all, r.packages, tallies)
	printSkipped(w, r.packages, tallies)
	printFailed(w, r.packages, tallies)
	fmt.Fprintf(w, "\n%d packages in %s\n", len(r.packages), took.Round(time.Second))
	return sum
}

func printPackages(w io.Writer, packages []*pkg, tallies map[*pkg]tally) {
	var empty []string
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\npassed\tfailed\tskipped\tseconds\t  package\n")
	for _, p := range packages {
		t := tallies[p]
		if len(p.tests) == 0 && len(t.failed) == 0 {
			empty = append(empty, short(p.path))
			continue
		}
		note := ""
		if p.end == "" {
			note = " (did not end)"
		}
		fmt.Fprintf(table, "%d\t%d\t%d\t%.1f\t  %s%s\n", t.passed, len(t.failed), len(t.skipped), p.seconds, short(p.path), note)
	}
	table.Flush() //nolint:errcheck // a report that cannot be written cannot be reported
	if len(empty) > 0 {
		fmt.Fprintf(w, "without tests: %s\n", strings.Join(empty, ", "))
	}
}

// printBackends prints each backend, and the number of tests skipped because one of its
// variables was not set.
func printBackends(w io.Writer, all *backends, packages []*pkg, tallies map[*pkg]tally) {
	all.print(w)
	for _, b := range all.list {
		missed := 0
		for _, p := range packages {
			for _, s := range tallies[p].skipped {
				if strings.HasPrefix(s.reason, "MISSING:") && slices.ContainsFunc(b.vars, func(v string) bool {
					return slices.Contains(strings.Fields(s.reason), v)
				}) {
					missed++
				}
			}
		}
		if missed > 0 {
			fmt.Fprintf(w, "  skipped without %s: %d\n", b.name, missed)
		}
	}
}

func printSkipped(w io.Writer, packages []*pkg, tallies map[*pkg]tally) {
	var reasons []string // in the order of their first test
	tests := map[string][]string{}
	for _, p := range packages {
		for _, s := range tallies[p].skipped {
			if len(tests[s.reason]) == 0 {
				reasons = append(reasons, s.reason)
			}
			tests[s.reason] = append(tests[s.reason], short(p.path)+"."+s.test)
		}
	}
	if len(reasons) == 0 {
		return
	}
	fmt.Fprintf(w, "\nSkipped\n")
	for _, reason := range reasons {
		fmt.Fprintf(w, "  %d × %s\n", len(tests[reason]), reason)
		for i, name := range tests[reason] {
			if i == namesShown {
				fmt.Fprintf(w, "      and %d more\n", len(tests[reason])-namesShown)
				break
			}
			fmt.Fprintf(w, "      %s\n", name)
		}
	}
}

func printFailed(w io.Writer, packages []*pkg, tallies map[*pkg]tally) {
	heading := "\nFailed\n"
	for _, p := range packages {
		for _, name := range tallies[p].failed {
			fmt.Fprintf(w, "%s  %s.%s\n", heading, short(p.path), name)
			heading = ""
			if t := p.byName[name]; t != nil {
				for _, message := range t.said {
					fmt.Fprintf(w, "      %s\n", message)
				}
			}
		}
	}
}
