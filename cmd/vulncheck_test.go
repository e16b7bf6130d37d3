package cmd

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVulncheck runs make vulncheck's script with a double of the go command. Findings are
// failures, and so is an unreachable database, with a message that says so.
func TestVulncheck(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("OPTIONAL: there is no sh here")
	}
	folder := t.TempDir()
	for _, c := range []struct {
		answer string
		status int
		says   string
	}{
		{`echo "$*" | grep -q "govulncheck@v1.8.0 -db file:///db ./..."`, 0, "no known vulnerability is reached"},
		{`echo "Vulnerability #1: GO-2099-0001"; echo "exit status 3"; exit 1`, 3, "GO-2099-0001"},
		{`echo "govulncheck: fetching vulnerabilities: dial tcp: no such host" >&2; exit 1`, 1, "the database file:///db cannot be reached"},
		{`echo "cannot load packages"; exit 1`, 1, "the search failed"},
	} {
		if err := os.WriteFile(filepath.Join(folder, "go"), []byte("#!/bin/sh\n"+c.answer+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), shell, filepath.Join(root, "deploy", "vulncheck.sh"), "file:///db", folder)
		cmd.Env = append(os.Environ(), "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"))
		output, err := cmd.CombinedOutput()
		status := 0
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			status = exit.ExitCode()
		}
		if status != c.status || !strings.Contains(string(output), c.says) {
			t.Errorf("%s: status %d, want %d: %s", c.answer, status, c.status, output)
		}
	}
}
