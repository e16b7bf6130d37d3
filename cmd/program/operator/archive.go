package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/commands/archiver"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Archive is the command "archive", for the archive of old events.
func (p Program) Archive() *cobra.Command {
	parent := &cobra.Command{
		Use: "archive", Short: "List, verify, move and restore old events",
		Long: "Old events are in segments, files in the place that the setting archive names, and are\n" +
			"read as a part of the log. A service moves old events there by itself. list, verify and\n" +
			"every --dry-run only read, and may run beside a service. run and restore may run beside\n" +
			"it only with Postgres, because it has an embedded store to itself. See docs/howto/archive.md.",
	}
	parent.AddCommand(p.listArchive(), p.verifyArchive(), p.runArchive(), p.restoreArchive())
	return parent
}

// archiveConfig returns a configuration that has an archive.
func (p Program) archiveConfig(cmd *cobra.Command) (config.Config, error) {
	c, err := p.Resolve(cmd)
	if err == nil && c.Archive.Dir == "" {
		err = config.Problems{{Origin: "archive", Text: "no archive is configured: set WATCHTOWER_ARCHIVE, for instance to file:/var/lib/watchtower/archive"}}
	}
	return c, err
}

func (p Program) listArchive() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the segments", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := p.archiveConfig(cmd)
			if err != nil {
				return err
			}
			segments, begins, _, err := app.Segments(cmd.Context(), c)
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "POSITIONS\tEVENTS\tBYTES\tFROM\tTO\tIN THE STORE\tSHA-256\tFILE") //nolint:errcheck // Flush tells
			for _, s := range segments {
				there := "no"
				if s.First >= begins {
					there = "yes"
				}
				fmt.Fprintf(w, "%d-%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", s.First, s.Past-1, s.Events, s.Bytes, //nolint:errcheck // as above
					s.From.Format(time.RFC3339), s.To.Format(time.RFC3339), there, s.Hash, s.Name)
			}
			fmt.Fprintf(w, "the store's log begins at position %d\n", begins) //nolint:errcheck // as above
			return w.Flush()
		},
	}
	p.Settings(cmd)
	return cmd
}

// errUnsound is the error of a verification that found faults in the archive.
var errUnsound = errors.New("the archive is not sound")

func (p Program) verifyArchive() *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify", Short: "Read every segment completely and report missing or damaged segments", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := p.archiveConfig(cmd)
			if err != nil {
				return err
			}
			segments, begins, files, err := app.Segments(cmd.Context(), c)
			if err != nil {
				return Unchecked{err}
			}
			var events, bytes uint64
			broken := 0
			tell := Progress(p.Stderr)
			next := eventlog.Position(1)
			for i, s := range segments {
				if s.First != next {
					broken++
					fmt.Fprintf(cmd.OutOrStdout(), "the list has no segment that begins with position %d\n", next) //nolint:errcheck // the exit status tells
				}
				next = s.Past
				if err := files.Verify(cmd.Context(), s); err != nil {
					broken++
					fmt.Fprintln(cmd.OutOrStdout(), err) //nolint:errcheck // the exit status tells
				}
				events, bytes = events+s.Events, bytes+s.Bytes
				tell("segments", uint64(i)+1, uint64(len(segments)))
			}
			if begins > next {
				broken++
				fmt.Fprintf(cmd.OutOrStdout(), "segments end before position %d, the store's log begins at %d\n", next, begins) //nolint:errcheck // as above
			}
			if broken > 0 {
				return fmt.Errorf("%w: %d of %d segments", errUnsound, broken, len(segments))
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d segments, %d events, %d bytes: no faults\n", len(segments), events, bytes)
			return err
		},
	}
	p.Settings(cmd)
	return cmd
}

// withArchiver opens the configured store and runs do. No other archiver runs meanwhile, also
// beside a service.
func (p Program) withArchiver(cmd *cobra.Command, do func(ctx context.Context, a *archiver.Archiver) error) error {
	c, err := p.archiveConfig(cmd)
	if err != nil {
		return err
	}
	return p.WithStorage(cmd, c, func(ctx context.Context, s app.Storage, log *slog.Logger) error {
		a := app.Archiver(s, c, Meta(), log, app.Crash())
		return a.Alone(ctx, func(ctx context.Context) error { return do(ctx, a) })
	})
}

// withPlan reads the plan of the configured store and runs do.
func (p Program) withPlan(cmd *cobra.Command, do func(ctx context.Context, p archiver.Plan) error) error {
	c, err := p.archiveConfig(cmd)
	if err != nil {
		return err
	}
	return app.ArchivePlan(cmd.Context(), c, do)
}

func (p Program) runArchive() *cobra.Command {
	cmd := &cobra.Command{
		Use: "run", Short: "Move old events into the archive now, and drop them from the store", Args: cobra.NoArgs,
		Long: "Move events that are old enough into the archive now, and drop them from the store.\nRestored events are dropped too.",
	}
	dry := cmd.Flags().Bool("dry-run", false, "print the planned changes without making them")
	p.Settings(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		out := cmd.OutOrStdout()
		if *dry {
			return p.withPlan(cmd, func(ctx context.Context, p archiver.Plan) error { return planned(ctx, out, p) })
		}
		return p.withArchiver(cmd, func(ctx context.Context, a *archiver.Archiver) error {
			report, err := a.Pass(ctx, true)
			for _, s := range report.Stored {
				fmt.Fprintf(out, "stored positions %d to %d in %s: %d bytes\n", s.First, s.Past-1, s.Name, s.Bytes) //nolint:errcheck // what matters is done
			}
			if err == nil {
				_, err = fmt.Fprintf(out, "the store's log begins at position %d\n", report.Begins)
			}
			return err
		})
	}
	return cmd
}

// planned describes the next pass.
func planned(ctx context.Context, out io.Writer, p archiver.Plan) error {
	ranges, err := p.Due(ctx)
	if err != nil {
		return err
	}
	past := p.State.Past()
	for _, r := range ranges {
		if _, err := fmt.Fprintf(out, "would store positions %d to %d\n", r[0], r[1]-1); err != nil {
			return err
		}
		past = r[1]
	}
	_, err = fmt.Fprintf(out, "the store's log begins at position %d, and would begin at position %d at most\n", p.Begins, past)
	return err
}

func (p Program) restoreArchive() *cobra.Command {
	cmd := &cobra.Command{
		Use: "restore", Short: "Put archived events back into the store, from a position on", Args: cobra.NoArgs,
		Long: "Put archived events back into the store, from the segment of a position up to the\n" +
			"beginning of the store's log. They stay there until archive run. The segments stay too.",
		Example: "  " + p.Name + " archive restore --from 3000001 --dry-run",
	}
	from := cmd.Flags().Uint64("from", 0, "the position to restore from")
	dry := cmd.Flags().Bool("dry-run", false, "print the planned changes without making them")
	p.Settings(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *from == 0 {
			return errors.New("--from must be a position: positions begin with 1")
		}
		say := func(what string, first, past eventlog.Position) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s positions %d to %d\n", what, first, past-1)
			return err
		}
		if *dry {
			return p.withPlan(cmd, func(_ context.Context, p archiver.Plan) error {
				first, err := p.Restorable(eventlog.Position(*from))
				if err != nil {
					return err
				}
				return say("would restore", first, p.Begins)
			})
		}
		return p.withArchiver(cmd, func(ctx context.Context, a *archiver.Archiver) error {
			first, past, err := a.Restore(ctx, eventlog.Position(*from))
			if err != nil {
				return err
			}
			return say("restored", first, past)
		})
	}
	return cmd
}
