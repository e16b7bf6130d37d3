package simulation

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// folder holds the tests' builds; empty before the first build.
var folder string

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(folder) //nolint:errcheck // it is temporary
		os.Exit(code)
	}))
}
