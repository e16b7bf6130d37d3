// Command bench measures the service: the limits of its processors, the rates of its stores, and
// the rates and delays for a client of the real program. The load generator and the chain run on
// the same processors. Each figure is compared with a named yardstick, since ratios can be
// compared between machines and rates cannot.
//
//	bench [-quick] [-store embedded,postgres] [-only accept,deliver] [-runs 3] [-trial kill] [-fanout 1] [-json] [-profile DIR]
//
// Some sections run only when -only names them. The section crowd measures a million scheduled
// transactions. The sections peers and relay repeat the trials that other programs of this kind
// went through: in peers the watchtower delivers transactions signed in advance; in relay the
// relayer signs, like the other programs. After these two, the status is 1 if a payment was
// lost, paid twice or never final, or if a well-behaved client got an error.
//
// In the section neighbours one of ten clients floods each half of the service. The status is 1
// if another client gets an error or waits more than twice as long.
//
// Postgres is measured when WATCHTOWER_TEST_POSTGRES names a server, as it does under
// cmd/testrun. docs/proof/performance.md explains the figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case len(os.Args) > 1 && os.Args[1] == "serve":
		err = serveProfiled(ctx, os.Args[2:], os.Stderr)
	case len(os.Args) > 1 && os.Args[1] == floodCommand:
		err = serveFlood(ctx, os.Stdin, os.Stdout)
	default:
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // the deferred calls have run
	}
}

// The sections, in the order in which they run.
const (
	sectionLimits   = "limits"
	sectionLog      = "log"
	sectionRebuild  = "rebuild"
	sectionAccept   = "accept"
	sectionEligible = "eligible"
	sectionDeliver  = "deliver"
	sectionSteady   = "steady"
	sectionAnvil    = "anvil"
	sectionReplicas = "replicas"
	sectionCrowd    = "crowd" // only on request: it takes a quarter of an hour
	sectionPeers    = "peers" // only on request: ten minutes
	sectionRelay    = "relay" // only on request
	// sectionNeighbours runs only on request: it takes five minutes per store.
	sectionNeighbours = "neighbours"
)

func sections() []string {
	return []string{
		sectionLimits, sectionLog, sectionRebuild, sectionAccept, sectionEligible, sectionDeliver, sectionSteady,
		sectionAnvil, sectionReplicas, sectionCrowd, sectionPeers, sectionRelay, sectionNeighbours,
	}
}

// onlyAsked are the sections that run only if named.
func onlyAsked() []string {
	return []string{sectionCrowd, sectionPeers, sectionRelay, sectionNeighbours}
}

// options are the flags.
type options struct {
	scale   scale
	engines []string
	only    []string
	json    bool
	fanout  int    // endpoints; each attempt asks all of them
	profile string // folder for profiles; empty: no profiles
	trial   string // run only trials whose name contains this
}

func (o options) wants(section string) bool {
	return len(o.only) == 0 && !slices.Contains(onlyAsked(), section) || slices.Contains(o.only, section)
}

func (o options) wantsAny(sections ...string) bool { return slices.ContainsFunc(sections, o.wants) }

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("quick", false, "measure little, once: only to check that the program works")
	engines := flags.String("store", "", "embedded, postgres, or both (default: both, Postgres where "+testenv.PostgresVar+" is set)")
	only := flags.String("only", "", "only these sections, separated by commas: "+strings.Join(sections(), ","))
	runs := flags.Int("runs", 0, "the number of measurements, of which the median is printed (default 3, quick 1)")
	flags.IntVar(&o.fanout, "fanout", 1, "the number of the chain's endpoints, all of which get each attempt")
	flags.StringVar(&o.trial, "trial", "", "of peers, relay and neighbours, only runs whose name contains this `text`")
	flags.BoolVar(&o.json, "json", false, "print JSON instead of a table")
	flags.StringVar(&o.profile, "profile", "", "profile the service, and write its CPU profiles to this `folder`")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.scale = full(); *quick {
		o.scale = small()
	}
	if *runs > 0 {
		o.scale.runs = *runs
	}
	if o.fanout < 1 {
		return o, fmt.Errorf("-fanout %d: at least one endpoint is needed", o.fanout)
	}
	if o.engines, err = chooseEngines(*engines); err != nil {
		return o, err
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	for _, section := range o.only {
		if !slices.Contains(sections(), section) {
			return o, fmt.Errorf("-only %s: the sections are %s", section, strings.Join(sections(), ", "))
		}
	}
	return o, nil
}

func chooseEngines(text string) ([]string, error) {
	if text == "" {
		if os.Getenv(testenv.PostgresVar) == "" {
			return []string{embeddedEngine}, nil
		}
		return []string{embeddedEngine, postgresEngine}, nil
	}
	engines := strings.Split(text, ",")
	for _, engine := range engines {
		switch {
		case engine != embeddedEngine && engine != postgresEngine:
			return nil, fmt.Errorf("-store %s: the stores are %s and %s", engine, embeddedEngine, postgresEngine)
		case engine == postgresEngine && os.Getenv(testenv.PostgresVar) == "":
			return nil, fmt.Errorf("-store %s: %s names no server", engine, testenv.PostgresVar)
		}
	}
	return engines, nil
}

// bench is one run of the program.
type bench struct {
	options
	sheet   *sheet
	shown   []shown  // from the sections peers and relay
	besides []beside // from the section neighbours
	dir     string   // all temporary files
	program string   // the built service; with a profiler, this program
	relayer string   // the built relayer
	say     io.Writer
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	b := &bench{options: o, sheet: newSheet(), say: stderr}
	if b.dir, err = os.MkdirTemp("", "watchtower-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()

	about := describeMachine(time.Now())
	if err := b.all(ctx); err != nil {
		return err
	}
	about.After = load()
	if o.json {
		err = b.sheet.json(stdout, about, b.shown, b.besides)
	} else {
		err = errors.Join(b.sheet.print(stdout, about), b.printTrials(stdout), b.printNeighbours(stdout))
	}
	for _, s := range b.shown {
		err = errors.Join(err, s.wrong())
	}
	return errors.Join(err, b.wrongNeighbours())
}

// all runs all selected measurements.
func (b *bench) all(ctx context.Context) error {
	b.tell("limits of this machine")
	if err := b.limits(ctx); err != nil {
		return err
	}
	if b.profile != "" {
		if err := os.MkdirAll(b.profile, 0o755); err != nil { //nolint:gosec // profiles are for everybody
			return err
		}
	}
	if b.program == "" && b.wantsAny(sectionAccept, sectionEligible, sectionDeliver, sectionSteady, sectionAnvil, sectionReplicas, sectionCrowd, sectionPeers, sectionNeighbours) {
		if err := b.build(ctx); err != nil {
			return err
		}
	}
	if b.relayer == "" && b.wantsAny(sectionRelay, sectionNeighbours) {
		var err error
		if b.relayer, err = rig.BuildProgram(ctx, b.dir, "relayer"); err != nil {
			return err
		}
	}
	l := b.sign()
	for _, engine := range b.engines {
		for n := range b.scale.runs {
			b.tell("%s, run %d of %d", engine, n+1, b.scale.runs)
			if err := b.once(ctx, engine, l); err != nil {
				return fmt.Errorf("%s: %w", engine, err)
			}
		}
	}
	return nil
}

func (b *bench) once(ctx context.Context, engine string, l loads) error {
	for _, part := range []struct {
		measure  func(context.Context, string, loads) error
		sections []string
	}{
		{b.logs, []string{sectionLog, sectionRebuild}},
		{b.scheduled, []string{sectionAccept, sectionEligible}},
		{b.delivered, []string{sectionDeliver, sectionSteady}},
		{b.onAnvil, []string{sectionAnvil}},
		{b.replicas, []string{sectionReplicas}},
		{b.crowds, []string{sectionCrowd}},
		{b.besidePeers, []string{sectionPeers}},
		{b.besideRelays, []string{sectionRelay}},
		{b.neighbours, []string{sectionNeighbours}},
	} {
		if b.wantsAny(part.sections...) {
			if err := part.measure(ctx, engine, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// build builds the service's program. With a profiler it is this program, which then serves as
// cmd/watchtower does.
func (b *bench) build(ctx context.Context) (err error) {
	if b.profile == "" || b.wants(sectionNeighbours) {
		b.program, err = rig.Build(ctx, b.dir)
		return err
	}
	b.program, err = os.Executable()
	return err
}

// tell prints progress.
func (b *bench) tell(format string, args ...any) {
	fmt.Fprintf(b.say, "bench: %s\n", fmt.Sprintf(format, args...)) //nolint:errcheck // progress only
}
