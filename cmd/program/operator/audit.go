package operator

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/auditor"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
	"github.com/tempo-watchtower/watchtower/domain/audit"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Audit is the command "audit", which answers questions about the past from the log.
func (p Program) Audit() *cobra.Command {
	parent := &cobra.Command{
		Use: "audit", Short: "Query the log about the past",
		Long: "Query the log about the past. These commands only read, and the service may be running.\nSee docs/howto/audit.md.",
	}
	parent.AddCommand(p.showLife(), p.replayState(), p.export(), p.verifyLog(), p.lastSeal(), p.auditKey())
	return parent
}

// withLog opens the configured log and runs do.
func (p Program) withLog(cmd *cobra.Command, do func(ctx context.Context, c config.Config, log auditor.Source) error) (err error) {
	c, err := p.Resolve(cmd)
	if err != nil {
		return err
	}
	log, err := app.InspectLog(cmd.Context(), c, app.Logger(c.Log.Format, cmd.ErrOrStderr(), c.Log.Level))
	if err != nil {
		return Unchecked{err}
	}
	defer log.Close() //nolint:errcheck // it was only read
	return do(cmd.Context(), c, log)
}

// subject finds the stream that text names, on the configured chains or on the chain of a flag.
func (p Program) subject(ctx context.Context, c config.Config, log auditor.Source, text, on string) (auditor.Life, error) {
	var chains []chain.ID
	for _, configured := range c.Chains {
		chains = append(chains, configured.ID)
	}
	if on != "" {
		id, err := chain.ParseID(on)
		if err != nil {
			return auditor.Life{}, terminal.Misuse("chain: %w", err)
		}
		chains = []chain.ID{id}
	}
	name, err := auditor.Subject(ctx, log, text, chains, p.Forms, p.Audited...)
	return auditor.Life{Stream: name, Plan: c.Scheduler.Schedule, Kinds: p.Audited}, found(err)
}

// found gives an error about a subject its exit status.
func found(err error) error {
	switch {
	case errors.Is(err, auditor.ErrUnknown):
		return terminal.With(terminal.NotFound, err)
	case errors.Is(err, auditor.ErrSubject):
		return terminal.With(terminal.Usage, err)
	}
	return err
}

// subjectHelp describes SUBJECT.
func (p Program) subjectHelp() string {
	return "SUBJECT is a transaction's hash, SENDER/GROUP of a group,\n" + p.FormsHelp + "or a stream's name.\n" +
		"Without --chain, a hash or group is searched on the configured chains, or without any, in the\nwhole log."
}

func (p Program) showLife() *cobra.Command {
	var on string
	var o terminal.Output
	cmd := &cobra.Command{
		Use: "show SUBJECT", Short: "Print the recorded history of a transaction or group", Args: cobra.ExactArgs(1),
		Long: "Print the recorded history of a transaction or group: each event with its actor, cause,\nchanges, nodes' replies and reason.\n" + p.subjectHelp(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withLog(cmd, func(ctx context.Context, c config.Config, log auditor.Source) error {
				life, err := p.subject(ctx, c, log, args[0], on)
				if err != nil {
					return err
				}
				steps, err := auditor.Show(ctx, log, life)
				if err != nil && len(steps) == 0 {
					return err
				}
				return errors.Join(err, terminal.Tell(cmd, &o, "", steps, func(to io.Writer, steps []auditor.Step) error { return tell(to, life, steps) }))
			})
		},
	}
	p.Settings(cmd)
	cmd.Flags().StringVar(&on, "chain", "", "the `chain` of a hash or group")
	p.completeChain(cmd)
	o.Flags(cmd)
	return cmd
}

// tell writes a history as text, or as a table for CSV.
func tell(to io.Writer, life auditor.Life, steps []auditor.Step) error {
	if terminal.IsSheet(to) {
		var rows [][]string
		for _, s := range steps {
			rows = append(rows, []string{
				strconv.FormatUint(uint64(s.Version), 10), strconv.FormatUint(uint64(s.Position), 10), s.At.Format(time.RFC3339Nano), s.Name, s.Meta.Actor, s.Why, string(s.Data),
			})
		}
		return terminal.Table(to, "VERSION\tPOSITION\tAT\tNAME\tACTOR\tWHY\tDATA", rows)
	}
	w := bufio.NewWriter(to)
	fmt.Fprintf(w, "%s: %d events\n", life.Stream, len(steps))
	for _, s := range steps {
		after := ""
		if s.After > 0 {
			after = fmt.Sprintf(" (%s later)", s.After.Round(time.Millisecond))
		}
		fmt.Fprintf(w, "\n%d  %s  %s%s\n", s.Version, s.Name, s.At.Format(time.RFC3339Nano), after)
		if s.Why != "" {
			fmt.Fprintf(w, "   %s\n", s.Why)
		}
		who := s.Meta.Actor
		if who == "" {
			who = "somebody unnamed"
		}
		fmt.Fprintf(w, "   by %s, position %d", who, s.Position)
		if s.Cause != "" {
			fmt.Fprintf(w, ", because of %s", s.Cause)
		}
		fmt.Fprintln(w)
		for _, a := range s.Answers {
			said := strings.TrimSpace(strings.Join([]string{string(a.Class), string(a.Cause), a.Message}, " "))
			fmt.Fprintf(w, "   node %s after %s: %s\n", a.Endpoint, a.Took.Round(time.Millisecond), said)
		}
		for _, c := range s.Changed {
			fmt.Fprintf(w, "   %s\n", c)
		}
	}
	return w.Flush()
}

func (p Program) replayState() *cobra.Command {
	var on, at string
	var version, position uint64
	var o terminal.Output
	cmd := &cobra.Command{
		Use: "replay SUBJECT", Short: "Print the state of a transaction or group as of a version, position or time", Args: cobra.ExactArgs(1),
		Long:    "Print the state of a transaction or group as of a version, position or time; of now unless\none is given. " + p.subjectHelp(),
		Example: "  " + p.Name + " audit replay 0x… --at 2026-01-31T12:00:00Z",
		RunE: func(cmd *cobra.Command, args []string) error {
			for name, given := range map[string]uint64{"version": version, "position": position} {
				if given == 0 && cmd.Flags().Changed(name) {
					return terminal.Misuse("--%s 0 does not exist: numbers begin with 1", name)
				}
			}
			until, err := auditor.ParseUntil(version, position, at)
			if err != nil {
				return terminal.With(terminal.Usage, err)
			}
			return p.withLog(cmd, func(ctx context.Context, c config.Config, log auditor.Source) error {
				life, err := p.subject(ctx, c, log, args[0], on)
				if err != nil {
					return err
				}
				moment, err := auditor.Replay(ctx, log, life, until)
				if err != nil {
					return found(err)
				}
				return terminal.Tell(cmd, &o, "", moment, tellMoment)
			})
		},
	}
	p.Settings(cmd)
	cmd.Flags().StringVar(&on, "chain", "", "the `chain` of a hash or group")
	p.completeChain(cmd)
	cmd.Flags().Uint64Var(&version, "version", 0, "as of this version of its stream")
	cmd.Flags().Uint64Var(&position, "position", 0, "as of this position of the log")
	cmd.Flags().StringVar(&at, "at", "", "as of this time, such as 2026-01-31T12:00:00Z")
	o.Only(cmd, terminal.AsJSON, terminal.AsJSON, terminal.AsLines, terminal.AsTable, terminal.AsCSV)
	return cmd
}

// tellMoment writes a state as properties, one for each member.
func tellMoment(to io.Writer, m auditor.Moment) error {
	told := []terminal.Property{
		{Name: "stream", Value: string(m.Stream)}, {Name: "version", Value: strconv.FormatUint(uint64(m.Version), 10)},
		{Name: "position", Value: strconv.FormatUint(uint64(m.Position), 10)}, {Name: "at", Value: m.At.Format(time.RFC3339Nano)}, {Name: "why", Value: m.Why},
	}
	members, err := auditor.Members(m.State)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		told = append(told, terminal.Property{Name: name, Value: string(members[name])})
	}
	return terminal.Properties(to, told)
}

const verifyLogHelp = `Check the log against itself: every event's link is computed again, versions must have no
gaps, and the running hash over all events must be the sealed hash.

--key gives the public keys that may sign seals; without it the keys are printed but not
checked. --seals names a file of seals that "watchtower audit seal" printed earlier. Only
a file that was kept outside the log reveals that the log's end was cut off, or that the
log was rewritten together with its seals.

The exit status is 0 without faults, 1 with faults, 2 if a check could not be made.`

func (p Program) verifyLog() *cobra.Command {
	var keys []string
	var kept string
	var o terminal.Output
	var progress func(unit string) *terminal.Progress
	cmd := &cobra.Command{
		Use: "verify", Short: "Find an event that was altered, removed or inserted", Args: cobra.NoArgs, Long: verifyLogHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			shown := progress("events")
			defer shown.End()
			options := auditor.Options{Progress: shown.Show}
			for _, text := range keys {
				var key audit.Key
				if err := key.UnmarshalText([]byte(text)); err != nil {
					return Unchecked{fmt.Errorf("--key %s: %w, as printed by audit key", text, err)}
				}
				options.Keys = append(options.Keys, key)
			}
			var err error
			if options.Kept, err = readSeals(kept); err != nil {
				return Unchecked{err}
			}
			return p.withLog(cmd, func(ctx context.Context, _ config.Config, log auditor.Source) error {
				report, err := auditor.Verify(ctx, log, options)
				shown.End()
				return errors.Join(judged(report, err), terminal.Tell(cmd, &o, "faults", report, tellAudit))
			})
		},
	}
	p.Settings(cmd)
	cmd.Flags().StringSliceVar(&keys, "key", nil, "a public key that may sign seals, 64 hex digits; may be repeated")
	cmd.Flags().StringVar(&kept, "seals", "", "a file with seals that were kept outside the log")
	progress = p.progressing(cmd)
	o.Report(cmd)
	return cmd
}

// The errors of an audit whose report gives the details.
var (
	errAltered = errors.New("the log was altered")
	errUntold  = errors.New("some checks could not be made")
)

func judged(r auditor.Report, err error) error {
	switch {
	case r.Found > 0:
		return errors.Join(errAltered, err)
	case err != nil:
		return Unchecked{err}
	case len(r.Unchecked) > 0:
		return Unchecked{errUntold}
	}
	return nil
}

func tellAudit(to io.Writer, r auditor.Report) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "events\t%d up to position %d, %d of them recorded before links existed\n", r.Events, r.Head, r.Unlinked)
	fmt.Fprintf(w, "sealed\tup to position %d; %d events since\n", r.Sealed, r.Rest)
	for _, key := range slices.Sorted(maps.Keys(r.Seals)) {
		fmt.Fprintf(w, "key %s\t%d seals\n", key, r.Seals[key])
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range r.Faults {
		fmt.Fprintln(to, f)
	}
	if r.Found > len(r.Faults) {
		fmt.Fprintf(to, "and %d more\n", r.Found-len(r.Faults))
	}
	for _, why := range r.Unchecked {
		fmt.Fprintln(to, "not checked:", why)
	}
	if r.Clean {
		fmt.Fprintln(to, "no faults")
	}
	return nil
}

// readSeals reads the seals of a file, one after the other.
func readSeals(name string) (seals []audit.Sealed, err error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	for d := json.NewDecoder(bufio.NewReader(f)); ; {
		var s audit.Sealed
		switch err := d.Decode(&s); {
		case errors.Is(err, io.EOF):
			return seals, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		seals = append(seals, s)
	}
}

func (p Program) lastSeal() *cobra.Command {
	var o terminal.Output
	cmd := &cobra.Command{
		Use: "seal", Short: "Print the newest seal, to keep it outside the log", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withLog(cmd, func(ctx context.Context, _ config.Config, log auditor.Source) error {
				seal, err := auditor.LastSeal(ctx, log)
				if err != nil {
					return found(err)
				}
				return terminal.Tell(cmd, &o, "", seal, func(io.Writer, audit.Sealed) error { return nil })
			})
		},
	}
	p.Settings(cmd)
	o.Only(cmd, terminal.AsLines, terminal.AsLines, terminal.AsJSON)
	return cmd
}

func (p Program) auditKey() *cobra.Command {
	var o terminal.Output
	cmd := &cobra.Command{
		Use: "key", Short: "Print the public key of the key that signs seals here", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := p.Resolve(cmd)
			if err != nil {
				return err
			}
			if c.Audit.KeyFile == "" {
				return errors.New("a store in memory is sealed with a key that only its own service has")
			}
			signer, err := app.ReadSigner(c.Audit.KeyFile)
			if err != nil {
				return err
			}
			return terminal.Tell(cmd, &o, "", map[string]string{"key": signer.Key().String()}, func(to io.Writer, shown map[string]string) error {
				return terminal.Remark(to, "%s", shown["key"])
			})
		},
	}
	p.Settings(cmd)
	o.Only(cmd, terminal.AsTable, terminal.AsTable, terminal.AsJSON)
	return cmd
}

// completeChain completes the flag --chain by the configured chains.
func (p Program) completeChain(cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("chain", func(cmd *cobra.Command, _ []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
		c, err := p.completing(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, on := range c.Chains {
			ids = append(ids, cobra.CompletionWithDesc(on.ID.String(), on.Name))
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}) // the flag exists
}

// completing reads the configuration of a command that a shell completes.
func (p Program) completing(cmd *cobra.Command) (config.Config, error) {
	config.ParsedTwice(cmd.Flags())
	return p.Resolve(cmd)
}
