package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
)

// outputMax bounds how much of one test's output is kept until we know whether
// it failed; the end counts.
const outputMax = 256 << 10

// line is what go test -json prints; go doc test2json describes it.
type line struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

// results gathers the lines of go test -json and prints what failed as soon as
// it has. It is an io.Writer to stand as the command's standard output.
type results struct {
	out      io.Writer
	verbose  bool
	part     []byte // of a line that has not ended
	packages []*pkg
	byPath   map[string]*pkg
}

type pkg struct {
	path    string
	end     string // pass, fail or skip; empty while it runs
	seconds float64
	output  tail // outside of tests
	tests   []*test
	byName  map[string]*test
}

type test struct {
	name   string
	end    string // pass, fail or skip; empty when it never ended
	output tail
}

// tail keeps the end of what is added to it, at least outputMax bytes.
type tail []byte

func (t *tail) add(text string) {
	*t = append(*t, text...)
	if len(*t) > 2*outputMax {
		*t = append(tail(nil), (*t)[len(*t)-outputMax:]...)
	}
}

func (r *results) Write(p []byte) (int, error) {
	r.part = append(r.part, p...)
	for {
		text, rest, found := bytes.Cut(r.part, []byte("\n"))
		if !found {
			return len(p), nil
		}
		r.line(text)
		r.part = append([]byte(nil), rest...)
	}
}

func (r *results) line(text []byte) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		fmt.Fprintf(r.out, "%s\n", text)
		return
	}
	switch {
	case l.Action == "build-output":
		fmt.Fprint(r.out, l.Output)
	case l.Package == "":
	case l.Test == "":
		r.ofPackage(r.pkg(l.Package), l)
	default:
		r.ofTest(r.pkg(l.Package).test(l.Test), l)
	}
}

func (r *results) ofTest(t *test, l line) {
	switch l.Action {
	case "output":
		t.output.add(l.Output)
		if r.verbose {
			fmt.Fprint(r.out, l.Output)
		}
	case "pass", "fail", "skip":
		t.end = l.Action
		if t.end == "fail" && !r.verbose {
			fmt.Fprintf(r.out, "%s", t.output)
		}
		if t.end != "skip" { // the report wants the reasons
			t.output = nil
		}
	}
}

func (r *results) ofPackage(p *pkg, l line) {
	switch l.Action {
	case "output":
		p.output.add(l.Output)
	case "pass", "fail", "skip":
		p.end, p.seconds = l.Action, l.Elapsed
		if p.end == "fail" {
			for _, t := range p.tests {
				if t.end == "" && !r.verbose {
					fmt.Fprintf(r.out, "%s did not end:\n%s", t.name, t.output)
				}
			}
			fmt.Fprintf(r.out, "%s", p.output)
		} else if len(p.tests) > 0 {
			fmt.Fprintf(r.out, "ok  %s  %.1fs\n", short(p.path), p.seconds)
		}
		p.output = nil
	}
}

func (r *results) pkg(path string) *pkg {
	if p := r.byPath[path]; p != nil {
		return p
	}
	p := &pkg{path: path, byName: map[string]*test{}}
	if r.byPath == nil {
		r.byPath = map[string]*pkg{}
	}
	r.byPath[path] = p
	r.packages = append(r.packages, p)
	return p
}

func (p *pkg) test(name string) *test {
	if t := p.byName[name]; t != nil {
		return t
	}
	t := &test{name: name}
	p.byName[name] = t
	p.tests = append(p.tests, t)
	return t
}

// tally is what became of a package's tests, each counted once: a test with
// subtests counts as its subtests do, and by itself only when it failed and none
// of them did. A package that failed though no test did counts as one failure.
type tally struct {
	passed  int
	failed  []string
	skipped []skip
}

type skip struct{ test, reason string }

func (p *pkg) tally() tally {
	parent, blamed := map[string]bool{}, map[string]bool{}
	for _, t := range p.tests {
		for name := path.Dir(t.name); name != "."; name = path.Dir(name) {
			parent[name] = true
			blamed[name] = blamed[name] || p.failed(t)
		}
	}
	var sum tally
	for _, t := range p.tests {
		switch {
		case p.failed(t):
			if !blamed[t.name] {
				sum.failed = append(sum.failed, t.name)
			}
		case parent[t.name]:
		case t.end == "pass":
			sum.passed++
		case t.end == "skip":
			sum.skipped = append(sum.skipped, skip{t.name, reason(string(t.output))})
		}
	}
	if p.end == "fail" && len(sum.failed) == 0 {
		sum.failed = append(sum.failed, "(outside of its tests)")
	}
	return sum
}

// failed holds also for a test cut short by its package's end.
func (p *pkg) failed(t *test) bool {
	return t.end == "fail" || t.end == "" && p.end == "fail"
}

// said is a line that a test logged: its file, its line, its text.
var said = regexp.MustCompile(`(?m)^\s*\S+\.go:\d+: (.*)$`)

// reason is the last thing a skipped test said.
func reason(output string) string {
	all := said.FindAllStringSubmatch(output, -1)
	if len(all) == 0 {
		return "gave no reason"
	}
	return strings.TrimSpace(all[len(all)-1][1])
}

// short names a package of ours by its folder.
func short(path string) string { return strings.TrimPrefix(path, module+"/") }
