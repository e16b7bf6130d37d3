package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/domain/consumer"
)

// Consumers is the command "consumers", for the programs that consume events.
func (p Program) Consumers() *cobra.Command {
	parent := &cobra.Command{
		Use: "consumers", Short: "Show consumer groups and their parked streams, and retry or skip events",
		Long: "Show the groups of programs that consume events by infra/feed or forward, and retry or\n" +
			"skip the events of parked streams. A group's name is GROUP/TOPIC, as in the output of\n" +
			"list. The group's process carries out a command within a second. See docs/howto/watermill.md.",
	}
	parent.AddCommand(
		p.onGroups("list", "List the groups with their checkpoints, remaining events, parked streams and holders", cobra.NoArgs, listConsumers),
		p.onGroups("parked GROUP", "List a group's parked streams and their errors", cobra.ExactArgs(1), listParked),
		p.onGroups("retry GROUP STREAM", "Repeat the event at which a stream is parked", cobra.ExactArgs(2), wish(consumer.Retry)),
		p.onGroups("skip GROUP STREAM VERSION", "Skip the event at which a stream is parked, if it has this version", cobra.ExactArgs(3), wish(consumer.Skip)),
	)
	return parent
}

// onGroups builds a command on the configured store's consumer groups.
func (p Program) onGroups(use, short string, args cobra.PositionalArgs, do func(ctx context.Context, f app.Feed, to io.Writer, args []string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			c, err := p.Resolve(cmd)
			if err != nil {
				return err
			}
			f, err := app.OpenFeed(cmd.Context(), c, p.logger(c))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, f.Close()) }()
			return do(cmd.Context(), f, cmd.OutOrStdout(), args)
		},
	}
	p.Settings(cmd)
	return cmd
}

func listConsumers(ctx context.Context, f app.Feed, to io.Writer, _ []string) error {
	groups, err := f.Groups.Groups(ctx)
	if err != nil {
		return err
	}
	head, err := f.Log.Head(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "GROUP\tPOSITION\tBEHIND\tPARKED\tHOLDER")
	for _, g := range groups {
		holder := g.Holder
		if holder == "" {
			holder = "nobody"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\n", g.Name, g.Position, max(head, g.Position)-g.Position, g.Parked, holder)
	}
	return w.Flush()
}

// parkedOf returns the parked streams of an existing group.
func parkedOf(ctx context.Context, f app.Feed, group string) ([]consumer.Parked, error) {
	groups, err := f.Groups.Groups(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(groups, func(g consumer.Group) bool { return g.Name == group }) {
		return nil, fmt.Errorf("there is no group %q: consumers list shows all groups, as GROUP/TOPIC", group)
	}
	return f.Groups.Parked(ctx, group)
}

func listParked(ctx context.Context, f app.Feed, to io.Writer, args []string) error {
	parked, err := parkedOf(ctx, f, args[0])
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STREAM\tVERSION\tPOSITION\tATTEMPTS\tSINCE\tCOMMAND\tERROR")
	for _, p := range parked {
		wished := string(p.Wish)
		if wished == "" {
			wished = "-"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s\t%q\n", p.Stream, p.Version, p.Position, p.Attempts, p.Since.Format(time.RFC3339), wished, p.Error)
	}
	return w.Flush()
}

// wish builds a command that resumes a stream from the event at which it is parked. If a version
// is given, it applies to that event only.
func wish(w consumer.Wish) func(ctx context.Context, f app.Feed, to io.Writer, args []string) error {
	return func(ctx context.Context, f app.Feed, to io.Writer, args []string) error {
		parked, err := parkedOf(ctx, f, args[0])
		if err != nil {
			return err
		}
		i := slices.IndexFunc(parked, func(p consumer.Parked) bool { return string(p.Stream) == args[1] })
		if i < 0 {
			return fmt.Errorf("%s of %s is not parked", args[1], args[0])
		}
		p := parked[i]
		if len(args) > 2 && args[2] != strconv.FormatUint(uint64(p.Version), 10) {
			return fmt.Errorf("%s of %s is parked at version %d, not at %s", p.Stream, args[0], p.Version, args[2])
		}
		if err := f.Groups.Wish(ctx, args[0], p.Stream, p.Version, w); err != nil {
			return fmt.Errorf("%s of %s: %w", p.Stream, args[0], err)
		}
		_, err = fmt.Fprintf(to, "%s of %s: %s version %d, at position %d\n", p.Stream, args[0], w, p.Version, p.Position)
		return err
	}
}
