package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// tell prints the result of one mutant while others still run.
func tell(say io.Writer, r result) {
	what := "NOT CAUGHT"
	switch {
	case r.Trouble != "":
		what = r.Trouble
	case r.Caught:
		what = fmt.Sprintf("%s: %s", r.By, r.Evidence)
	case r.Mutant == "":
		what = "nothing found"
	}
	const most = 300
	if len(what) > most {
		what = what[:most]
	}
	fmt.Fprintf(say, "%-24s %3d worlds %8s: %s\n", nameOf(r), r.Seeds, r.Wall.Round(time.Second), what) //nolint:errcheck // for people
}

func nameOf(r result) string {
	if r.Mutant == "" {
		return "(nobody)"
	}
	return r.Mutant
}

// printTable prints the results as a Markdown table.
func printTable(out io.Writer, results []result) error {
	var text strings.Builder
	text.WriteString("| mutant | defect | breaks | reported | worlds | simulated | wall |\n|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		is, by := r.Is, r.By
		if r.Masked != "" {
			is += " Masked by " + r.Masked + "; that is removed too."
		}
		switch {
		case r.Trouble != "":
			by = "**" + r.Trouble + "**"
		case !r.Caught && r.Mutant != "":
			by = "**not caught**"
		case !r.Caught:
			by = strings.TrimSpace("nothing " + r.By)
		}
		worlds, simulated := fmt.Sprint(r.Seeds), fmt.Sprintf("%.1f h", r.Simulated.Hours())
		if r.Seeds == 0 {
			worlds, simulated = "–", "–"
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %s | %s |\n", //nolint:errcheck // memory
			nameOf(r), is, r.Breaks, by, worlds, simulated, r.Wall.Round(time.Second))
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// verdict is an error if a mutant was not caught, or something was found without a mutant.
func verdict(results []result) error {
	var all []error
	for _, r := range results {
		switch {
		case r.Trouble != "":
			all = append(all, fmt.Errorf("%s: %s", nameOf(r), r.Trouble))
		case r.Mutant == "" && r.Caught:
			all = append(all, fmt.Errorf("with all mutants asleep: %s: %s", r.By, r.Evidence))
		case r.Mutant != "" && !r.Caught:
			all = append(all, fmt.Errorf("%s is not caught", r.Mutant))
		}
	}
	return errors.Join(all...)
}
