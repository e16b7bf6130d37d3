package cmd

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the suites into docs/proof/reliability.md")

// TestSuitesOfRows: each row of the reliability tables names the suites that run its tests, for each
// test the first of ci, chaos, release and by hand. A test that leaves its suite, or that no suite
// runs, fails here.
func TestSuitesOfRows(t *testing.T) {
	if *update {
		writeSuites(t)
	}
	tests := newProofs(t)
	for _, d := range readDemands(t, reliability) {
		if err := tests.agree(d); err != nil {
			t.Errorf("section %s, %q: %v", d.section, d.text, err)
		}
	}
}

// agree returns an error unless a row names its tests' suites.
func (p *proofs) agree(d demand) error {
	suites, err := p.suitesOf(d.tests)
	if err == nil && !slices.Equal(suites, d.suites) {
		err = fmt.Errorf("its tests run in %q, and the row says %q", suites, d.suites)
	}
	return err
}

// The resolver finds the tests that no suite runs, in invented scripts and for real tests.
func TestSuitesFindFaults(t *testing.T) {
	script := strings.Join([]string{
		"set -e",
		"# make broken",
		`step "make broken"`,
		"go test ./docs || true",
		"command -v make >/dev/null || missing+=(make)",
		"WATCHTOWER_TEST_REQUIRE=1 timeout --kill-after=60 30m make --no-print-directory test",
		"make fire && go vet ./...",
	}, "\n")
	m := readMakefile(strings.Join([]string{
		"ARGS ?=", "FIRE := 'TestPower|TestFailing'",
		"test: ## tests", "\tgo run ./cmd/testrun -skip '^TestSpecification$$' $(ARGS)",
		"fire: lint ## some", "\t@go run ./cmd/testrun -tags chaos -timeout 60m -run $(FIRE) \\", "\t\t./cmd/watchtower",
		"lint:", "\tgolangci-lint run", "\t-go test ./docs",
		"all: ## more", "\tgo test -tags chaos ./cmd/watchtower # slow",
	}, "\n"))
	ci, err := shell{m}.testRuns(script)
	if err != nil || len(ci) != 2 {
		t.Fatalf("%d test commands, %v", len(ci), err)
	}
	chaos, err := shell{m}.testRuns("make all")
	if err != nil {
		t.Fatal(err)
	}
	p := newProofs(t)
	p.suites = map[string][]testRun{inCI: ci, inChaos: chaos}
	for name, want := range map[string]string{
		"api/rest.FuzzCursor":                      inCI,
		"cmd/watchtower.TestReplicaKilled":         inCI,
		"cmd/watchtower.TestPowerCut":              inCI, // by make fire
		"cmd/watchtower.TestStandbyPromoted":       inChaos,
		"infra/postgres.TestLinearInMuchTrouble":   "", // needs the tag chaos; chaos has another folder
		"cmd.TestSpecification":                    "", // is skipped
		"infra/eventstoredb.TestRealServer":        byHand,
		"cmd/signers/aws.TestContract":             inCI, // by cmd.TestModules
		"cmd.TestSpecificatio":                     "",   // no such test
		"cmd.TestMain":                             "",
		"api/rest.TestSuitesFindFaults":            "", // of another package
		"nowhere.TestNothing":                      "",
		"TestSuitesFindFaults":                     "", // names no package
		"cmd/watchtower.TestPowerCutOfLyingDisk/x": "",
	} {
		got, err := p.suite(name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: suite %q, want %q: %v", name, got, want, err)
		}
	}
	row := func(suites ...string) demand {
		return demand{"Faults", "7: a made-up row", []string{"cmd"}, []string{"cmd/watchtower.TestStandbyPromoted", "api/rest.FuzzCursor"}, suites}
	}
	if err := p.agree(row(inCI, inChaos)); err != nil {
		t.Error(err)
	}
	for _, wrong := range []demand{
		row(inCI), row(inChaos), row(inChaos, inCI), row(),
		{"Faults", "8: nobody runs it", nil, []string{"infra/postgres.TestLinearInMuchTrouble"}, []string{inCI}},
	} {
		if p.agree(wrong) == nil {
			t.Errorf("a row that names %q passes", wrong.suites)
		}
	}
	p.outside = nil
	if suite, err := p.suite("infra/eventstoredb.TestRealServer"); err == nil {
		t.Errorf("a test that CI skips for want of a server runs in %s", suite)
	}
}

// A test run by hand exists, and its page describes how to run it.
func TestOutsideTestsAreDescribed(t *testing.T) {
	p := newProofs(t)
	for name, page := range outsideTests() {
		if suite, err := p.suite(name); err != nil || suite != byHand {
			t.Errorf("%s: suite %q, %v", name, suite, err)
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page[0])))
		if err != nil || !strings.Contains(string(text), page[1]) {
			t.Errorf("%s does not say %q: %v", page[0], page[1], err)
		}
	}
}

// writeSuites writes the fourth cell of each row of [reliability].
func writeSuites(t *testing.T) {
	t.Helper()
	file := filepath.Join(root, filepath.FromSlash(reliability))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tests := newProofs(t)
	var page strings.Builder
	section := ""
	for line := range strings.Lines(string(text)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			section, _, _ = strings.Cut(strings.TrimSpace(heading), " ")
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || !hasDemands(section) || len(cells) < 3 {
			page.WriteString(line)
			continue
		}
		last := " suite "
		switch strings.TrimSpace(cells[2]) {
		case "proof":
		case "---":
			last = " --- "
		default:
			suites, _ := tests.suitesOf(quotedIn(cells[2])) // TestSpecification reports the errors
			last = " " + strings.Join(suites, ", ") + " "
		}
		page.WriteString("|" + strings.Join(cells[:3], "|") + "|" + last + "|\n")
	}
	if err := os.WriteFile(file, []byte(page.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
