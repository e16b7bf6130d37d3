package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
	"github.com/tempo-watchtower/watchtower/domain/consumer"
	"github.com/tempo-watchtower/watchtower/eventlog"
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
func (p Program) onGroups(use, short string, args cobra.PositionalArgs, do func(cmd *cobra.Command, o *terminal.Output, f app.Feed, args []string) error) *cobra.Command {
	var o terminal.Output
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
			return do(cmd, &o, f, args)
		},
	}
	p.Settings(cmd)
	o.Flags(cmd)
	return cmd
}

// groupShown is a consumer group as it is listed.
type groupShown struct {
	Group    string            `json:"group"`
	Position eventlog.Position `json:"position"`
	Behind   uint64            `json:"behind"`
	Parked   int               `json:"parked"`
	Holder   string            `json:"holder,omitempty"`
}

func listConsumers(cmd *cobra.Command, o *terminal.Output, f app.Feed, _ []string) error {
	groups, err := f.Groups.Groups(cmd.Context())
	if err != nil {
		return err
	}
	head, err := f.Log.Head(cmd.Context())
	if err != nil {
		return err
	}
	shown := []groupShown{}
	for _, g := range groups {
		shown = append(shown, groupShown{g.Name, g.Position, uint64(max(head, g.Position) - g.Position), g.Parked, g.Holder})
	}
	return terminal.Tell(cmd, o, "", shown, func(to io.Writer, all []groupShown) error {
		var rows [][]string
		for _, g := range all {
			rows = append(rows, []string{g.Group, strconv.FormatUint(uint64(g.Position), 10), strconv.FormatUint(g.Behind, 10), strconv.Itoa(g.Parked), cmp.Or(g.Holder, "nobody")})
		}
		return terminal.Table(to, "GROUP\tPOSITION\tBEHIND\tPARKED\tHOLDER", rows)
	})
}

// parkedOf returns the parked streams of an existing group.
func parkedOf(ctx context.Context, f app.Feed, group string) ([]consumer.Parked, error) {
	groups, err := f.Groups.Groups(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(groups, func(g consumer.Group) bool { return g.Name == group }) {
		return nil, terminal.With(terminal.NotFound, fmt.Errorf("there is no group %q: consumers list shows all groups, as GROUP/TOPIC", group))
	}
	return f.Groups.Parked(ctx, group)
}

// parkedShown is a parked stream as it is listed.
type parkedShown struct {
	Stream   eventlog.Stream   `json:"stream"`
	Version  eventlog.Version  `json:"version"`
	Position eventlog.Position `json:"position"`
	Attempts int               `json:"attempts"`
	Since    time.Time         `json:"since"`
	Command  string            `json:"command,omitempty"` // given by an operator, and not carried out yet
	Error    string            `json:"error"`
}

func listParked(cmd *cobra.Command, o *terminal.Output, f app.Feed, args []string) error {
	parked, err := parkedOf(cmd.Context(), f, args[0])
	if err != nil {
		return err
	}
	shown := []parkedShown{}
	for _, p := range parked {
		shown = append(shown, parkedShown{p.Stream, p.Version, p.Position, int(p.Attempts), p.Since, string(p.Wish), p.Error})
	}
	return terminal.Tell(cmd, o, "", shown, func(to io.Writer, all []parkedShown) error {
		var rows [][]string
		for _, p := range all {
			rows = append(rows, []string{
				string(p.Stream), strconv.FormatUint(uint64(p.Version), 10), strconv.FormatUint(uint64(p.Position), 10), strconv.Itoa(p.Attempts),
				p.Since.Format(time.RFC3339), p.Command, strconv.Quote(p.Error),
			})
		}
		return terminal.Table(to, "STREAM\tVERSION\tPOSITION\tATTEMPTS\tSINCE\tCOMMAND\tERROR", rows)
	})
}

// wishShown is a command about a parked stream.
type wishShown struct {
	Stream   eventlog.Stream   `json:"stream"`
	Group    string            `json:"group"`
	Command  string            `json:"command"`
	Version  eventlog.Version  `json:"version"`
	Position eventlog.Position `json:"position"`
}

// wish builds a command that resumes a stream from the event at which it is parked. If a version
// is given, it applies to that event only.
func wish(w consumer.Wish) func(cmd *cobra.Command, o *terminal.Output, f app.Feed, args []string) error {
	return func(cmd *cobra.Command, o *terminal.Output, f app.Feed, args []string) error {
		parked, err := parkedOf(cmd.Context(), f, args[0])
		if err != nil {
			return err
		}
		i := slices.IndexFunc(parked, func(p consumer.Parked) bool { return string(p.Stream) == args[1] })
		if i < 0 {
			return terminal.With(terminal.NotFound, fmt.Errorf("%s of %s is not parked", args[1], args[0]))
		}
		p := parked[i]
		if len(args) > 2 && args[2] != strconv.FormatUint(uint64(p.Version), 10) {
			return terminal.With(terminal.Refused, fmt.Errorf("%s of %s is parked at version %d, not at %s", p.Stream, args[0], p.Version, args[2]))
		}
		if err := f.Groups.Wish(cmd.Context(), args[0], p.Stream, p.Version, w); err != nil {
			return fmt.Errorf("%s of %s: %w", p.Stream, args[0], err)
		}
		done := wishShown{p.Stream, args[0], string(w), p.Version, p.Position}
		return terminal.Tell(cmd, o, "", done, func(to io.Writer, done wishShown) error {
			return terminal.Remark(to, "%s of %s: %s version %d, at position %d", done.Stream, done.Group, done.Command, done.Version, done.Position)
		})
	}
}
