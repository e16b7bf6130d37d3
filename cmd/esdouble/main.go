// Command esdouble is a double of an EventStoreDB server, for tests and for trying
// things out without one. It speaks the protocol, and is no server: one log in memory
// or in a plain file that is not flushed, no users, no TLS, no cluster. What is to be
// kept does not belong in it.
//
//	esdouble                              on 127.0.0.1:2113, in memory
//	esdouble --data events.jsonl          what was written outlives the process
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

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	o := esdbtest.Options{}
	flags := pflag.NewFlagSet("esdouble", pflag.ContinueOnError)
	flags.StringVar(&o.Address, "listen", "127.0.0.1:2113", "where it listens; whoever reaches that may read and write")
	name := flags.String("data", "", "file that keeps the log; none keeps it in memory")
	flags.StringVar(&o.Version, "version", "", "the version it says it has")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.Data = esdbtest.NewData(time.Now); *name != "" {
		var err error
		if o.Data, err = esdbtest.OpenData(*name, time.Now); err != nil {
			return err
		}
	}
	server, err := esdbtest.New(o)
	if err != nil {
		return errors.Join(err, o.Data.Close())
	}
	fmt.Fprintf(stdout, "a double of an EventStoreDB, not a server, on %s\n", server.URL())
	<-ctx.Done()
	server.Stop()
	return o.Data.Close()
}
