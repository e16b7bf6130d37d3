// Command devnet is the playground: a Tempo chain, the whole delivery service and a wallet that
// signs, in one program. It is not for production: its keys are public knowledge.
//
//	devnet                 chain and service, until Ctrl-C
//	devnet --demo          also signs three transactions and shows their progress
//	devnet --demo --exit   then ends: with status 0 only if all three were executed
//	devnet --chain-only    a chain alone, for a service or relayer that you start yourself
//	devnet --sign          prints a signed payment, to submit to a running service
//	devnet --sign --group  prints three that make a group, as a list
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

const (
	statusFailed      = 1
	statusUsage       = 2
	statusInterrupted = 130 // exit status that a shell reports for Ctrl-C
)

func main() {
	// A closed pipe stops the program gracefully, too: later writes to it may fail.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// options are the command line's options.
type options struct {
	demo, exit bool
	sign       bool
	group      bool // sign a group
	alone      bool // the chain alone
	chain      chainKind
	node       string // address of the chain
	anyNode    bool   // another one will do if it is taken
	data       string // folder for all data; empty: in memory
	tools      string // folder for fetched programs
	listen     string
	metrics    string
	level      slog.Level
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "devnet: %v\n", err)
		return statusUsage
	}
	if o.sign {
		text, err := signed(rand.Reader, o.group, time.Now())
		if err != nil {
			fmt.Fprintf(stderr, "devnet: %v\n", err)
			return statusFailed
		}
		fmt.Fprintln(stdout, text)
		return 0
	}
	ctx, cancel := context.WithCancel(ctx)
	orphaned := endWithGoRun(ctx, cancel)
	err = play(ctx, o, stdout, stderr)
	interrupted := ctx.Err() != nil
	cancel()
	<-orphaned
	switch {
	case err != nil && !(interrupted && errors.Is(err, context.Canceled)):
		fmt.Fprintf(stderr, "devnet: %v\n", err)
		if errors.Is(err, syscall.EADDRINUSE) {
			fmt.Fprintln(stderr, "devnet: choose other ports with --listen and --metrics-listen: go run ./cmd/devnet --demo --listen 127.0.0.1:9420 --metrics-listen 127.0.0.1:9421")
		}
		return statusFailed
	case interrupted && o.exit:
		return statusInterrupted // the demonstration was interrupted
	}
	return 0
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := pflag.NewFlagSet("devnet", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.SortFlags = false
	flags.BoolVar(&o.demo, "demo", false, "sign three transactions, submit them, and print their progress")
	flags.BoolVar(&o.exit, "exit", false, "with --demo: exit after the demonstration, with status 0 if all three were executed")
	flags.BoolVar(&o.sign, "sign", false, "only print a signed payment in hex, a new payment each time")
	flags.BoolVar(&o.group, "group", false, "with --sign: print a JSON list of three payments of one group, a minute apart")
	kind := flags.String("chain", string(autoChain), "anvil, simulated, or auto: anvil if it is installed or can be fetched")
	flags.BoolVar(&o.alone, "chain-only", false, "start only the chain, for a service or relayer that you start yourself")
	flags.StringVar(&o.node, "chain-listen", standardNode, "the address of the chain, on 127.0.0.1; by default another port if this one is taken, and any free port with --exit")
	flags.StringVar(&o.data, "data", "", "keep log, read models and chain in this folder; anvil only (default: keep nothing)")
	flags.StringVar(&o.tools, "tools", ".tools", "the folder for anvil, if it is fetched from npm")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8420", "the address of the API; any free port with --exit")
	flags.StringVar(&o.metrics, "metrics-listen", "127.0.0.1:8421", "the address of /metrics; any free port with --exit")
	level := flags.String("log-level", "warn", "debug, info, warn or error; the log goes to standard error")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	const freePort = "127.0.0.1:0"
	if o.anyNode = !flags.Changed("chain-listen"); o.exit && o.anyNode {
		o.node = freePort
	}
	if o.exit && !flags.Changed("listen") {
		o.listen = freePort
	}
	if o.exit && !flags.Changed("metrics-listen") {
		o.metrics = freePort
	}
	if o.chain, err = parseChainKind(*kind); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.exit && !o.demo:
		return o, errors.New("--exit needs --demo")
	case o.alone && (o.demo || o.sign):
		return o, errors.New("--chain-only excludes --demo and --sign")
	case o.group && !o.sign:
		return o, errors.New("--group needs --sign")
	case o.data != "" && o.chain == simulatedChain:
		return o, errors.New("--data needs anvil: a simulated chain is not stored")
	}
	if err := o.level.UnmarshalText([]byte(*level)); err != nil {
		return o, fmt.Errorf("--log-level: %w", err)
	}
	return o, nil
}

// play starts everything, shows it, and stops it again.
func play(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	chain, err := startChain(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, chain.stop()) }()
	if o.alone {
		newPaper(stdout).chainAlone(chain)
		<-ctx.Done()
		return nil
	}
	s, err := startDelivery(ctx, o, chain, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()

	out := newPaper(stdout)
	out.banner(o, chain, s)
	example := ""
	if o.demo {
		d := newDemo(s.url, chain.url, out)
		err := d.run(ctx)
		if o.exit || ctx.Err() != nil {
			return err
		}
		if err != nil {
			out.line("  %s", out.in(red, err.Error()))
		}
		example = d.last.String()
	}
	out.hints(s, example)
	select {
	case <-ctx.Done():
	case <-s.ended: // stop returns the reason
	}
	return nil
}
