package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/proof/simulation"
)

// lives runs worlds, each in its own process.
type lives struct {
	binary string
	out    io.Writer
	trace  string // output file for the whole history; empty: from the environment
}

// The timeout of a process: per simulated hour, and at least.
const (
	lived      = 10 * time.Minute
	livedLeast = 10 * time.Minute
	livedPast  = time.Minute // after its own timeout, until it is killed
)

// live runs a world. An error means that there is no report.
func (l lives) live(ctx context.Context, p simulation.Plan) (r simulation.Report, err error) {
	patience := livedLeast + time.Duration(p.Hours*float64(lived))
	// Its own timeout cannot interrupt a goroutine that never waits: see lots.
	ctx, cancel := context.WithTimeout(ctx, patience+livedPast)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.binary, "-test.run=^TestWorlds$", "-test.timeout="+patience.String()) //nolint:gosec // our own
	cmd.Env = append(os.Environ(), "WATCHTOWER_WORLD="+p.String(), "GODEBUG=asyncpreemptoff=1")
	if l.trace != "" {
		cmd.Env = append(cmd.Env, "WATCHTOWER_WORLD_TRACE="+l.trace)
	}
	cmd.Dir = os.TempDir()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	failed := cmd.Run()
	for text := range strings.Lines(stdout.String()) {
		if report, ok := strings.CutPrefix(text, simulation.ReportMark); ok {
			return r, json.Unmarshal([]byte(report), &r)
		}
	}
	return r, fmt.Errorf("seed %d: %w: no report; the world: %s\n%s\n%s", p.Seed, errors.Join(failed, ctx.Err()), p, tail(stdout.String()), tail(stderr.String()))
}

// tail is the end of a long text.
func tail(text string) string {
	const most = 8 << 10
	return text[max(0, len(text)-most):]
}

// replay runs one world several times, some concurrently, and fails unless all runs are the
// same.
func (l lives) replay(ctx context.Context, p simulation.Plan, o options) error {
	reports, errs := make([]simulation.Report, o.replays), make([]error, o.replays)
	slots := make(chan struct{}, max(o.procs, 1))
	var living sync.WaitGroup
	for i := range o.replays {
		slots <- struct{}{}
		living.Go(func() {
			defer func() { <-slots }()
			l := l
			if o.traces != "" {
				l.trace = filepath.Join(o.traces, fmt.Sprintf("replay-%d", i+1))
			}
			reports[i], errs[i] = l.live(ctx, p)
		})
	}
	living.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	traces := map[uint64]int{}
	for _, r := range reports {
		traces[r.Trace]++
		fmt.Fprintf(l.out, "%s\n", line(r)) //nolint:errcheck // for people
	}
	if len(traces) != 1 {
		return fmt.Errorf("%d runs of seed %d have %d traces", o.replays, p.Seed, len(traces))
	}
	fmt.Fprintf(l.out, "%d runs of seed %d, one trace\n", o.replays, p.Seed) //nolint:errcheck // for people
	return nil
}

// kept is a file with a world in which a promise was broken.
type kept struct {
	Found string // the defect, in one sentence
	Plan  simulation.Plan
}

// again runs worlds from files. It fails if a promise is broken in one of them now.
func (l lives) again(ctx context.Context, files []string) error {
	var all []error
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var world kept
		if err := json.Unmarshal(text, &world); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if world.Found == "" {
			return fmt.Errorf("%s does not name a finding", name)
		}
		r, err := l.live(ctx, world.Plan)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(l.out, "%s: %s\n", name, line(r)) //nolint:errcheck // for people
		if len(r.Violations) > 0 {
			all = append(all, fmt.Errorf("%s: a promise is broken: %s", name, r.Violations[0]))
		}
	}
	return errors.Join(all...)
}

// explain shrinks a world in which a promise was broken, and prints it.
func (l lives) explain(ctx context.Context, r simulation.Report, o options) error {
	promise, _, _ := strings.Cut(r.Violations[0], ":")
	fmt.Fprintf(l.out, "\nseed %d of commit %s: %s\nthe world: %s\nmade smaller …\n", r.Plan.Seed, commit(), r.Violations[0], r.Plan) //nolint:errcheck // for people
	small := simulation.Shrink(r.Plan, func(p simulation.Plan) bool {
		got, err := l.live(ctx, p)
		still := err == nil && len(got.Violations) > 0 && strings.HasPrefix(got.Violations[0], promise+":")
		if still {
			r = got
		}
		return still
	})
	text, err := json.MarshalIndent(kept{r.Violations[0], small}, "", "  ")
	if err != nil {
		return err
	}
	fmt.Fprintf(l.out, "the smallest world found: trace %016x\n%s\n", r.Trace, text) //nolint:errcheck // for people
	if o.keep != "" {
		name := filepath.Join(o.keep, fmt.Sprintf("seed-%d.json", small.Seed))
		if err := os.WriteFile(name, append(text, '\n'), 0o600); err != nil {
			return err
		}
		fmt.Fprintln(l.out, "kept in", name) //nolint:errcheck // for people
	}
	return fmt.Errorf("a promise was broken after %d worlds: %s", r.Plan.Seed-o.seed+1, r.Violations[0])
}

// commit is the version of the code, if known.
func commit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	out, err := exec.Command("git", "rev-parse", "HEAD").Output() //nolint:noctx // it ends at once
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
