package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

const module = "github.com/tempo-watchtower/watchtower"

// packageTimeout limits one package's tests. Tests that kill servers and wait for chains are
// slow under the race detector on a small machine.
const packageTimeout = "30m"

// largeHeap has tests and compilers collect garbage less often: it saves a third of the
// simulation's time. The programs of process tests run without it (proof/rig).
const largeHeap = "GOGC=400"

// runTests runs go test and prints the report.
func runTests(ctx context.Context, args []string, all *backends, stdout, stderr io.Writer) (int, error) {
	race := raceDetector(ctx)
	all.list = append(all.list, race)
	all.print(stderr)
	r := &results{out: stdout, verbose: slices.Contains(args, "-v")}
	cmd := exec.CommandContext(ctx, "go", goTest(args, race.missing == "")...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append([]string{largeHeap}, all.environment()...), r, stderr
	began := time.Now()
	err := runGroup(cmd)
	sum := report(stdout, r, all, time.Since(began))
	complaint := verdict(sum, err, race.missing, os.Getenv(testenv.RequireVar) != "")
	if ctx.Err() != nil {
		complaint = "interrupted"
	}
	if complaint != "" {
		fmt.Fprintln(stdout, complaint)
	}
	if _, err := fmt.Fprintln(stdout, sum); err != nil {
		return statusFailed, err
	}
	if complaint != "" {
		return statusFailed, nil
	}
	return 0, nil
}

// verdict is a sentence about the failure; empty if all is well.
func verdict(sum totals, err error, noRace string, require bool) string {
	exit := (*exec.ExitError)(nil)
	switch {
	case sum.failed > 0:
		return "Something failed; see above."
	case err != nil && !errors.As(err, &exit):
		return "go test could not be run: " + err.Error()
	case err != nil:
		return "go test failed outside of any package; see above."
	case sum.passed == 0:
		return "No test ran."
	case require && sum.skipped > sum.optional:
		return testenv.RequireVar + " is set, and something was skipped."
	case require && noRace != "":
		return testenv.RequireVar + " is set, and the race detector is missing: " + noRace + "."
	}
	return ""
}

// sqliteAsIs excludes SQLite, which is C translated to Go, from the race detector: tests with an
// embedded store would take ten times as long. SQLite's callers are still checked, and so are
// its locks, which are package sync's.
const sqliteAsIs = "-gcflags=modernc.org/...=-race=false"

// longest are the packages of this module with the longest tests. They start first: started
// last, one would leave a processor idle for minutes.
func longest() []string {
	return slices.DeleteFunc([]string{"./cmd/watchtower", "./proof/simulation", "./infra/chain/rpc", "./cmd/relayer"}, func(folder string) bool {
		_, err := os.Stat(folder)
		return err != nil
	})
}

// noDebugger leaves out what only debuggers read: linking ninety test programs takes half as long.
const noDebugger = "-ldflags=-w"

// packagesAtOnce suits two processors. A third package would mostly delay the other two.
const packagesAtOnce = "-p=2"

// goTest builds the arguments of go. Cached results prove nothing about this run's servers and
// schedules, hence -count=1.
func goTest(args []string, race bool) []string {
	all := []string{"test", "-json", "-count=1", "-timeout=" + packageTimeout, packagesAtOnce, noDebugger}
	if race {
		all = append(all, "-race", sqliteAsIs)
	}
	all = append(all, args...)
	if !slices.ContainsFunc(args, isPackage) {
		all = append(append(all, longest()...), "./...")
	}
	return all
}

func isPackage(arg string) bool {
	return arg == "." || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, module)
}

// raceDetector checks for go test -race: it needs cgo and a C compiler.
func raceDetector(ctx context.Context) backend {
	b := backend{name: "race detector"}
	out, err := exec.CommandContext(ctx, "go", "env", "CGO_ENABLED", "CC").Output()
	if err != nil {
		b.missing = "go env: " + err.Error()
		return b
	}
	enabled, compiler, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	program, _, _ := strings.Cut(compiler, " ")
	if enabled != "1" {
		b.missing = "cgo is switched off or there is no C compiler"
	} else if _, err := exec.LookPath(program); err != nil {
		b.missing = "no C compiler: " + err.Error()
	} else {
		b.has = "on"
	}
	return b
}
