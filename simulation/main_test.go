package simulation

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// folder is for what tests build; empty while they have built nothing.
var folder string

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(folder) //nolint:errcheck // it is temporary
		os.Exit(code)
	}))
}
