package testenv

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// chromiumEnds is the time limit for the browser to end.
const chromiumEnds = 20 * time.Second

// Browse opens a page in a separate headless Chromium, until the test calls stop. rules map
// names to addresses, "MAP name address:port" each; no other name is resolved. Without Chromium
// the test ends, as by [Need].
func Browse(t testing.TB, page string, rules ...string) (stop func()) {
	t.Helper()
	program := os.Getenv(ChromiumVar)
	if program == "" {
		var err error
		if program, err = exec.LookPath("chromium"); err != nil {
			missing(t, "chromium is not in PATH", "install it, or name it in "+ChromiumVar)
		}
	}
	profile, err := os.MkdirTemp("", "wt-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, program, //nolint:gosec // the program is the test's
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run", "--no-proxy-server",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-features=HttpsUpgrades",
		"--user-data-dir="+profile, "--host-resolver-rules="+strings.Join(append(rules, "MAP *.invalid ~NOTFOUND"), ", "), page)
	cmd.Dir = profile
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = chromiumEnds
	var said bytes.Buffer // its children hold it open: Wait waits for them, too
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		end()
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		end()
		_ = cmd.Wait() // stop has ended it, so an error means nothing
		if t.Failed() {
			t.Logf("chromium says: %s", &said)
		}
		if err := os.RemoveAll(profile); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}
