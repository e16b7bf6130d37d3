package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// playground is a module with every kind of test result.
var playground = map[string]string{
	"go.mod":      "module play\n\ngo 1.26.0\n",
	"good/a.go":   "package good\n",
	"empty/a.go":  "package empty\n",
	"broken/a.go": "package broken\n\nfunc f() int { return \"no\" }\n",
	"broken/a_test.go": `package broken

import "testing"

func TestNever(t *testing.T) {}
`,
	"good/a_test.go": `package good

import "testing"

func TestPlain(t *testing.T) { t.Log("secret of the good") }

func TestSubtests(t *testing.T) {
	t.Run("one", func(t *testing.T) {})
	t.Run("two/deep", func(t *testing.T) {})
	t.Run("missing", func(t *testing.T) { t.Skip("MISSING: WATCHTOWER_TEST_REDIS is not set; run the tests by make test") })
}

func TestSilentSkip(t *testing.T) { t.SkipNow() }
`,
	"bad/a_test.go": `package bad

import "testing"

func TestChild(t *testing.T) {
	t.Run("fails", func(t *testing.T) { t.Error("the child cried") })
	t.Run("passes", func(t *testing.T) {})
}

func TestParentItself(t *testing.T) {
	t.Run("passes", func(t *testing.T) {})
	t.Error("the parent cried")
}
`,
	"panics/a_test.go": `package panics

import "testing"

func TestBefore(t *testing.T) {}
func TestPanics(t *testing.T) { panic("out of cheese") }
`,
	"exits/a_test.go": `package exits

import (
	"os"
	"testing"
)

func TestExits(t *testing.T) { t.Log("leaving early"); os.Exit(3) }
`,
	"leaks/a_test.go": `package leaks

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) { m.Run(); fmt.Println("a leak was found"); os.Exit(1) }
func TestFine(t *testing.T) {}
`,
}

// TestResultsOfGoTest reads the output of the real go test.
func TestResultsOfGoTest(t *testing.T) {
	dir := t.TempDir()
	for name, text := range playground {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	r := &results{out: &out}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-json", "./...")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, r, &out
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	err := runGroup(cmd)
	all := &backends{list: []backend{
		{name: "postgres", has: "15.18", vars: []string{testenv.PostgresVar}},
		{name: "redis", missing: "nowhere to be found", vars: []string{testenv.RedisVar}},
	}}
	sum := report(&out, r, all, 3*time.Second)

	if want := (totals{passed: 7, failed: 6, skipped: 2}); sum != want {
		t.Errorf("counted %v, want %v", sum, want)
	}
	for _, want := range []string{
		"ok  play/good",
		"cannot use \"no\"", "the child cried", "the parent cried", "out of cheese", "leaving early", "a leak was found",
		"3       0        2", "without tests: play/empty\n",
		"  redis     MISSING: nowhere to be found\n  skipped without redis: 1\n",
		"  1 × MISSING: WATCHTOWER_TEST_REDIS is not set; run the tests by make test\n      play/good.TestSubtests/missing\n",
		"  1 × gave no reason\n      play/good.TestSilentSkip\n",
		`
Failed
  play/bad.TestChild/fails
      a_test.go:6: the child cried
  play/bad.TestParentItself
      a_test.go:12: the parent cried
  play/broken.(outside of its tests)
  play/exits.TestExits
  play/leaks.(outside of its tests)
  play/panics.TestPanics
`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if strings.Contains(out.String(), "secret of the good") {
		t.Error("the output of a test that passed is shown")
	}
	if got := verdict(sum, err, "", false); !strings.Contains(got, "failed") {
		t.Errorf("verdict = %q", got)
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

func TestVerdict(t *testing.T) {
	exit := exec.Command("sh", "-c", "exit 1").Run()
	for name, c := range map[string]struct {
		sum     totals
		err     error
		noRace  string
		require bool
		ok      bool
	}{
		"all passed":                 {sum: totals{passed: 1}, ok: true},
		"skipping is allowed":        {sum: totals{passed: 1, skipped: 1}, ok: true},
		"skipping is forbidden":      {sum: totals{passed: 1, skipped: 1}, require: true},
		"only what is optional":      {sum: totals{passed: 1, skipped: 1, optional: 1}, require: true, ok: true},
		"nothing skipped, forbidden": {sum: totals{passed: 1}, require: true, ok: true},
		"no race detector":           {sum: totals{passed: 1}, noRace: "no cgo", ok: true},
		"no race detector, required": {sum: totals{passed: 1}, noRace: "no cgo", require: true},
		"one failed":                 {sum: totals{passed: 1, failed: 1}, err: exit},
		"nothing ran":                {},
		"all skipped":                {sum: totals{skipped: 9}},
		"go test failed by itself":   {sum: totals{passed: 1}, err: exit},
		"go is not there":            {sum: totals{passed: 1}, err: exec.ErrNotFound},
	} {
		if got := verdict(c.sum, c.err, c.noRace, c.require); (got == "") != c.ok {
			t.Errorf("%s: verdict %q", name, got)
		}
	}
}

func TestGoTestArguments(t *testing.T) {
	always := []string{"test", "-json", "-count=1", "-timeout=30m", "-p=2", "-ldflags=-w"}
	for _, c := range []struct {
		args []string
		race bool
		want []string
	}{
		{nil, true, []string{"-race", sqliteAsIs, "./..."}},
		{nil, false, []string{"./..."}},
		{[]string{"-run", "TestX"}, true, []string{"-race", sqliteAsIs, "-run", "TestX", "./..."}},
		{[]string{"-short", "./domain/..."}, true, []string{"-race", sqliteAsIs, "-short", "./domain/..."}},
		{[]string{module + "/api"}, true, []string{"-race", sqliteAsIs, module + "/api"}},
	} {
		if diff := cmp.Diff(append(append([]string{}, always...), c.want...), goTest(c.args, c.race)); diff != "" {
			t.Errorf("%v: %s", c.args, diff)
		}
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var kept tail
	for range 10 {
		kept.add(strings.Repeat("x", outputMax/3))
	}
	kept.add("end")
	if len(kept) > 2*outputMax || len(kept) < outputMax || !strings.HasSuffix(string(kept), "xend") {
		t.Errorf("kept %d bytes, ending in %q", len(kept), kept[len(kept)-4:])
	}
}

// TestGroupLeavesNothingBehind runs a shell with a child, and checks that both end: when the
// shell ends itself, and when the run is interrupted.
func TestGroupLeavesNothingBehind(t *testing.T) {
	for name, script := range map[string]string{
		"the command ends": "sleep 1000 & echo $!; exit 7",
		// A shell makes its background processes ignore SIGINT.
		"it is interrupted": "sleep 1000 & echo $!; echo ready >&2; wait",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out, outEnd := pipe(t)
			ready, readyEnd := pipe(t)
			cmd := exec.CommandContext(ctx, "sh", "-c", script)
			cmd.Stdout, cmd.Stderr = outEnd, readyEnd
			ended := make(chan error, 1)
			go func() { ended <- runGroup(cmd) }()
			child := firstLine(t, out)
			if strings.Contains(script, "ready") {
				firstLine(t, ready)
				cancel()
			}
			err := <-ended
			exit := (*exec.ExitError)(nil)
			if name == "the command ends" && (!errors.As(err, &exit) || exit.ExitCode() != 7) {
				t.Errorf("the command ended with %v, want status 7", err)
			}
			pid, err := strconv.Atoi(child)
			if err != nil {
				t.Fatal(err)
			}
			awaitGone(t, pid)
		})
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() }) //nolint:errcheck // the test is over
	return r, w
}

func firstLine(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(text)
}

// awaitGone waits until a process is dead; its new parent may still have to reap it.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || strings.Contains(string(stat), ") Z ") {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("process %d still runs: %s", pid, stat)
		}
	}
}
