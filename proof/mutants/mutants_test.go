package main

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// The table matches the present code: each edit applies, no two overlap, and the result
// compiles.
func TestTableFits(t *testing.T) {
	files, err := mutated(root, mutants())
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := writeOverlay(root, t.TempDir(), files)
	if err != nil {
		t.Fatal(err)
	}
	var packages []string
	for name := range files {
		if p := "./" + path.Dir(name); !slices.Contains(packages, p) {
			packages = append(packages, p)
		}
	}
	slices.Sort(packages)
	cmd := exec.Command("go", append([]string{"build", "-overlay", overlay}, packages...)...) //nolint:noctx // the test's deadline ends it
	// Without cgo, as CI has built everything before.
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
}

// Each mutant has a unique name and a description.
func TestTableTells(t *testing.T) {
	met := map[string]bool{}
	for _, m := range mutants() {
		if met[m.Name] || m.Name == "" {
			t.Errorf("the name %q is not its own", m.Name)
		}
		met[m.Name] = true
		if m.Breaks == "" || !strings.HasSuffix(m.Is, ".") || len(m.Edits) == 0 {
			t.Errorf("%s: it breaks %q, it is %q, with %d edits", m.Name, m.Breaks, m.Is, len(m.Edits))
		}
		bites := false
		for _, e := range m.Edits {
			bites = bites || strings.Contains(e.New, "AWAKE")
		}
		if !bites {
			t.Errorf("%s never bites", m.Name)
		}
		if m.Test == nil {
			continue
		}
		if found, err := filepath.Glob(filepath.Join(root, m.Test.Package, "*_test.go")); err != nil || len(found) == 0 {
			t.Errorf("%s: %s has no tests: %v", m.Name, m.Test.Package, err)
		}
	}
}

func TestEditsThatDoNotFit(t *testing.T) {
	const file = "domain/delivery/tx/tx.go"
	for name, all := range map[string][]mutant{
		"absent":  {{Name: "a", Edits: []edit{{file, "no such text anywhere", "AWAKE"}}}},
		"twice":   {{Name: "a", Edits: []edit{{file, "return", "AWAKE"}}}},
		"overlap": {{Name: "a", Edits: []edit{{file, "package tx", "AWAKE"}}}, {Name: "b", Edits: []edit{{file, "package tx\n", "AWAKE"}}}},
		"no file": {{Name: "a", Edits: []edit{{"domain/delivery/tx/none.go", "package", "AWAKE"}}}},
	} {
		if _, err := mutated(root, all); err == nil {
			t.Errorf("%s: it fits", name)
		}
	}
}

// The output of processes is parsed correctly.
func TestJudging(t *testing.T) {
	const calm, broken = `world: {"Simulated":60000000000}` + "\n", `world: {"Simulated":1,"Violations":["P8: it was sent"]}` + "\n"
	for name, c := range map[string]struct {
		said   string
		failed bool
		want   result
	}{
		"calm":      {calm + calm, false, result{Seeds: 2, Simulated: 2 * 60e9}},
		"broken":    {"=== RUN\n" + calm + broken, true, result{Caught: true, By: "P8", Evidence: "it was sent", Seeds: 2, Simulated: 60e9 + 1}},
		"panicking": {calm + "panic: oh\n\ngoroutine 1", true, result{Caught: true, By: "panic", Evidence: "panic: oh", Seeds: 2, Simulated: 60e9}},
	} {
		got := result{Caught: c.failed}
		got.judgeWorlds([]byte(c.said))
		if got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	skipped := result{}
	skipped.judgeTest(mutant{Test: &command{"infra/postgres", "^TestStore$"}}, []byte("--- SKIP: TestStore\n    a_test.go:1: no server\n"))
	if skipped.Trouble == "" {
		t.Error("a test that was not run is taken for one that passed")
	}
	for want, all := range map[bool][]result{
		true:  {{Mutant: "a", Caught: true}, {}},
		false: {{Mutant: "a"}, {}},
	} {
		if got := verdict(all) == nil; got != want {
			t.Errorf("%+v are judged %t", all, got)
		}
	}
	if verdict([]result{{Mutant: "a", Caught: true}, {Caught: true}}) == nil {
		t.Error("what was found with nobody awake is passed over")
	}
}
