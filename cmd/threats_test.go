package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const threatModel = "docs/explanation/threat-model.md"

// stride are the six kinds of threat; each section must have a row for each.
var stride = []string{"Spoofing", "Tampering", "Repudiation", "Information disclosure", "Denial of service", "Elevation of privilege"}

// attacked are the sections of [threatModel]: listeners, outgoing connections, and programs.
var attacked = []string{
	"Delivery API", "JSON-RPC", "Relay API", "Internal listener", "Signer programs", "Webhooks", "Nodes", "Stores", "Redis",
	"Files", "Brokers and consumers", "Command line", "Development programs", "Build and images",
}

// threat is a row of [threatModel].
type threat struct {
	section, kind string
	tests         []string
}

// threatsIn reads the tables whose header begins with "threat". A row has four cells: kind, attack, mitigation, tests.
func threatsIn(text string) (all []threat, err error) {
	section, inTable := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			section = heading
		}
		row, ok := strings.CutPrefix(line, "|")
		if !ok {
			inTable = false
			continue
		}
		cells := strings.Split(strings.TrimSuffix(row, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[0] == "threat":
			inTable = true
		case !inTable || strings.Trim(cells[0], "-") == "":
		case len(cells) != 4 || cells[1] == "" || cells[2] == "":
			return nil, fmt.Errorf("section %s: want the four cells threat, attack, mitigation and test in %q", section, line)
		default:
			all = append(all, threat{section, cells[0], quotedIn(cells[3])})
		}
	}
	return all, nil
}

// missing returns the faults of a threat model: kinds of threat that a section lacks, and rows without a test
// that a suite runs.
func (p *proofs) missing(threats []threat) (faults []string) {
	for _, section := range attacked {
		for _, kind := range stride {
			if !slices.ContainsFunc(threats, func(t threat) bool { return t.section == section && t.kind == kind }) {
				faults = append(faults, fmt.Sprintf("section %s has no row on %s", section, kind))
			}
		}
	}
	for _, t := range threats {
		if !slices.Contains(stride, t.kind) || !slices.Contains(attacked, t.section) {
			faults = append(faults, fmt.Sprintf("section %s, %s: not a section and a kind of threat that cmd/threats_test.go knows", t.section, t.kind))
		}
		if len(t.tests) == 0 {
			faults = append(faults, fmt.Sprintf("section %s, %s: a row names no test", t.section, t.kind))
		}
		if _, err := p.suitesOf(t.tests); err != nil {
			faults = append(faults, fmt.Sprintf("section %s, %s: %v", t.section, t.kind, err))
		}
	}
	return faults
}

// TestThreatModel: each listener and connection has its threats, and each mitigation a test that a suite runs.
func TestThreatModel(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(threatModel)))
	if err != nil {
		t.Fatal(err)
	}
	threats, err := threatsIn(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range newProofs(t).missing(threats) {
		t.Error(fault)
	}
}

func TestThreatModelFindsFaults(t *testing.T) {
	if _, err := threatsIn("## A\n| threat | attack |\n| --- | --- |\n| Spoofing | x |\n"); err == nil {
		t.Error("a row of two cells passes")
	}
	page := "| asset | other |\n| --- | --- |\n| a | b |\n\n"
	for _, section := range attacked {
		page += "## " + section + "\n\n| threat | attack | mitigation | test |\n| --- | --- | --- | --- |\n"
		for _, kind := range stride {
			page += "| " + kind + " | a | b | `cmd.TestThreatModel` |\n"
		}
	}
	p := newProofs(t)
	for name, c := range map[string]struct {
		old, new string
		faults   int
	}{
		"whole":                 {"|", "|", 0},
		"a kind is missing":     {"| Tampering | a | b | `cmd.TestThreatModel` |\n", "", 1},
		"a section is missing":  {"## Redis\n", "", 6},
		"an unknown section":    {"## Redis\n", "## Rediss\n", 12},
		"an unknown kind":       {"| Tampering |", "| Tempering |", 2},
		"a row without a test":  {"`cmd.TestThreatModel`", "", 1},
		"a test that is gone":   {"cmd.TestThreatModel", "cmd.TestThreatModell", 1},
		"a test that none runs": {"cmd.TestThreatModel", "cmd.TestNothing", 1},
	} {
		threats, err := threatsIn(strings.Replace(page, c.old, c.new, 1))
		if err != nil {
			t.Fatal(err)
		}
		if faults := p.missing(threats); len(faults) != c.faults {
			t.Errorf("%s: %q, want %d faults", name, faults, c.faults)
		}
	}
}
