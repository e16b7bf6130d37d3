package cmd

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The pages that say of each demand what does it and what proves it: what was asked
// for, and what is promised, whatever goes wrong.
const (
	specification = "docs/specification.md"
	relay         = "docs/relay-specification.md"
	reliability   = "docs/reliability.md"
)

// specified are the sections of the customer's specification, each a table of the
// page. Its 6.6 are two: the group's page, and the format of nonce keys.
var specified = []string{
	"1", "2.1", "3", "4", "5", "6", "6.0", "6.1", "6.2", "6.3", "6.4", "6.5", "6.6", "6.6 (nonce keys)", "6.7",
	"7", "8.1", "8.2", "8.3", "9", "10", "11", "12", "13", "14", "15", "16", "Result",
}

// asked are the sections of what the relay was asked for, in four documents: a nonce
// manager (A), a worker (B), a pool of keys (C), leases and fencing (D); and what was asked
// for beside them (E).
var asked = slices.Concat(
	upTo("A", 1, 14), upTo("B", 1, 13), upTo("C", 1, 13), upTo("D", 1, 5), upTo("D6.", 1, 6), upTo("D", 7, 12), upTo("E", 1, 7),
)

// listed are the rows that the tables of [reliability] must have: of promises, of what
// goes wrong around the service, and of what clients send. Tests speak of them by these
// numbers.
var listed = map[string][]string{
	"Promises": upTo("P", 1, 34),
	"Faults":   upTo("", 1, 44),
	"Input":    upTo("", 1, 71),
}

func upTo(prefix string, from, to int) (rows []string) {
	for row := from; row <= to; row++ {
		rows = append(rows, prefix+strconv.Itoa(row))
	}
	return rows
}

// A proof names a test by the folder of its package and its name.
var proof = regexp.MustCompile(`^([a-z0-9/]+)\.((?:Test|Fuzz)[A-Z]\w*)$`)

// demand is one row of the page.
type demand struct {
	section, text string
	places, tests []string // what does it, by path in the tree, and what proves it
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
	for section, rows := range listed {
		for _, row := range rows {
			if !slices.ContainsFunc(demands, func(d demand) bool {
				return d.section == section && strings.HasPrefix(d.text, row+": ")
			}) {
				t.Errorf("%s has no row %s among %s", reliability, row, section)
			}
		}
	}
	tests := map[string][]string{}
	for _, d := range demands {
		if len(d.tests) == 0 || len(d.places) == 0 {
			t.Errorf("section %s, %q: %d places and %d tests", d.section, d.text, len(d.places), len(d.tests))
		}
		for _, place := range d.places {
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(place))); err != nil {
				t.Errorf("section %s, %q: %v", d.section, d.text, err)
			}
		}
		for _, name := range d.tests {
			if err := exists(t, tests, name); err != nil {
				t.Errorf("section %s, %q: %v", d.section, d.text, err)
			}
		}
	}
}

// What the page is held to is not fulfilled by just any page.
func TestSpecificationFindsFaults(t *testing.T) {
	tests := map[string][]string{}
	for name, fault := range map[string]bool{
		"cmd.TestSpecification": false,
		"cmd.TestSpecificatio":  true, // no such test
		"cmd.TestMain":          true, // runs tests, proves nothing
		"api.FuzzCursor":        false,
		"api.TestSpecification": true, // of another package
		"nowhere.TestNothing":   true,
		"TestSpecification":     true, // names no package
	} {
		if err := exists(t, tests, name); (err != nil) != fault {
			t.Errorf("%s: %v", name, err)
		}
	}
	lines := "## 7 States\n| what | where | proof |\n| --- | --- | --- |\n| `a`, b | `x/y`, `z` | `p.TestA` `q.TestB` |\n| no proof | `x` | |\n"
	got := fmt.Sprintf("%q", demandsIn(t, lines))
	if want := `[{"7" "` + "`a`" + `, b" ["x/y" "z"] ["p.TestA" "q.TestB"]} {"7" "no proof" ["x"] []}]`; got != want {
		t.Errorf("read %s, want %s", got, want)
	}
}

func readDemands(t *testing.T, page string) []demand {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	return demandsIn(t, string(text))
}

// demandsIn reads the tables under the headings that begin with a section's name.
// Each row has three cells: the demand, what does it, what proves it.
func demandsIn(t *testing.T, text string) (all []demand) {
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
		if section == "Figures" {
			continue // of runs, which are no demands
		}
		if len(cells) != 3 {
			t.Errorf("section %s: %d cells in %q", section, len(cells), line)
			continue
		}
		if strings.Trim(cells[0], " -") == "" {
			continue
		}
		all = append(all, demand{section, strings.TrimSpace(cells[0]), quotedIn(cells[1]), quotedIn(cells[2])})
	}
	return all
}

// quotedIn returns what stands in backquotes.
func quotedIn(cell string) (all []string) {
	for i, part := range strings.Split(cell, "`") {
		if i%2 == 1 {
			all = append(all, part)
		}
	}
	return all
}

// exists reports why a named test is none. tests keeps what was found in a folder.
func exists(t *testing.T, tests map[string][]string, name string) error {
	t.Helper()
	parts := proof.FindStringSubmatch(name)
	if parts == nil {
		return fmt.Errorf("%s is not a folder and a test's name", strconv.Quote(name))
	}
	folder := parts[1]
	if _, known := tests[folder]; !known {
		tests[folder] = testsIn(t, folder)
	}
	if !slices.Contains(tests[folder], parts[2]) {
		return fmt.Errorf("%s has no test %s", folder, parts[2])
	}
	return nil
}

// testsIn lists the tests and fuzz targets of the packages in a folder.
func testsIn(t *testing.T, folder string) (all []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		_, parsed := parse(t, path.Join(folder, filepath.Base(file)))
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name != "TestMain" {
				all = append(all, f.Name.Name)
			}
		}
	}
	return all
}
