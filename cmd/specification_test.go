package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// The pages with tables that list, for each demand, the code that fulfils it and the tests that
// prove it. The tables of [reliability] also name the suites that run the tests.
const (
	specification = "docs/proof/specification.md"
	relay         = "docs/proof/relay-specification.md"
	reliability   = "docs/proof/reliability.md"
)

// specified are the sections of the customer's specification, each a table of the page. Section
// 6.6 is two tables: the page on groups, and the format of nonce keys.
var specified = []string{
	"1", "2.1", "3", "4", "5", "6", "6.0", "6.1", "6.2", "6.3", "6.4", "6.5", "6.6", "6.6 (nonce keys)", "6.7",
	"7", "8.1", "8.2", "8.3", "9", "10", "11", "12", "13", "14", "15", "16", "Result",
}

// asked are the sections of the relay's requirements, from four documents: a nonce manager (A),
// a worker (B), a pool of keys (C), leases and fencing (D); and additional requirements (E).
var asked = slices.Concat(
	upTo("A", 1, 14), upTo("B", 1, 13), upTo("C", 1, 13), upTo("D", 1, 5), upTo("D6.", 1, 6), upTo("D", 7, 12), upTo("E", 1, 7),
)

// listed returns the rows that the tables of [reliability] must have, by section. Tests refer to the
// rows by these numbers. The promises come from [promise.All].
func listed() map[string][]string {
	rows := map[string][]string{"Faults": upTo("", 1, 44), "Input": upTo("", 1, 73), "Neighbors": upTo("", 1, 27)}
	for _, p := range promises.All() {
		rows["Promises"] = append(rows["Promises"], fmt.Sprintf("P%d", p.Number))
	}
	return rows
}

func upTo(prefix string, from, to int) (rows []string) {
	for row := from; row <= to; row++ {
		rows = append(rows, prefix+strconv.Itoa(row))
	}
	return rows
}

// demand is one row of a page.
type demand struct {
	section, text string
	places, tests []string // the code, by path in the tree, and the tests
	suites        []string // the suites that the row names
}

func TestSpecification(t *testing.T) {
	demands := slices.Concat(readDemands(t, specification), readDemands(t, relay), readDemands(t, reliability))
	for page, sections := range map[string][]string{specification: specified, relay: asked} {
		for _, section := range sections {
			if !slices.ContainsFunc(demands, func(d demand) bool { return d.section == section }) {
				t.Errorf("%s has nothing on section %s", page, section)
			}
		}
	}
	for section, rows := range listed() {
		for _, row := range rows {
			if !slices.ContainsFunc(demands, func(d demand) bool {
				return d.section == section && strings.HasPrefix(d.text, row+": ")
			}) {
				t.Errorf("%s has no row %s among %s", reliability, row, section)
			}
		}
	}
	tests := newProofs(t)
	for _, d := range demands {
		if len(d.tests) == 0 || len(d.places) == 0 {
			t.Errorf("section %s, %q: %d places and %d tests", d.section, d.text, len(d.places), len(d.tests))
		}
		for _, place := range d.places {
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(place))); err != nil {
				t.Errorf("section %s, %q: %v", d.section, d.text, err)
			}
		}
		if _, err := tests.suitesOf(d.tests); err != nil {
			t.Errorf("section %s, %q: %v", d.section, d.text, err)
		}
	}
}

// At least 36 promises are demanded, so that a list that lost its end does not pass.
func TestPromisesAreListed(t *testing.T) {
	if rows := listed()["Promises"]; len(rows) < 36 || !slices.Equal(rows, upTo("P", 1, len(rows))) {
		t.Errorf("the promises are %q", rows)
	}
}

// The table reader reads rows, also rows without a proof.
func TestSpecificationFindsFaults(t *testing.T) {
	lines := "## 7 States\n| what | where | proof |\n| --- | --- | --- |\n| `a`, b | `x/y`, `z` | `p.TestA` `q.TestB` |\n| no proof | `x` | |\n"
	got := fmt.Sprintf("%q", demandsIn(t, lines, 3))
	if want := `[{"7" "` + "`a`" + `, b" ["x/y" "z"] ["p.TestA" "q.TestB"] []} {"7" "no proof" ["x"] [] []}]`; got != want {
		t.Errorf("read %s, want %s", got, want)
	}
	lines = "## Faults\n| fault | where | proof | suite |\n| --- | --- | --- | --- |\n| 1: a | `x` | `p.TestA` | ci, by hand |\n"
	got = fmt.Sprintf("%q", demandsIn(t, lines, 4))
	if want := `[{"Faults" "1: a" ["x"] ["p.TestA"] ["ci" "by hand"]}]`; got != want {
		t.Errorf("read %s, want %s", got, want)
	}
}

func readDemands(t *testing.T, page string) []demand {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	columns := 3
	if page == reliability {
		columns = 4
	}
	return demandsIn(t, string(text), columns)
}

// demandsIn reads the tables under the headings that begin with a section's name.
// A row's cells are the demand, the code, the tests and, where there are four, the suites.
func demandsIn(t *testing.T, text string, columns int) (all []demand) {
	t.Helper()
	section, header := "", true
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			section, _, _ = strings.Cut(heading, " ")
			if strings.HasPrefix(heading, "6.6 (nonce keys)") {
				section = "6.6 (nonce keys)"
			}
		}
		row, ok := strings.CutPrefix(line, "|")
		if !ok {
			header = true
			continue
		}
		if header { // the first line of a table
			header = false
			continue
		}
		cells := strings.Split(strings.TrimSuffix(row, "|"), "|")
		if !hasDemands(section) {
			continue
		}
		if len(cells) != columns {
			t.Errorf("section %s: %d cells, want %d, in %q; go test ./cmd -run Suites -update adds the suites", section, len(cells), columns, line)
			continue
		}
		if strings.Trim(cells[0], " -") == "" {
			continue
		}
		d := demand{section, strings.TrimSpace(cells[0]), quotedIn(cells[1]), quotedIn(cells[2]), nil}
		if columns > 3 {
			d.suites = strings.Split(strings.TrimSpace(cells[3]), ", ")
		}
		all = append(all, d)
	}
	return all
}

// hasDemands reports whether a section's tables list demands: figures of runs and suites do not.
func hasDemands(section string) bool { return section != "Figures" && section != "Suites" }

// quotedIn returns the texts in backquotes.
func quotedIn(cell string) (all []string) {
	for i, part := range strings.Split(cell, "`") {
		if i%2 == 1 {
			all = append(all, part)
		}
	}
	return all
}
