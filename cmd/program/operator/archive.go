package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
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

// segmentShown is a segment as it is listed.
type segmentShown struct {
	First   eventlog.Position `json:"first"`
	Last    eventlog.Position `json:"last"`
	Events  uint64            `json:"events"`
	Bytes   uint64            `json:"bytes"`
	From    time.Time         `json:"from"`
	To      time.Time         `json:"to"`
	InStore bool              `json:"inStore"`
	SHA256  string            `json:"sha256"`
	File    string            `json:"file"`
}

// archiveShown is the list of segments, and the position with which the store's log begins.
type archiveShown struct {
	Segments []segmentShown    `json:"segments"`
	Begins   eventlog.Position `json:"begins"`
}

func tellArchive(to io.Writer, a archiveShown) error {
	var rows [][]string
	for _, s := range a.Segments {
		there := "no"
		if s.InStore {
			there = "yes"
		}
		rows = append(rows, []string{
			fmt.Sprintf("%d-%d", s.First, s.Last), strconv.FormatUint(s.Events, 10), strconv.FormatUint(s.Bytes, 10),
			s.From.Format(time.RFC3339), s.To.Format(time.RFC3339), there, s.SHA256, s.File,
		})
	}
	if err := terminal.Table(to, "POSITIONS\tEVENTS\tBYTES\tFROM\tTO\tIN THE STORE\tSHA-256\tFILE", rows); err != nil {
		return err
	}
	return terminal.Remark(to, "the store's log begins at position %d", a.Begins)
}

func (p Program) listArchive() *cobra.Command {
	var o terminal.Output
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
			shown := archiveShown{Segments: []segmentShown{}, Begins: begins}
			for _, s := range segments {
				shown.Segments = append(shown.Segments, segmentShown{s.First, s.Past - 1, s.Events, s.Bytes, s.From, s.To, s.First >= begins, s.Hash.String(), s.Name})
			}
			return terminal.Tell(cmd, &o, "segments", shown, tellArchive)
		},
	}
	p.Settings(cmd)
	o.Flags(cmd)
	return cmd
}

// errUnsound is the error of a verification that found faults in the archive.
var errUnsound = errors.New("the archive is not sound")

// soundness is the result of a verification of the archive.
type soundness struct {
	Sound    bool     `json:"sound"`
	Segments int      `json:"segments"`
	Events   uint64   `json:"events"`
	Bytes    uint64   `json:"bytes"`
	Faults   []string `json:"faults"`
}

func tellSoundness(to io.Writer, s soundness) error {
	for _, fault := range s.Faults {
		if err := terminal.Remark(to, "%s", fault); err != nil {
			return err
		}
	}
	state := "no faults"
	if !s.Sound {
		state = strconv.Itoa(len(s.Faults)) + " faults"
	}
	return terminal.Remark(to, "%d segments, %d events, %d bytes: %s", s.Segments, s.Events, s.Bytes, state)
}

func (p Program) verifyArchive() *cobra.Command {
	var o terminal.Output
	var progress func(unit string) *terminal.Progress
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
			found := soundness{Segments: len(segments), Faults: []string{}}
			shown := progress("bytes")
			var all uint64
			for _, s := range segments {
				all += s.Bytes
			}
			next := eventlog.Position(1)
			for _, s := range segments {
				shown.Show("segments", found.Bytes, all)
				if s.First != next {
					found.Faults = append(found.Faults, fmt.Sprintf("the list has no segment that begins with position %d", next))
				}
				next = s.Past
				if err := files.Verify(cmd.Context(), s); err != nil {
					found.Faults = append(found.Faults, err.Error())
				}
				found.Events, found.Bytes = found.Events+s.Events, found.Bytes+s.Bytes
			}
			shown.End()
			if begins > next {
				found.Faults = append(found.Faults, fmt.Sprintf("segments end before position %d, the store's log begins at %d", next, begins))
			}
			found.Sound = len(found.Faults) == 0
			err = terminal.Tell(cmd, &o, "faults", found, tellSoundness)
			if !found.Sound {
				return errors.Join(fmt.Errorf("%w: %d faults in %d segments", errUnsound, len(found.Faults), len(segments)), err)
			}
			return err
		},
	}
	p.Settings(cmd)
	progress = p.progressing(cmd)
	o.Only(cmd, terminal.AsTable, terminal.AsTable, terminal.AsJSON)
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

// positions is a range of the log, both ends included.
type positions struct {
	First eventlog.Position `json:"first"`
	Last  eventlog.Position `json:"last"`
	File  string            `json:"file,omitempty"`
	Bytes uint64            `json:"bytes,omitempty"`
}

// passShown is what a pass of the archiver has moved, or with a dry run, would move.
type passShown struct {
	DryRun bool              `json:"dryRun"`
	Stored []positions       `json:"stored"`
	Begins eventlog.Position `json:"begins"`              // of the store's log now
	Most   eventlog.Position `json:"wouldBegin,omitzero"` // of the store's log after a pass, at most
}

func tellPass(to io.Writer, r passShown) error {
	for _, s := range r.Stored {
		text := fmt.Sprintf("stored positions %d to %d in %s: %d bytes", s.First, s.Last, s.File, s.Bytes)
		if r.DryRun {
			text = fmt.Sprintf("would store positions %d to %d", s.First, s.Last)
		}
		if err := terminal.Remark(to, "%s", text); err != nil {
			return err
		}
	}
	if r.DryRun {
		return terminal.Remark(to, "the store's log begins at position %d, and would begin at position %d at most", r.Begins, r.Most)
	}
	return terminal.Remark(to, "the store's log begins at position %d", r.Begins)
}

func (p Program) runArchive() *cobra.Command {
	var o terminal.Output
	cmd := &cobra.Command{
		Use: "run", Short: "Move old events into the archive now, and drop them from the store", Args: cobra.NoArgs,
		Long: "Move events that are old enough into the archive now, and drop them from the store.\nRestored events are dropped too.",
	}
	dry := cmd.Flags().Bool("dry-run", false, "print the planned changes without making them")
	p.Settings(cmd)
	progress := p.progressing(cmd)
	o.Only(cmd, terminal.AsTable, terminal.AsTable, terminal.AsJSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *dry {
			return p.withPlan(cmd, func(ctx context.Context, plan archiver.Plan) error {
				planned, err := planned(ctx, plan)
				if err != nil {
					return err
				}
				return terminal.Tell(cmd, &o, "", planned, tellPass)
			})
		}
		return p.withArchiver(cmd, func(ctx context.Context, a *archiver.Archiver) error {
			shown := progress("events")
			a.OnRead = func(first, at, past eventlog.Position) {
				shown.Show(fmt.Sprintf("segment from position %d", first), uint64(at-first), uint64(past-first))
			}
			report, err := a.Pass(ctx, true)
			shown.End()
			done := passShown{Stored: []positions{}, Begins: report.Begins}
			for _, s := range report.Stored {
				done.Stored = append(done.Stored, positions{s.First, s.Past - 1, s.Name, s.Bytes})
			}
			if err != nil && len(done.Stored) == 0 {
				return err
			}
			return errors.Join(terminal.Tell(cmd, &o, "", done, tellPass), err)
		})
	}
	return cmd
}

// planned describes the next pass.
func planned(ctx context.Context, p archiver.Plan) (passShown, error) {
	shown := passShown{DryRun: true, Stored: []positions{}, Begins: p.Begins, Most: p.State.Past()}
	ranges, err := p.Due(ctx)
	for _, r := range ranges {
		shown.Stored = append(shown.Stored, positions{First: r[0], Last: r[1] - 1})
		shown.Most = r[1]
	}
	return shown, err
}

// restoredShown is what was restored, or with a dry run, would be.
type restoredShown struct {
	DryRun bool `json:"dryRun"`
	positions
}

func tellRestored(to io.Writer, r restoredShown) error {
	what := "restored"
	if r.DryRun {
		what = "would restore"
	}
	return terminal.Remark(to, "%s positions %d to %d", what, r.First, r.Last)
}

func (p Program) restoreArchive() *cobra.Command {
	var o terminal.Output
	cmd := &cobra.Command{
		Use: "restore", Short: "Put archived events back into the store, from a position on", Args: cobra.NoArgs,
		Long: "Put archived events back into the store, from the segment of a position up to the\n" +
			"beginning of the store's log. They stay there until archive run. The segments stay too.",
		Example: "  " + p.Name + " archive restore --from 3000001 --dry-run",
	}
	from := cmd.Flags().Uint64("from", 0, "the position to restore from")
	dry := cmd.Flags().Bool("dry-run", false, "print the planned changes without making them")
	p.Settings(cmd)
	progress := p.progressing(cmd)
	o.Only(cmd, terminal.AsTable, terminal.AsTable, terminal.AsJSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *from == 0 {
			return terminal.Misuse("--from must be a position: positions begin with 1")
		}
		if *dry {
			return p.withPlan(cmd, func(_ context.Context, plan archiver.Plan) error {
				first, err := plan.Restorable(eventlog.Position(*from))
				if err != nil {
					return err
				}
				return terminal.Tell(cmd, &o, "", restoredShown{true, positions{First: first, Last: plan.Begins - 1}}, tellRestored)
			})
		}
		return p.withArchiver(cmd, func(ctx context.Context, a *archiver.Archiver) error {
			shown := progress("events")
			a.OnRead = func(first, at, past eventlog.Position) { shown.Show("restored", uint64(at-first), uint64(past-first)) }
			first, past, err := a.Restore(ctx, eventlog.Position(*from))
			shown.End()
			if err != nil {
				return err
			}
			return terminal.Tell(cmd, &o, "", restoredShown{positions: positions{First: first, Last: past - 1}}, tellRestored)
		})
	}
	return cmd
}
