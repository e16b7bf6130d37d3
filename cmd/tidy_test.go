package cmd

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = ".." // the module's root, relative to this package's folder

// emptyNames are names that do not describe their contents.
var emptyNames = []string{
	"base", "common", "helper", "helpers", "impl", "manager", "managers", "misc", "models",
	"service", "services", "shared", "type", "types", "util", "utils", "core",
}

func TestNamesSaySomething(t *testing.T) {
	for _, file := range files(t) {
		if path.Ext(file) != ".go" {
			continue
		}
		stem := strings.TrimSuffix(file, ".go")
		for _, word := range strings.FieldsFunc(stem, func(r rune) bool { return r == '/' || r == '_' || r == '-' }) {
			if slices.Contains(emptyNames, word) {
				t.Errorf("%s: %q says nothing; name what is inside", file, word)
			}
		}
	}
}

// aClock are the functions that the domain must not call: time is data, passed as an argument.
var aClock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// outside are the packages that the domain must not import: it does no IO and no waiting, and
// randomness is passed as an argument.
var outside = regexp.MustCompile(`^(os|net|log|syscall|database)(/.*)?$|^(context|crypto/rand)$`)

// chance is forbidden in the domain's tests, too: rapid's randomness is repeatable.
var chance = regexp.MustCompile(`^math/rand(/v2)?$`)

func TestDomainIsPure(t *testing.T) {
	seen := 0
	for _, file := range files(t) {
		if !strings.HasPrefix(file, "domain/") || path.Ext(file) != ".go" {
			continue
		}
		seen++
		set, parsed := parse(t, file)
		clock := ""
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case imported == "time":
				clock = "time"
				if spec.Name != nil {
					clock = spec.Name.Name
				}
			case chance.MatchString(imported), outside.MatchString(imported) && !strings.HasSuffix(file, "_test.go") && !isTests(strings.TrimPrefix(path.Dir(file), "../")):
				t.Errorf("%s imports %s: the domain does no IO and knows no chance", set.Position(spec.Pos()), imported)
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && clock != "" && isName(s.X, clock) && slices.Contains(aClock, s.Sel.Name) {
				t.Errorf("%s: time.%s: the domain has no clock; time comes in with the command", set.Position(s.Pos()), s.Sel.Name)
			}
			return true
		})
	}
	if seen == 0 {
		t.Fatal("the domain has no files")
	}
}

func TestNothingHappensBeforeMain(t *testing.T) {
	for _, file := range files(t) {
		if path.Ext(file) != ".go" {
			continue
		}
		set, parsed := parse(t, file)
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: func init: let the caller say when", set.Position(f.Pos()))
			}
		}
	}
}

// somebodysMachine are paths that make sense on one machine only.
var somebodysMachine = regexp.MustCompile(`(^|[^\w.])/(` + strings.Join([]string{`work\b`, "tmp/", "Users/"}, "|") + `)`)

func TestNoPathOfSomebodysMachine(t *testing.T) {
	for _, file := range files(t) {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(text, 0) >= 0 || path.Ext(file) == ".sum" {
			continue // not a text file, or hashes
		}
		for i, line := range strings.Split(string(text), "\n") {
			if found := somebodysMachine.FindString(line); found != "" {
				t.Errorf("%s:%d speaks of %s, a path of somebody's machine", file, i+1, strings.TrimSpace(found))
			}
		}
	}
}

func TestSomebodysMachine(t *testing.T) {
	for text, want := range map[string]bool{
		"see " + "/" + "work/main":           true,
		`"` + "/" + "tmp/ada/1":              true,
		"https://example.org/Users/":         false,
		"a network/workload":                 false,
		"WORKDIR /src":                       false,
		"/v1/worklists":                      false,
		"cd " + "/" + "Users/ada/watchtower": true,
	} {
		if got := somebodysMachine.MatchString(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// files lists the tree's files, by path from the root, without those ignored by .gitignore.
func files(t *testing.T) []string {
	t.Helper()
	ignored := ignoredFolders(t)
	var all []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		switch {
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || slices.Contains(ignored, relative)):
			return filepath.SkipDir
		case d.Name() == ".git": // in a git worktree it is a file that names a folder
		case d.Type().IsRegular():
			all = append(all, relative)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ignoredFolders reads the lines of .gitignore that have the form /folder/.
func ignoredFolders(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".gitignore"))
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "/") && strings.HasSuffix(line, "/") {
			folders = append(folders, strings.Trim(line, "/"))
		}
	}
	return folders
}

func parse(t *testing.T, file string) (*token.FileSet, *ast.File) {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, filepath.Join(root, file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return set, parsed
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}
