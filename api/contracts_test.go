package api

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// contracts are the files of all contracts.
var contracts = []string{"openapi.yaml", "relay/openapi.yaml", "operators.yaml"}

// The linter has no error and no warning for any contract, by the rules that it recommends.
func TestContractsLint(t *testing.T) {
	program := filepath.Join(testenv.Need(t, testenv.RedoclyVar), "node_modules", "@redocly", "cli", "bin", "cli.js")
	args := append([]string{program, "lint", "--extends=recommended", "--format=stylish"}, contracts...)
	cmd := exec.CommandContext(t.Context(), "node", args...) //nolint:gosec // the test's own
	cmd.Env = append(cmd.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "warning ") {
		t.Errorf("%v:\n%s", err, out)
	}
	if got := strings.Count(string(out), ": validated in "); got != len(contracts) {
		t.Errorf("%d of %d contracts were linted:\n%s", got, len(contracts), out)
	}
}
