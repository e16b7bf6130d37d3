package main_test

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Stories of the command line, each a file: what is typed, and what is answered.
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
