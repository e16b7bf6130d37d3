// Program mutants shows that the tests detect defects. It makes plausible defects (mutants) in
// the service, one at a time, and counts the simulated worlds until one of them breaks a
// promise. Mutants below the simulation, in the stores, must be found by the stores' tests.
//
// All mutants are built into one binary, in which they sleep, by replacing files for the
// compiler (go help build, -overlay): no file of the module is changed. A process wakes one of
// them. With none awake nothing may be found.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"sync"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err) //nolint:errcheck // nobody is left to tell
		os.Exit(1)                               //nolint:gocritic // nothing is left to undo
	}
}

// wanted holds the command line's options.
type wanted struct {
	only     *regexp.Regexp
	seeds    int
	hours    float64
	json     bool
	workers  int
	patience time.Duration
	keep     string
}

func parse(args []string, say io.Writer) (wanted, error) {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(say)
	only := flags.String("only", "", "mutants whose names match this expression")
	var w wanted
	flags.IntVar(&w.seeds, "seeds", 60, "the most simulations for each mutant: seeds 1, 2, 3, …")
	flags.Float64Var(&w.hours, "hours", 0.15, "simulated hours with faults in each")
	flags.BoolVar(&w.json, "json", false, "print the results as JSON")
	flags.IntVar(&w.workers, "workers", 2, "the number of mutants tried in parallel, one for each processor")
	flags.DurationVar(&w.patience, "patience", 30*time.Minute, "the time limit for one mutant")
	flags.StringVar(&w.keep, "keep", "", "an existing folder for the binaries")
	err := flags.Parse(args)
	if err == nil && (flags.NArg() > 0 || w.seeds < 1 || w.hours <= 0 || w.workers < 1) {
		err = errors.New("go run ./proof/mutants [-only expression] [-seeds n] [-hours h] [-json]")
	}
	if err == nil {
		w.only, err = regexp.Compile(*only)
	}
	return w, err
}

func run(ctx context.Context, args []string, out, say io.Writer) error {
	w, err := parse(args, say)
	if err != nil {
		return err
	}
	folder := w.keep
	if folder == "" {
		if folder, err = os.MkdirTemp("", "mutants-"); err != nil {
			return err
		}
		defer os.RemoveAll(folder) //nolint:errcheck // temporary anyway
	}
	files, err := mutated(".", mutants())
	if err != nil {
		return err
	}
	b := &bench{root: ".", folder: folder, hours: w.hours, seeds: w.seeds, patience: w.patience}
	if b.overlay, err = writeOverlay(".", folder, files); err != nil {
		return err
	}
	results, err := b.all(ctx, w, say)
	if err != nil {
		return err
	}
	if w.json {
		err = json.NewEncoder(out).Encode(results)
	} else {
		err = printTable(out, results)
	}
	return errors.Join(err, verdict(results))
}

// all runs the selected mutants, some concurrently, and finally the unchanged product.
func (b *bench) all(ctx context.Context, w wanted, say io.Writer) ([]result, error) {
	var chosen []mutant
	binaries := map[string]string{}
	for _, m := range mutants() {
		if !w.only.MatchString(m.Name) {
			continue
		}
		chosen = append(chosen, m)
		if pkg := packageOf(m); binaries[pkg] == "" {
			var err error
			if binaries[pkg], err = b.build(ctx, pkg); err != nil {
				return nil, err
			}
		}
	}
	results := make([]result, len(chosen))
	b.each(chosen, w.workers, func(i int) {
		results[i] = b.try(ctx, chosen[i], binaries[packageOf(chosen[i])], w.seeds)
		tell(say, results[i])
	})
	return append(results, b.nobody(ctx, chosen, results, binaries, w.workers, say)...), ctx.Err()
}

// asItIs describes a process without an awake mutant.
const asItIs = "The product, as it is."

// nobody runs the worlds and tests that have caught mutants, with all mutants asleep.
func (b *bench) nobody(ctx context.Context, chosen []mutant, tried []result, binaries map[string]string, workers int, say io.Writer) []result {
	type kind struct{ relay, hostile, twins, cluster bool } // of worlds
	kindOf := func(m mutant) kind { return kind{m.Relay, m.Hostile, m.Twins, m.Cluster} }
	most := map[kind]int{}
	var asleep []mutant
	met := map[command]bool{}
	for i, m := range chosen {
		if m.Test == nil {
			k := kindOf(m)
			most[k] = max(most[k], tried[i].Seeds)
		} else if !met[*m.Test] {
			met[*m.Test] = true
			asleep = append(asleep, mutant{Is: asItIs, Test: m.Test})
		}
	}
	for k, seeds := range most {
		if seeds > 0 {
			asleep = append(asleep, mutant{Is: asItIs, Relay: k.relay, Hostile: k.hostile, Twins: k.twins, Cluster: k.cluster})
		}
	}
	results := make([]result, len(asleep))
	b.each(asleep, workers, func(i int) {
		results[i] = b.try(ctx, asleep[i], binaries[packageOf(asleep[i])], most[kindOf(asleep[i])])
		tell(say, results[i])
	})
	return results
}

func packageOf(m mutant) string {
	if m.Test != nil {
		return m.Test.Package
	}
	return "proof/simulation"
}

// each calls do for each mutant, some concurrently.
func (b *bench) each(all []mutant, workers int, do func(i int)) {
	var working sync.WaitGroup
	slots := make(chan struct{}, workers)
	for i := range all {
		slots <- struct{}{}
		working.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	working.Wait()
}
