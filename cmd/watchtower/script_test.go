package main_test

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Each file is a session at the command line: the commands and their expected output.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE") != "",
		Cmds:          map[string]func(ts *testscript.TestScript, neg bool, args []string){"status": status},
		Setup: func(env *testscript.Env) error {
			env.Setenv("watchtower", program)
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/config")
			return nil
		},
	})
}

// status runs a command, and expects it to end with an exit status.
func status(ts *testscript.TestScript, _ bool, args []string) {
	got := 0
	err := ts.Exec(args[1], args[2:]...)
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		got = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("%v ended with %d, want %s\n%s%s", args[1:], got, args[0], ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}
