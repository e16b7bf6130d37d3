package main_test

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Each file is a session at the command line: the commands and their expected output.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("watchtower", program)
			return nil
		},
	})
}
