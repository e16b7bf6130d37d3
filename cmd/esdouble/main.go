// Command esdouble is a double of an EventStoreDB server or cluster, for tests and experiments.
// It speaks the server's protocol. It keeps one log in memory or in a plain file without
// flushing, and has no users and no TLS. Do not store important data in it.
//
//	esdouble                              one node on 127.0.0.1:2113, in memory
//	esdouble --data events.jsonl          keeps the log in a file
//	esdouble cluster --dir D              three nodes in one process, with the faults of real ones
//	esdouble control status               nodes of a cluster, and its URL
//	esdouble control kill-node 1          also start-node, resign
//
// As a driver of a cluster for the tests:
//
//	WATCHTOWER_TEST_ESDB_CLUSTER='esdouble control --at 127.0.0.1:2112'
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "esdouble:", err)
		os.Exit(1)
	}
}

// run runs one of the commands.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "cluster":
			return runCluster(ctx, args[1:], stdout)
		case "control":
			return control(ctx, args[1:], stdout)
		}
	}
	return runServer(ctx, args, stdout)
}

// newFlags returns a command's flags; --help prints usage before them.
func newFlags(name, usage string, stdout io.Writer) *pflag.FlagSet {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	flags.SetOutput(stdout)
	flags.Usage = func() { fmt.Fprintf(stdout, "%s\n\nFlags:\n%s", usage, flags.FlagUsages()) }
	return flags
}

// parse parses flags, and refuses arguments that are not flags unless the command has some.
func parse(flags *pflag.FlagSet, args []string, positional bool) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !positional && flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return nil
}

const serverUsage = `esdouble runs a double of one EventStoreDB node until it is interrupted.

Other commands, each with --help:
  esdouble cluster   runs a double of a cluster in one process
  esdouble control   shows, kills, starts and resigns the nodes of such a cluster`

// runServer serves one node until ctx ends.
func runServer(ctx context.Context, args []string, stdout io.Writer) error {
	o := esdbtest.Options{}
	flags := newFlags("esdouble", serverUsage, stdout)
	flags.StringVar(&o.Address, "listen", "127.0.0.1:2113", "address to listen on; everybody who reaches it may read and write")
	file := flags.String("data", "", "file that keeps the log; without it the log is in memory")
	flags.StringVar(&o.Version, "version", "", "version that the server reports")
	settings := addSettings(flags, o.Cluster)
	if err := parse(flags, args, false); err != nil {
		return err
	}
	var err error
	if o.Data, err = open(*file); err != nil {
		return err
	}
	o.Cluster = settings()
	server, err := esdbtest.New(o)
	if err != nil {
		return errors.Join(err, o.Data.Close())
	}
	fmt.Fprintf(stdout, "a double of an EventStoreDB, not a server, on %s\n", server.URL())
	<-ctx.Done()
	server.Stop()
	return o.Data.Close()
}

// open opens the log in a file, or in memory without a name.
func open(name string) (*esdbtest.Data, error) {
	if name == "" {
		return esdbtest.NewData(time.Now), nil
	}
	return esdbtest.OpenData(name, time.Now)
}
