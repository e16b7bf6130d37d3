package cmd

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// link is a Markdown link to a file in the tree.
var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	seen := 0
	for _, file := range files(t) {
		if path.Ext(file) != ".md" || strings.Contains(file, "/testdata/") { // testdata texts become parts of other pages
			continue
		}
		text, err := os.ReadFile(path.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			seen++
			if _, err := os.Stat(path.Join(root, path.Dir(file), found[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", file, found[1])
			}
		}
	}
	if seen == 0 {
		t.Error("no link was found")
	}
}

// conflict is a line that a merge leaves behind where two changes met.
var conflict = regexp.MustCompile(`(?m)^(<{7} |>{7} |={7}$)`)

func TestNoMergeIsHalfDone(t *testing.T) {
	for _, file := range files(t) {
		text, err := os.ReadFile(path.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if at := conflict.FindIndex(text); at != nil {
			t.Errorf("%s has a conflict of a merge in line %d", file, 1+strings.Count(string(text[:at[0]]), "\n"))
		}
	}
	for line, is := range map[string]bool{"<<<<<<< HEAD": true, "=======": true, ">>>>>>> 49a8300": true, "a ======= b": false, "========": false} {
		if conflict.MatchString("before\n"+line+"\nafter") != is {
			t.Errorf("%q: a conflict is %v", line, is)
		}
	}
}

// inCode matches text in backticks.
var inCode = regexp.MustCompile("`([a-z0-9/]+)`")

// The architecture page lists the place of every package, and no package that is gone.
func TestArchitectureNamesThePackages(t *testing.T) {
	text, err := os.ReadFile(path.Join(root, "docs/explanation/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, found := range inCode.FindAllStringSubmatch(string(text), -1) {
		named[found[1]] = true
	}
	there := map[string]bool{}
	for _, p := range list(t, "./...") {
		name := strings.TrimPrefix(p.ImportPath, module)
		if there[name] = true; !named[name] {
			t.Errorf("%s is not in docs/explanation/architecture.md", name)
		}
	}
	for name := range named {
		if _, layer := layers[strings.Split(name, "/")[0]]; layer && strings.Contains(name, "/") && !there[name] {
			if _, err := os.Stat(path.Join(root, name)); err != nil {
				t.Errorf("docs/explanation/architecture.md names %s, which is not there", name)
			}
		}
	}
}

// A page with a table of settings is a handwritten part followed by the table, which a test of
// the settings compares. The handwritten part is a file of its own.
func TestPagesBeginWithWhatPeopleWrite(t *testing.T) {
	for page, written := range map[string]string{
		"docs/reference/configuration.md": "cmd/program/config/testdata/preamble.md",
		"docs/reference/relayer.md":       "cmd/relayer/settings/testdata/preamble.md",
	} {
		text, err := os.ReadFile(path.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(path.Join(root, written))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), string(want)) {
			t.Errorf("%s does not begin as %s: change that, and run the tests beside it with -update", page, written)
		}
	}
}
