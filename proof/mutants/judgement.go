package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/proof/simulation"
)

// bench runs mutants: its test binaries contain all of them, asleep.
type bench struct {
	root     string // of the module
	folder   string // for build results
	overlay  string
	hours    float64
	seeds    int
	patience time.Duration // timeout of one process
}

// build builds a package's test binary with all mutants in it.
func (b *bench) build(ctx context.Context, pkg string) (string, error) {
	out := filepath.Join(b.folder, strings.ReplaceAll(pkg, "/", "_")+".test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-overlay", b.overlay, "-o", out, "./"+pkg) //nolint:gosec // packages of the table
	cmd.Dir = b.root
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s with mutants: %w\n%s", pkg, err, said)
	}
	return out, nil
}

// twinHours is the time with faults in twin worlds, in hours.
const twinHours = 0.05

// hoursOf is the time with faults in a mutant's worlds, in hours.
func (b *bench) hoursOf(m mutant) float64 {
	if m.Twins {
		return twinHours
	}
	return b.hours
}

// result is the result of running a mutant.
type result struct {
	Mutant    string
	Breaks    string
	Is        string
	Masked    string        `json:",omitempty"`
	Caught    bool          // a defect was found
	By        string        // the reported promise, or the failed test
	Evidence  string        // the report's text
	Relay     bool          `json:",omitempty"` // in worlds with a relay half
	Seeds     int           // number of worlds run
	Simulated time.Duration // simulated time in them
	Wall      time.Duration
	Trouble   string `json:",omitempty"` // why it could not be run
}

// try runs with a mutant awake, or with none for the zero mutant, and checks whether that is
// noticed.
func (b *bench) try(ctx context.Context, m mutant, binary string, seeds int) result {
	r := result{Mutant: m.Name, Breaks: m.Breaks, Is: m.Is, Masked: m.Masked, Relay: m.Relay}
	args, dir := []string{"-test.run=^TestWorlds$", "-test.v", "-test.timeout=0"}, "proof/simulation"
	if m.Test != nil {
		args, dir = []string{"-test.run=" + m.Test.Run, "-test.v", "-test.timeout=0"}, m.Test.Package
	}
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...) //nolint:gosec // it was built here
	cmd.Dir = filepath.Join(b.root, filepath.FromSlash(dir))
	cmd.Env = append(os.Environ(), awakeVar+"="+m.Name, "GOMAXPROCS=1", fmt.Sprintf("SEED=1-%d", seeds), fmt.Sprintf("HOURS=%v", b.hoursOf(m)))
	for name, on := range map[string]bool{"RELAY": m.Relay, "HOSTILE": m.Hostile, "TWINS": m.Twins, "CLUSTER": m.Cluster} {
		if on {
			cmd.Env = append(cmd.Env, name+"=1")
		}
	}
	began := time.Now()
	said, err := cmd.CombinedOutput()
	r.Wall = time.Since(began)
	if exited := (*exec.ExitError)(nil); err != nil && (ctx.Err() != nil || !errors.As(err, &exited)) {
		r.Trouble = fmt.Sprintf("not tried to the end: %v, %v", err, ctx.Err())
		return r
	}
	r.Caught = err != nil
	if m.Test != nil {
		r.judgeTest(m, said)
		return r
	}
	r.judgeWorlds(said)
	return r
}

// judgeWorlds reads the output of worlds. A process that failed without a broken promise has
// panicked, or hangs, in the world after the last report.
func (r *result) judgeWorlds(said []byte) {
	for line := range bytes.Lines(said) {
		text, ok := bytes.CutPrefix(line, []byte(simulation.ReportMark))
		if !ok {
			continue
		}
		var w simulation.Report
		if err := json.Unmarshal(text, &w); err != nil {
			r.Trouble = fmt.Sprintf("a world's report: %v", err)
			return
		}
		r.Seeds++
		r.Simulated += w.Simulated
		if len(w.Violations) > 0 {
			r.By, r.Evidence, _ = strings.Cut(w.Violations[0], ": ")
			return
		}
	}
	if r.Caught {
		r.Seeds++
		r.By, r.Evidence = "panic", firstMatch(said, panics)
	}
}

// judgeTest reads the output of a test: a skipped test counts as trouble.
func (r *result) judgeTest(m mutant, said []byte) {
	r.By = m.Test.name()
	switch {
	case bytes.Contains(said, []byte("--- SKIP")), bytes.Contains(said, []byte("no tests to run")):
		r.Trouble = "the test was not run: " + firstMatch(said, skips)
	case r.Caught:
		r.Evidence = firstMatch(said, fails)
	}
}

var (
	panics = regexp.MustCompile(`(?m)^(panic|fatal error): .*$`)
	skips  = regexp.MustCompile(`(?m)^ +\S+\.go:\d+: .*$|no tests to run`)
	fails  = regexp.MustCompile(`(?m)^ +\S+\.go:\d+: .*$|^panic: .*$`)
)

func firstMatch(said []byte, what *regexp.Regexp) string {
	return strings.TrimSpace(string(what.Find(said)))
}
