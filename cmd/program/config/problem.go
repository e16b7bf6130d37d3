package config

import (
	"fmt"
	"strings"

	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

// Problem is one error in the configuration.
type Problem struct {
	Origin  string `json:"origin"`            // file:line, "env NAME", "flag --name" or "default"
	Setting string `json:"setting,omitempty"` // the setting's path; empty when the problem concerns no single setting
	Text    string `json:"text"`              // contains no secret
}

func (p Problem) String() string {
	if p.Setting == "" {
		return p.Origin + ": " + p.Text
	}
	return p.Origin + ": " + p.Setting + ": " + p.Text
}

// Problems is the error of a configuration: all its problems.
type Problems []Problem

// ExitStatus is the exit status of a command with these problems.
func (Problems) ExitStatus() terminal.Status { return terminal.Usage }

// problemsShown limits the number of problems listed.
const problemsShown = 100

func (p Problems) Error() string {
	var lines []string
	for _, problem := range p[:min(len(p), problemsShown)] {
		lines = append(lines, "\n  "+problem.String())
	}
	if more := len(p) - problemsShown; more > 0 {
		lines = append(lines, fmt.Sprintf("\n  and %d more", more))
	}
	count := "1 problem"
	if len(p) != 1 {
		count = fmt.Sprintf("%d problems", len(p))
	}
	return "configuration: " + count + strings.Join(lines, "")
}

// nearest returns the name with the smallest edit distance to the given name.
func nearest(name string, names []string) string {
	const long = 128 // no name is longer, so longer text resembles none
	if len(name) > long {
		name = name[:long]
	}
	best, fewest := "", 0
	for _, candidate := range names {
		if n := edits(name, candidate); best == "" || n < fewest {
			best, fewest = candidate, n
		}
	}
	return best
}

// edits is the Levenshtein distance in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
