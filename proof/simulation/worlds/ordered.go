package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// lots are the places where Go's runtime leaves an order to chance on purpose, or to the
// machine's clock. These are: which of several timers of one instant fires first; which of
// several ready channels a select takes; where a map iteration starts, and how map keys are
// hashed; when a goroutine is preempted; and after how many turns, counted since the process
// began, a goroutine is taken from the global queue.
//
// A world with several attempts at one deadline would differ in each run. So would a world in
// which a context with several children is canceled, since it keeps them in a map. So would a
// world on a busy machine: the runtime's watchdog (sysmon) preempts a goroutine after 10 ms,
// even if the machine ran other processes in that time. The changed watchdog sleeps for ever.
// That is harmless where goroutines wait only for each other and time is simulated.
//
// Timers of one instant fire in the order in which they were set, for any shape of the heap of
// timers: they are counted in raceCtx, which is unused without the race detector. Maps with
// pointer keys are iterated in the order of hashes of addresses, so the heap has a fixed base.
//
// The installed runtime is not changed: the compiler gets other texts for these files (go help
// build, -overlay). These must not move a line or declare anything. Otherwise the other
// packages, which were compiled with the installed runtime, would not fit.
var lots = []struct { //nolint:gochecknoglobals // constant
	file  string
	drawn []lot
}{
	{"src/runtime/time.go", []lot{{"t.rand = cheaprand()\n", "ts.raceCtx++; t.rand = uint32(ts.raceCtx)\n"}}},
	{"src/runtime/select.go", []lot{{"j := cheaprandn(uint32(norder + 1))\n", "j := uint32(norder)\n"}}},
	{"src/runtime/rand.go", []lot{{"func maps_rand() uint64 {\n\treturn rand()\n", "func maps_rand() uint64 {\n\treturn 0\n"}}},
	{"src/runtime/alg.go", []lot{
		{"\t\thashkey[i] = uintptr(bootstrapRand())\n", "\t\thashkey[i] = uintptr(2*i + 1)\n"},
		{"\t\tkey[i] = bootstrapRand()\n", "\t\tkey[i] = 0x9e3779b97f4a7c15 * uint64(i+1)\n"},
	}},
	{"src/runtime/malloc.go", []lot{{"= uintptr(bootstrapRand()), 64\n", "= 0x9e3779b97f4a7c15, 64\n"}}},
	{"src/runtime/proc.go", []lot{
		{"\t\tusleep(delay)\n", "\t\tfor { usleep(1e6) }\n"},
		{"if pp.schedtick%61 == 0 && !sched.runq.empty() {\n", "if false && !sched.runq.empty() {\n"},
	}},
}

// lot is a text of the runtime, and its deterministic replacement.
type lot struct{ old, new string }

// build builds the tests of ./proof/simulation with a deterministic runtime.
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
	var names []string
	for _, l := range lots {
		at := filepath.Join(strings.TrimSpace(string(root)), filepath.FromSlash(l.file))
		text, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		for _, d := range l.drawn {
			if n := bytes.Count(text, []byte(d.old)); n != 1 {
				return fmt.Errorf("%s has %d times, not once: %s", at, n, d.old)
			}
			text = bytes.Replace(text, []byte(d.old), []byte(d.new), 1)
		}
		replace[at] = filepath.Join(dir, filepath.Base(l.file))
		names = append(names, replace[at]+"=>$GOROOT/"+l.file) // the compiler's name for installed files
		if err := os.WriteFile(replace[at], text, 0o600); err != nil {
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
	flags := fmt.Sprintf("-gcflags=runtime='-trimpath=%s'", strings.Join(names, ";"))
	list := exec.CommandContext(ctx, "go", "list", "-export", "-overlay", at, flags, "-f", "{{.Export}}", "runtime") //nolint:gosec // our own
	list.Stderr = os.Stderr
	made, err := list.Output()
	if err != nil {
		return fmt.Errorf("build a runtime: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	making := exec.CommandContext(ctx, "go", "test", "-c", "-toolexec", "'"+self+"'", "-o", binary, "github.com/tempo-watchtower/watchtower/proof/simulation") //nolint:gosec // our own
	making.Env, making.Stderr = append(os.Environ(), runtimeVar+"="+strings.TrimSpace(string(made))), os.Stderr
	if err := making.Run(); err != nil {
		return fmt.Errorf("build the worlds: %w", err)
	}
	return nil
}

// runtimeVar names the file with the other runtime. It is for processes of this program that the
// go command starts in place of its tools (go help build, -toolexec).
const runtimeVar = "WATCHTOWER_WORLD_RUNTIME"

// tool runs a tool of the go command unchanged, except that the linker gets the other runtime.
// So only the runtime is compiled again, and the linker refuses it if it looks different to the
// other packages.
func tool(archive string, line []string) error {
	if at := slices.Index(line, "-importcfg"); strings.HasPrefix(filepath.Base(line[0]), "link") && at >= 0 {
		packages, err := os.ReadFile(line[at+1])
		if err != nil {
			return err
		}
		all := strings.SplitAfter(string(packages), "\n")
		n := slices.IndexFunc(all, func(text string) bool { return strings.HasPrefix(text, "packagefile runtime=") })
		if n < 0 {
			return fmt.Errorf("%s names no runtime", line[at+1])
		}
		all[n] = "packagefile runtime=" + archive + "\n"
		if err := os.WriteFile(line[at+1], []byte(strings.Join(all, "")), 0o600); err != nil { // the go command's own file, replaced this once
			return err
		}
	}
	cmd := exec.Command(line[0], line[1:]...) //nolint:gosec,noctx // what the go command would run, and ends
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
