package cmd

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The suites, in order: the first runs most often.
const (
	inCI      = "ci"      // .ci/run, on every change
	inChaos   = "chaos"   // make chaos, by night
	inRelease = "release" // make release, before a release
	byHand    = "by hand" // a test that needs an outside service, as its page describes
)

func suiteNames() []string { return []string{inCI, inChaos, inRelease, byHand} }

// outsideTests returns the tests that need a service that no suite can start. For each it names the page that
// describes how to run the test, and a text of that page.
func outsideTests() map[string][2]string {
	return map[string][2]string{
		"infra/eventstoredb.TestRealServer": {"docs/howto/eventstoredb.md", "./run contract"},
		"cmd/signers/aws.TestReal":          {"docs/howto/signers.md", "cd cmd/signers/aws"},
		"cmd/signers/gcp.TestReal":          {"docs/howto/signers.md", "cd cmd/signers/gcp"},
		"cmd/signers/vault.TestReal":        {"docs/howto/signers.md", "cd cmd/signers/vault"},
	}
}

// testOfModules is the test that runs the tests of the tree's other modules.
const testOfModules = "cmd.TestModules"

// A proof names a test by the folder of its package and its name.
var proof = regexp.MustCompile(`^([a-z0-9/]+)\.((?:Test|Fuzz)[A-Z]\w*)$`)

// proofs finds tests, and the suites that run them.
type proofs struct {
	t       *testing.T
	modules []string
	suites  map[string][]testRun
	outside map[string][2]string
	found   map[string]map[string]declared // tests by folder and name
}

// declared is a test's declaration.
type declared struct {
	file   string // its name
	offers bool   // the test is skipped where an outside service is missing
}

// readSuites reads .ci/run and the Makefile.
func readSuites(t *testing.T) map[string][]testRun {
	t.Helper()
	read := func(file string) string {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	m := readMakefile(read("Makefile"))
	suites := map[string][]testRun{}
	for name, script := range map[string]string{inCI: read(".ci/run"), inChaos: "make chaos", inRelease: "make release"} {
		runs, err := shell{m}.testRuns(script)
		if err != nil || len(runs) == 0 {
			t.Fatalf("suite %s: %d commands run tests: %v", name, len(runs), err)
		}
		suites[name] = runs
	}
	return suites
}

func newProofs(t *testing.T) *proofs {
	t.Helper()
	return &proofs{t, modules(t), readSuites(t), outsideTests(), map[string]map[string]declared{}}
}

// suite returns the first suite that runs a test. It fails if there is no such test, or no suite runs it.
func (p *proofs) suite(name string) (string, error) {
	folder, test, d, err := p.find(name)
	if err != nil {
		return "", err
	}
	if _, outside := p.outside[name]; outside {
		return byHand, nil
	}
	if d.offers {
		return "", fmt.Errorf("%s needs an outside service, and no page says how to run it: name one in outsideTests", name)
	}
	for _, suite := range suiteNames() {
		runs, err := p.runs(suite, folder, test, d.file)
		if err != nil {
			return "", err
		}
		if runs {
			return suite, nil
		}
	}
	return "", fmt.Errorf("no suite runs %s", name)
}

func (p *proofs) runs(suite, folder, test, file string) (bool, error) {
	inRoot := !slices.ContainsFunc(p.modules, func(m string) bool { return folder == m || strings.HasPrefix(folder, m+"/") })
	if !inRoot { // go's ./... leaves other modules out
		where, err := p.suite(testOfModules)
		return where == suite, err
	}
	for _, run := range p.suites[suite] {
		if !run.runs(folder, test) {
			continue
		}
		on := build.Default // the suites run on Linux
		on.GOOS, on.BuildTags, on.CgoEnabled = "linux", run.tags, true
		built, err := on.MatchFile(filepath.Join(root, filepath.FromSlash(folder)), file)
		if built || err != nil {
			return built, err
		}
	}
	return false, nil
}

// find returns the declaration of a test that is named by folder and name.
func (p *proofs) find(name string) (folder, test string, d declared, err error) {
	parts := proof.FindStringSubmatch(name)
	if parts == nil {
		return "", "", d, fmt.Errorf("%q is not a folder and a test's name", name)
	}
	folder, test = parts[1], parts[2]
	if p.found[folder] == nil {
		p.found[folder] = testsIn(p.t, folder)
	}
	d, there := p.found[folder][test]
	if !there || test == "TestMain" {
		return "", "", d, fmt.Errorf("%s has no test %s", folder, test)
	}
	return folder, test, d, nil
}

// suitesOf returns the suites of several tests: for each test the first that runs it.
func (p *proofs) suitesOf(tests []string) (suites []string, err error) {
	for _, name := range tests {
		suite, failed := p.suite(name)
		if failed == nil && !slices.Contains(suites, suite) {
			suites = append(suites, suite)
		}
		err = errors.Join(err, failed)
	}
	slices.SortFunc(suites, func(a, b string) int {
		return slices.Index(suiteNames(), a) - slices.Index(suiteNames(), b)
	})
	return suites, err
}

// testsIn returns the tests and fuzz targets of the packages in a folder.
func testsIn(t *testing.T, folder string) map[string]declared {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]declared{}
	for _, file := range paths {
		_, parsed := parse(t, path.Join(folder, filepath.Base(file)))
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				all[f.Name.Name] = declared{filepath.Base(file), callsOffered(f)}
			}
		}
	}
	return all
}

// callsOffered reports whether a function asks infra/testenv for an outside service.
func callsOffered(f *ast.FuncDecl) (calls bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		calls = calls || ok && s.Sel.Name == "Offered" && (isName(s.X, "testenv") || isName(s.X, "optional"))
		return !calls
	})
	return calls
}
