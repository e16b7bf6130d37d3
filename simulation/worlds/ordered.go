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

// lots are where Go's runtime leaves an order to chance on purpose, so that nobody relies
// on it, or to the machine's clock: which of several timers of one instant rings first,
// where the time is made up; which of several channels a select takes that are ready at
// once; where the walk through a map begins, and how its keys are hashed; when a goroutine
// has had its processor for long enough; and after how many turns, counted since the process
// began, one is taken from the queue of all processors. A world in which several attempts have
// one deadline would be another each time, and so would one in which a context has several
// children when it is canceled, for it keeps them in a map. So would one on a busy machine:
// the runtime's watchdog (sysmon) takes a goroutine off its processor and puts it behind the
// others when 10 ms have gone by, also those in which the machine ran somebody else. So it
// sleeps for ever, which does no harm where goroutines wait for each other alone and the time
// is made up.
//
// Timers of one instant ring in the order in which they were set, whatever the heap looks like
// that holds them: they are counted in raceCtx, which nobody else uses without the race detector.
// Maps by pointers are walked in the order of hashes of addresses, so the heap has a fixed base.
//
// The runtime that is installed is not changed: the compiler is given other texts for these
// files (go help build, -overlay). None of them may move a line or declare anything, or the
// other packages, which were compiled with the installed one, do not fit.
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

// lot is a text of the runtime, and one that leaves nothing to chance.
type lot struct{ old, new string }

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
		names = append(names, replace[at]+"=>$GOROOT/"+l.file) // as the compiler names what is installed
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
	making := exec.CommandContext(ctx, "go", "test", "-c", "-toolexec", "'"+self+"'", "-o", binary, "github.com/tempo-watchtower/watchtower/simulation") //nolint:gosec // our own
	making.Env, making.Stderr = append(os.Environ(), runtimeVar+"="+strings.TrimSpace(string(made))), os.Stderr
	if err := making.Run(); err != nil {
		return fmt.Errorf("build the worlds: %w", err)
	}
	return nil
}

// runtimeVar names the file with the other runtime to a process of this program that the
// go command starts in place of its tools (go help build, -toolexec).
const runtimeVar = "WATCHTOWER_WORLD_RUNTIME"

// tool runs a tool of the go command as it was to be run, but has the linker take the
// other runtime. So it is the only package that is compiled anew, and the linker refuses
// it if it looks any different to the others.
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
		if err := os.WriteFile(line[at+1], []byte(strings.Join(all, "")), 0o600); err != nil { // the go command's own, for this once
			return err
		}
	}
	cmd := exec.Command(line[0], line[1:]...) //nolint:gosec,noctx // what the go command would run, and ends
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
