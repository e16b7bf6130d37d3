package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// lots are where Go's runtime leaves an order to chance on purpose, so that nobody relies
// on it: which of several timers of one instant rings first, where the time is made up,
// and which of several channels a select takes that are ready at once. A world in which
// several attempts have one deadline would be another each time. The runtime is not
// changed: the compiler is given other texts for two of its files (go help build,
// -overlay).
var lots = []struct{ file, old, new string }{ //nolint:gochecknoglobals // constant
	{"src/runtime/time.go", "t.rand = cheaprand()\n", "t.rand = 0\n"},
	{"src/runtime/select.go", "j := cheaprandn(uint32(norder + 1))\n", "j := uint32(norder)\n"},
}

// build makes the tests of ./simulation, with a runtime that draws no lots.
func build(ctx context.Context, binary string) (err error) {
	dir, err := os.MkdirTemp("", "worlds-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("where Go is: %w", err)
	}
	replace := map[string]string{}
	for _, l := range lots {
		at := filepath.Join(strings.TrimSpace(string(root)), filepath.FromSlash(l.file))
		text, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		if n := strings.Count(string(text), l.old); n != 1 {
			return fmt.Errorf("%s has %d times, not once: %s", at, n, l.old)
		}
		replace[at] = filepath.Join(dir, filepath.Base(l.file))
		if err := os.WriteFile(replace[at], []byte(strings.Replace(string(text), l.old, l.new, 1)), 0o600); err != nil {
			return err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	at := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(at, overlay, 0o600); err != nil {
		return err
	}
	making := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", at, "-o", binary, "github.com/tempo-watchtower/watchtower/simulation") //nolint:gosec // our own
	making.Stderr = os.Stderr
	if err := making.Run(); err != nil {
		return fmt.Errorf("build the worlds: %w", err)
	}
	return nil
}
