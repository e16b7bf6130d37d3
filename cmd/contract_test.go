package cmd

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestContractRun runs the script of make contract's folder with test binaries that only print
// their arguments: it names missing variables, sets the others, and fails with its tests.
func TestContractRun(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("OPTIONAL: there is no sh here")
	}
	folder := contractFolder(t)
	const esdb, postgres, anvil = "WATCHTOWER_TEST_ESDB=esdb://server", "WATCHTOWER_TEST_POSTGRES=postgres://db", "WATCHTOWER_TEST_ANVIL=/anvil"
	for _, c := range []struct {
		arguments, variables []string
		status               int
		says                 []string
	}{
		{nil, nil, 2, []string{"contract needs WATCHTOWER_TEST_ESDB", "process needs WATCHTOWER_TEST_POSTGRES", "faults needs WATCHTOWER_TEST_ANVIL"}},
		{[]string{"contract"}, nil, 2, []string{"contract needs WATCHTOWER_TEST_ESDB"}},
		{[]string{"all"}, []string{esdb, anvil}, 2, []string{"process needs WATCHTOWER_TEST_POSTGRES"}},
		{[]string{"everything"}, nil, 2, []string{"usage: ./run"}},
		{[]string{"faults", "5m"}, nil, 2, []string{"minutes is a number"}},
		{[]string{"help"}, nil, 0, []string{"usage: ./run"}},
		{[]string{"contract"}, []string{esdb}, 0, []string{"1 passed, 0 failed", "infra/eventstoredb eventstoredb -test.run ^TestRealServer$"}},
		{[]string{"process"}, []string{esdb, postgres, anvil}, 0, []string{"process: cmd/watchtower passed", "process: cmd/relayer passed", "-test.skip ^Test(LeaderChanges|"}},
		{[]string{"process"}, []string{esdb, postgres, anvil, "STUB=FAIL"}, 1, []string{"process: cmd/relayer FAILED: 0 passed, 1 failed"}},
		{[]string{"faults", "7"}, []string{postgres, anvil}, 0, []string{"on a double of a cluster", "-test.run ^TestLeaderChanges$ -test.timeout 27m for 7m"}},
		{[]string{"all"}, []string{esdb, postgres, anvil, "WATCHTOWER_TEST_ESDB_CLUSTER=drive"}, 0, []string{"contract: infra/eventstoredb passed", "faults: cmd/relayer passed", "for 5m"}},
	} {
		reports := t.TempDir()
		cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "run"), c.arguments...)
		cmd.Dir = reports
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, c.variables...)
		output, err := cmd.CombinedOutput()
		status := 0
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			status = exit.ExitCode()
		}
		said := string(output) + contents(t, reports)
		if status != c.status {
			t.Errorf("%q %q: status %d, want %d: %s", c.arguments, c.variables, status, c.status, said)
		}
		for _, want := range c.says {
			if !strings.Contains(said, want) {
				t.Errorf("%q %q does not say %q: %s", c.arguments, c.variables, want, said)
			}
		}
	}
}

// contractFolder is the folder of make contract, with a script for each test binary.
func contractFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, dir := range []string{"programs", "tree/infra/eventstoredb", "tree/cmd/watchtower", "tree/cmd/relayer"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script, err := os.ReadFile(filepath.Join(root, "deploy", "contract", "run"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"run": string(script)}
	for _, binary := range []string{"contract.test", "watchtower.test", "relayer.test"} {
		files[binary] = "#!/bin/sh\n" + `[ "$1" = -test.v ] && shift
echo "--- ${STUB:-PASS}: TestStub (0.00s)"
echo "${PWD#*/tree/} $WATCHTOWER_TEST_ENGINE $* for ${WATCHTOWER_TEST_FAULTS_FOR:-}"
[ -z "${STUB:-}" ]
`
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// contents returns the texts of a folder's files.
func contents(t *testing.T, folder string) (all string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	return all
}
