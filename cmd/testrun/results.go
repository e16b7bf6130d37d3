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

// outputMax limits the stored output of one test until its result is known; the end is kept.
const outputMax = 256 << 10

// line is a line of go test -json; go doc test2json describes it.
type line struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

// results collects the lines of go test -json and prints failures at once. As an io.Writer it is
// the command's standard output.
type results struct {
	out      io.Writer
	verbose  bool
	part     []byte // an unfinished line
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
	end    string // pass, fail or skip; empty if it never ended
	output tail
	said   []string // the first messages of a test that failed: they come before the logs of servers
}

// tail keeps the end of the text added, at least outputMax bytes.
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
		if t.end == "fail" {
			t.said = messages(string(t.output))
		}
		if t.end == "fail" && !r.verbose {
			fmt.Fprintf(r.out, "%s", t.output)
		}
		if t.end != "skip" { // the report needs the reasons
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

// tally counts the results of a package's tests, each once. A test with subtests counts through
// these, and itself only if it failed and none of them did. A package that failed without a
// failed test counts as one failure.
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

// failed is also true for a test cut short by the end of its package.
func (p *pkg) failed(t *test) bool {
	return t.end == "fail" || t.end == "" && p.end == "fail"
}

// said matches a line logged by a test: file, line, text.
var said = regexp.MustCompile(`(?m)^\s*\S+\.go:\d+: (.*)$`)

// reason is the last message of a skipped test.
func reason(output string) string {
	all := said.FindAllStringSubmatch(output, -1)
	if len(all) == 0 {
		return "gave no reason"
	}
	return strings.TrimSpace(all[len(all)-1][1])
}

const (
	messagesMax = 5   // messages of one test in the list of failed tests
	messageMax  = 300 // bytes of a message there
)

// messages are the first messages of a test, with file and line.
func messages(output string) []string {
	all := said.FindAllString(output, messagesMax)
	for i, text := range all {
		text = strings.TrimSpace(text)
		all[i] = text[:min(len(text), messageMax)]
	}
	return all
}

// short is the folder of one of our packages.
func short(path string) string { return strings.TrimPrefix(path, module+"/") }
