package cmd

import (
	"errors"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"
)

// exposureMost is ten times the highest exposure of a unit by systemd-analyze security: 12 on systemd 252. What
// is left is the network, which the programs need.
const exposureMost = "15"

// exposed returns why systemd-analyze finds that a unit may do too much; empty if it does not.
func exposed(t *testing.T, unit string) string {
	t.Helper()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		if os.Getenv("WATCHTOWER_TEST_REQUIRE") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	out, err := exec.Command(analyze, "security", "--offline=yes", "--no-pager", "--threshold="+exposureMost, unit).CombinedOutput()
	if errors.As(err, new(*exec.ExitError)) {
		return string(out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ""
}

// The units of the packages let the programs do little.
func TestUnitsAreHardened(t *testing.T) {
	for _, name := range []string{"watchtower", "relayer"} {
		file := path.Join(root, "deploy/systemd", name+".service")
		if why := exposed(t, file); why != "" {
			t.Errorf("%s: %s", name, why)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		open := path.Join(t.TempDir(), name+".service")
		if err := os.WriteFile(open, []byte(strings.ReplaceAll(string(text), "SystemCallFilter=@system-service\n", "")), 0o600); err != nil {
			t.Fatal(err)
		}
		if exposed(t, open) == "" {
			t.Errorf("%s: a unit with all system calls is not found", name)
		}
	}
}

// A unit gives its program more time to stop than the program itself takes.
func TestUnitsWaitForShutdown(t *testing.T) {
	for _, name := range []string{"watchtower", "relayer"} {
		text, err := os.ReadFile(path.Join(root, "deploy/systemd", name+".service"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"TimeoutStopSec=60\n", "ExecStart=/usr/bin/" + name + " serve --config /etc/" + name + "/" + name + ".yaml\n", "User=" + name + "\n"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s.service lacks %q", name, want)
			}
		}
	}
}
