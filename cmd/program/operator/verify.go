package operator

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
	"github.com/tempo-watchtower/watchtower/cmd/program/verify"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// errBroken is the error of a verification that found violations.
var errBroken = errors.New("the stored data breaks promises")

const verifyHelp = `Check the store against itself and, with --chains, against the chain:

  - every event can be read, versions and positions have no gaps, event ids are unique,
    and the log keeps the promises that can be checked without other data
  - every row of the read models is the fold of its events, and every open transaction
    is in the due queue
  - signed bytes exist while they may be sent, and are deleted once they are erased
  - sealed verdicts agree with the chain

It writes nothing, and the service may be running: each database is read as of one
moment. Meanwhile Postgres keeps old versions of rows, and the write-ahead logs of an
embedded store grow, so verify a copy of a large store: --store names the copy, and
--database the database with its read models and queue.

Progress goes to standard error. The exit status is 0 without faults, 1 with faults, 2 if
a check could not be made. See docs/howto/verify.md.`

// Verify is the command "verify", which checks a store for consistency.
func (p Program) Verify() *cobra.Command {
	var o terminal.Output
	var progress func(unit string) *terminal.Progress
	cmd := &cobra.Command{
		Use: "verify", Short: "Check the store against itself and the chain, without writing", Args: cobra.NoArgs, Long: verifyHelp + p.VerifyHelp,
		Example: "  " + p.Name + " verify --store postgres://… --chains 42431=https://…",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := p.Resolve(cmd)
			if err != nil {
				return err
			}
			began := time.Now()
			i, err := app.Inspect(cmd.Context(), c, p.logger(c))
			if err != nil {
				return Unchecked{err}
			}
			defer i.Close() //nolint:errcheck // it was only read
			options := verify.Options{Work: i.Work, Log: i.Log, Again: i.Again, Sparse: i.Sparse, Nodes: i.Nodes, Began: began, Now: time.Now}
			if p.Judges != nil {
				options.Judges = p.Judges()
			}
			shown := progress("rows")
			options.Progress = shown.Show
			report, err := verify.Run(cmd.Context(), options)
			shown.End()
			return errors.Join(verdict(report, err), terminal.Tell(cmd, &o, "violations", report, tellReport))
		},
	}
	p.Settings(cmd)
	progress = p.progressing(cmd)
	o.Report(cmd)
	return cmd
}

// verdict is the error of a verification. Violations take precedence over unchecked parts.
func verdict(report verify.Report, err error) error {
	switch {
	case len(report.Broken) > 0:
		return errors.Join(errBroken, err)
	case err != nil:
		return Unchecked{err}
	case len(report.Unchecked) > 0:
		return Unchecked{Err: fmt.Errorf("some checks could not be made: %s", report.Unchecked[0])}
	}
	return nil
}

func tellReport(to io.Writer, r verify.Report) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "log\t%d events, %d transactions, %d of them open\n", r.Log.Events, r.Log.Transactions, r.Log.Open)
	for _, table := range slices.Sorted(maps.Keys(r.Drift)) {
		d := r.Drift[table]
		fmt.Fprintf(w, "%s\t%d rows, %d missing, %d different, %d too many\n", table, d.Rows, d.Missing, d.Different, d.Extra)
	}
	p := r.Payloads
	fmt.Fprintf(w, "signed bytes\t%d needed, %d of them missing; %d erased, %d of them still there; %d of no transaction\n", p.Needed, p.Missing, p.Erased, p.Kept, p.Orphans)
	for _, id := range slices.Sorted(maps.Keys(r.Chains)) {
		c := r.Chains[id]
		fmt.Fprintf(w, "chain %s\t%d sealed verdicts, %d of them false, at block %d\n", id, c.Verdicts, c.False, c.Head.Number)
	}
	fmt.Fprintf(w, "took\t%.1f s\n", r.Took)
	if err := w.Flush(); err != nil {
		return err
	}
	for _, v := range r.Violations {
		fmt.Fprintln(to, v)
	}
	for _, n := range slices.Sorted(maps.Keys(r.Broken)) {
		fmt.Fprintf(to, "%s, %s: broken %d times\n", n, promises.Of(n).Name, r.Broken[n])
	}
	for _, why := range r.Unchecked {
		fmt.Fprintln(to, "not checked:", why)
	}
	if r.Clean {
		fmt.Fprintln(to, "no faults")
	}
	return nil
}
