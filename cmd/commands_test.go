package cmd

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// testRun is one command that runs Go tests.
type testRun struct {
	packages  []string // folders, or patterns that end in /...
	tags      []string
	run, skip *regexp.Regexp // of the test's name; nil: all, and none
}

// runs reports whether the command runs a test of a folder, as far as names decide.
func (r testRun) runs(folder, test string) bool {
	if r.run != nil && !r.run.MatchString(test) || r.skip != nil && r.skip.MatchString(test) {
		return false
	}
	return slices.ContainsFunc(r.packages, func(pattern string) bool {
		pattern = strings.TrimPrefix(pattern, "./")
		parent, tree := strings.CutSuffix(pattern, "...")
		return pattern == folder || tree && strings.HasPrefix(folder+"/", parent)
	})
}

// shell reads scripts and finds the commands that run Go tests. It supports the shell syntax
// that .ci/run and the Makefile use around such commands. In doubt it overlooks a command rather
// than count one whose failure is ignored.
type shell struct{ make *makefile }

// testRuns returns the test commands of a script, in their order.
func (s shell) testRuns(script string) (all []testRun, err error) {
	script = strings.ReplaceAll(script, "\\\n", " ")
	for line := range strings.Lines(script) {
		list := commandsOf(line)
		for i, words := range list {
			ignored := i+1 < len(list) && list[i+1][0] == "||" && !slices.Contains(list[i+1], "exit")
			if words[0] == "||" || ignored {
				continue
			}
			found, err := s.command(words)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", strings.TrimSpace(line), err)
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// beforeCommand are words that may precede the actual command: environment settings, and
// programs that run another.
var beforeCommand = regexp.MustCompile(`^(\w+=.*|timeout|nice|--kill-after=\d+|-n|\d+[smh]?)$`)

func (s shell) command(words []string) ([]testRun, error) {
	for len(words) > 0 && beforeCommand.MatchString(words[0]) {
		words = words[1:]
	}
	switch {
	case len(words) > 1 && (words[0] == "make" || words[0] == "$(MAKE)") && s.make != nil:
		return s.make.invoke(words[1:])
	case len(words) > 1 && words[0] == "go" && words[1] == "test":
		return goTest(words[2:], ".")
	case len(words) > 2 && words[0] == "go" && words[1] == "run" && words[2] == "./cmd/testrun":
		if rest := words[3:]; len(rest) > 0 && rest[0] == "--" {
			return s.command(rest[1:])
		}
		return goTest(words[3:], "./...")
	}
	return nil, nil
}

// Flags of go test: with a value, without one, and flags with which no test runs.
var (
	valued    = []string{"run", "skip", "tags", "timeout", "count", "parallel", "p", "vet", "bench", "fuzz", "fuzztime"}
	plain     = []string{"v", "race", "json", "trimpath", "failfast"}
	onlyBuild = []string{"c", "list", "n"}
)

// goTest reads the arguments of go test.
func goTest(words []string, packages string) ([]testRun, error) {
	r := testRun{}
	for i := 0; i < len(words); i++ {
		flag, isFlag := strings.CutPrefix(words[i], "-")
		if !isFlag {
			if !strings.ContainsAny(words[i], "<>$") { // a shell redirection or variable
				r.packages = append(r.packages, words[i])
			}
			continue
		}
		name, value, given := strings.Cut(strings.TrimPrefix(flag, "-"), "=")
		switch {
		case slices.Contains(onlyBuild, name):
			return nil, nil
		case slices.Contains(plain, name):
			continue
		case !slices.Contains(valued, name):
			return nil, fmt.Errorf("go test -%s is not known to this test: add it to its lists of flags", name)
		case !given && i+1 == len(words):
			return nil, fmt.Errorf("go test -%s has no value", name)
		case !given:
			i++
			value = words[i]
		}
		if err := r.set(name, value); err != nil {
			return nil, err
		}
	}
	if len(r.packages) == 0 {
		r.packages = []string{packages}
	}
	return []testRun{r}, nil
}

func (r *testRun) set(name, value string) (err error) {
	pattern, _, _ := strings.Cut(value, "/") // the rest names subtests
	switch name {
	case "run":
		r.run, err = regexp.Compile(pattern)
	case "skip":
		if !strings.Contains(value, "/") {
			r.skip, err = regexp.Compile(value)
		}
	case "tags":
		r.tags = strings.Split(value, ",")
	}
	return err
}

// commandsOf splits a line of a script into commands, and each into words. A command that runs
// after the failure of the previous one begins with the word ||.
func commandsOf(line string) (all [][]string) {
	var now []string
	end := func() {
		if len(now) > 0 {
			all = append(all, now)
		}
		now = nil
	}
	for _, word := range words(line) {
		switch word {
		case "&&", ";", "|", "&":
			end()
		case "||":
			end()
			now = []string{word}
		default:
			now = append(now, word)
		}
	}
	end()
	return all
}

// words splits a line at blanks and operators outside of quotes, up to a comment.
func words(line string) (all []string) {
	var now strings.Builder
	var quote rune
	begun := false
	end := func() {
		if begun {
			all = append(all, now.String())
		}
		now.Reset()
		begun = false
	}
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			now.WriteRune(c)
		case c == '\'' || c == '"':
			quote, begun = c, true
		case c == '#' && !begun:
			return all
		case c == ' ' || c == '\t' || c == '\n':
			end()
		case c == ';' || c == '&' || c == '|':
			if n := len(all); c != ';' && !begun && n > 0 && all[n-1] == string(c) {
				all[n-1] += string(c)
				continue
			}
			end()
			all = append(all, string(c))
		default:
			now.WriteRune(c)
			begun = true
		}
	}
	end()
	return all
}
