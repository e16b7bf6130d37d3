// Command worlds runs many simulated worlds, concurrently on all processors, each in its own
// process. It stops at the first broken promise, and shrinks that world. Otherwise it prints a
// summary, and fails if an event that must happen in some world never did.
//
//	worlds [flags]          generated worlds
//	worlds [flags] FILE...  worlds from files, for example those kept by -keep
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/tempo-watchtower/watchtower/proof/simulation"
)

// options are the flags.
type options struct {
	seed    uint64
	worlds  int
	hours   float64
	each    float64
	procs   int
	replays int
	traces  string
	binary  string
	keep    string
	require bool
	relay   bool
	hostile bool
	cluster bool
	twins   int
	twin    float64
	kept    []string
}

func main() {
	if archive := os.Getenv(runtimeVar); archive != "" {
		if err := tool(archive, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "worlds:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "the first seed")
	flag.IntVar(&o.worlds, "worlds", 0, "the number of simulations; 0: as many as fill the hours")
	flag.Float64Var(&o.hours, "hours", 20, "simulated hours with faults of all simulations together")
	flag.Float64Var(&o.each, "each", 2, "simulated hours with faults of each simulation")
	flag.IntVar(&o.procs, "procs", runtime.NumCPU(), "the number of parallel simulations")
	flag.IntVar(&o.replays, "replays", 0, "run only the first simulation, this number of times")
	flag.StringVar(&o.traces, "traces", "", "a folder for the history of each replay, one file for each")
	flag.StringVar(&o.binary, "binary", "", "the binary with the tests of ./proof/simulation, built if the file does not exist; empty: a temporary binary")
	flag.StringVar(&o.keep, "keep", "", "a folder for the smallest simulation that broke a promise")
	flag.BoolVar(&o.require, "require", false, "fail if a required situation occurred in no simulation")
	flag.BoolVar(&o.relay, "relay", false, "simulate the relay too: intents, signers, lanes")
	flag.BoolVar(&o.hostile, "hostile", false, "simulate hostile clients or web pages too")
	flag.BoolVar(&o.cluster, "cluster", false, "simulate the log in an EventStoreDB cluster of three nodes; twins have none")
	flag.IntVar(&o.twins, "twins", 0, "one of this number of seeds has twins too: a small simulation that runs with and without hostile clients to compare the results; 0: none")
	flag.Float64Var(&o.twin, "twin-hours", 0.1, "simulated hours with hostile clients of each twin")
	flag.Parse()
	o.kept = flag.Args()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "worlds:", err)
		os.Exit(1) //nolint:gocritic // stop has nothing to do any more
	}
}

// plan is the plan of a seed's world.
func (o options) plan(seed uint64) simulation.Plan {
	p := simulation.Expand(seed, o.each)
	if o.relay {
		p = simulation.ExpandRelay(seed, o.each)
	}
	if o.hostile {
		p = p.WithHostile()
	}
	if o.cluster {
		p = p.WithCluster()
	}
	return p
}

// expected lists the events that must happen in some world.
func (o options) expected() []string {
	all := simulation.Sometimes(o.relay)
	if o.hostile {
		all = append(all, simulation.Besetting(o.relay)...)
	}
	if o.cluster {
		all = append(all, simulation.Clustered()...)
	}
	return all
}

// plans are the plans of a seed's worlds.
func (o options) plans(seed uint64) []simulation.Plan {
	all := []simulation.Plan{o.plan(seed)}
	if o.twins > 0 && seed%uint64(o.twins) == 0 {
		all = append(all, simulation.ExpandTwins(seed, o.twin, o.relay))
	}
	return all
}

func run(ctx context.Context, o options, out io.Writer) error {
	if o.binary == "" {
		dir, err := os.MkdirTemp("", "worlds-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // it is temporary
		o.binary = filepath.Join(dir, "simulation.test")
	}
	binary, err := filepath.Abs(o.binary)
	if err != nil {
		return err
	}
	if _, err := os.Stat(binary); errors.Is(err, os.ErrNotExist) {
		if err := build(ctx, binary); err != nil {
			return err
		}
	}
	if o.traces != "" {
		if o.traces, err = filepath.Abs(o.traces); err != nil {
			return err
		}
	}
	l := lives{binary: binary, out: out}
	switch {
	case len(o.kept) > 0:
		return l.again(ctx, o.kept)
	case o.replays > 0:
		return l.replay(ctx, o.plan(o.seed), o)
	}
	if o.worlds == 0 {
		o.worlds = max(1, int(o.hours/o.each+0.999))
	}
	began := time.Now()
	sum, broken, err := l.all(ctx, o)
	sum.wall = time.Since(began)
	sum.print(out)
	switch {
	case err != nil:
		return err
	case broken != nil:
		return l.explain(ctx, *broken, o)
	case o.require:
		return sum.happened(o.expected())
	}
	return nil
}

// all runs the worlds, until one breaks a promise.
func (l lives) all(ctx context.Context, o options) (*sum, *simulation.Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	plans := make(chan simulation.Plan)
	go func() {
		defer close(plans)
		for i := range o.worlds {
			for _, p := range o.plans(o.seed + uint64(i)) { //nolint:gosec // small
				select {
				case plans <- p:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	total := newSum()
	var mu sync.Mutex
	var broken *simulation.Report
	var failed error
	var living sync.WaitGroup
	for range o.procs {
		living.Go(func() {
			for plan := range plans {
				r, err := l.live(ctx, plan)
				mu.Lock()
				switch {
				case ctx.Err() != nil:
				case err != nil:
					failed = err
					cancel()
				default:
					total.add(r)
					fmt.Fprintf(l.out, "%s\n", line(r)) //nolint:errcheck // for people
					if len(r.Violations) > 0 {
						broken = &r
						cancel()
					}
				}
				mu.Unlock()
			}
		})
	}
	living.Wait()
	if failed == nil && broken == nil {
		failed = context.Cause(ctx)
	}
	return total, broken, failed
}
