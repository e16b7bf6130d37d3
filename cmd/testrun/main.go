// Command testrun runs the tests, or any command, with private servers beside them: a Postgres
// and a Redis on free ports, and programs that tests start themselves (anvil, viem). It fetches
// missing programs into .tools. It stops the servers when it ends, also after Ctrl-C.
//
//	testrun [flags and packages of go test]     runs go test -race, by default on ./...
//	testrun -- command [arguments]              runs a command with the servers up
//
// The last line of the report is: N passed, N failed, N skipped. The status is 0 when something
// passed and nothing failed; with WATCHTOWER_TEST_REQUIRE set, a skipped test is a failure.
//
// Tests put temporary files in memory if possible, unless TMPDIR says where. A command puts them
// in the default folder, since it may measure the disk.
//
// If a variable of infra/testenv is set already, its server is not started.
// WATCHTOWER_TEST_SOURCES (system,debian,npm) limits the sources of programs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/tempo-watchtower/watchtower/cmd/internal/parent"
)

const (
	statusFailed      = 1
	statusInterrupted = 130 // exit status that a shell reports for Ctrl-C
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	// A closed pipe stops the program gracefully, too: later writes to it may fail.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	watching := parent.Watch(ctx, cancel, os.Getppid())
	defer func() { cancel(); <-watching }()

	status, err := runWithServers(ctx, args, stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "testrun: %v\n", err)
	}
	if ctx.Err() != nil {
		return statusInterrupted
	}
	return status
}

func runWithServers(ctx context.Context, args []string, stdout, stderr io.Writer) (status int, err error) {
	command := len(args) > 0 && args[0] == "--"
	place := ""
	if !command && os.Getenv("TMPDIR") == "" {
		place = inMemory()
	}
	all, err := bringUp(ctx, place, stderr)
	defer func() {
		if e := all.tearDown(); e != nil {
			status, err = statusFailed, errors.Join(err, e)
		}
	}()
	if err != nil {
		return statusFailed, err
	}
	if command {
		if len(args) == 1 {
			return statusFailed, errors.New("no command after --")
		}
		return runCommand(ctx, args[1:], all, stdout, stderr)
	}
	return runTests(ctx, args, all, stdout, stderr)
}

// runCommand returns the command's own status.
func runCommand(ctx context.Context, args []string, all *backends, stdout, stderr io.Writer) (int, error) {
	all.print(stderr)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = all.environment(), stdout, stderr
	err := runGroup(cmd)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(exit.ExitCode(), statusFailed), nil // a signal has no exit code
	}
	if err != nil {
		return statusFailed, err
	}
	return 0, nil
}
