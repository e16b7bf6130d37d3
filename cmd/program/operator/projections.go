package operator

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
	"github.com/tempo-watchtower/watchtower/cmd/program/verify"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

const projectionsHelp = `Read models are tables that are folded from the log. They can be rebuilt at any time
while services run: see docs/howto/projections.md.

"projections list" shows the names. Without a name, a command applies to all read models.`

// errDiffers is the error of a verification that found differences.
var errDiffers = errors.New("read models differ from the log")

// Projections is the command "projections", which shows, verifies and rebuilds read models.
func (p Program) Projections() *cobra.Command {
	parent := &cobra.Command{Use: "projections", Short: "Show, verify and rebuild the read models", Long: projectionsHelp}
	parent.AddCommand(p.listModels(), p.modelStatus(), p.rebuildModels(), p.verifyModels(), p.dumpModels())
	return parent
}

func (p Program) listModels() *cobra.Command {
	var o terminal.Output
	cmd := &cobra.Command{
		Use: "list", Short: "List the read models and their tables", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			shown := []modelShown{}
			for _, m := range p.Models {
				shown = append(shown, modelShown{m.Name, m.TableNames(), m.About})
			}
			return terminal.Tell(cmd, &o, "", shown, func(to io.Writer, all []modelShown) error {
				var rows [][]string
				for _, m := range all {
					rows = append(rows, []string{m.Name, strings.Join(m.Tables, ", "), m.Contents})
				}
				return terminal.Table(to, "NAME\tTABLES\tCONTENTS", rows)
			})
		},
	}
	o.Flags(cmd)
	return cmd
}

// modelShown is a read model as it is listed.
type modelShown struct {
	Name     string   `json:"name"`
	Tables   []string `json:"tables"`
	Contents string   `json:"contents"`
}

// completeModels completes the names of read models.
func (p Program) completeModels(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var all []string
	for _, m := range p.Models {
		all = append(all, cobra.CompletionWithDesc(m.Name, m.About))
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// withModels opens the read models that a command names and runs do.
func (p Program) withModels(cmd *cobra.Command, names []string, do func(ctx context.Context, r *app.ReadModels, models []projections.Model) error) (err error) {
	models, err := p.chosen(names)
	if err != nil {
		return Unchecked{err}
	}
	c, err := p.Resolve(cmd)
	if err != nil {
		return err
	}
	r, err := app.OpenReadModels(cmd.Context(), c)
	if err != nil {
		return Unchecked{err}
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return do(cmd.Context(), r, models)
}

func (p Program) chosen(names []string) ([]projections.Model, error) {
	all := slices.Clone(p.Models)
	var known []string
	for _, m := range all {
		known = append(known, m.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no read model %q: there are %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(all, func(m projections.Model) bool { return len(names) > 0 && !slices.Contains(names, m.Name) }), nil
}

// modelState is the position of a read model and of its rebuild.
type modelState struct {
	Name     string             `json:"name"`
	Position eventlog.Position  `json:"position"`
	Head     eventlog.Position  `json:"head"`
	Lag      uint64             `json:"lag"`
	Shadow   *eventlog.Position `json:"shadow,omitempty"` // position of an unfinished rebuild
	Busy     bool               `json:"busy,omitempty"`   // a rebuild is running
}

func stateOf(ctx context.Context, r *app.ReadModels, m projections.Model) (s modelState, err error) {
	s.Name = m.Name
	if s.Position, s.Head, err = projections.Positions(ctx, r.View, r.Log, m.Name); err != nil {
		return s, err
	}
	s.Head = max(s.Head, s.Position)
	s.Lag = uint64(s.Head - s.Position)
	shadow, err := r.Shadow(ctx, m)
	if errors.Is(err, eventlog.ErrBusy) {
		s.Busy = true
		return s, nil
	}
	if err != nil {
		return s, err
	}
	at, there, err := shadow.At(ctx)
	if there {
		s.Shadow = &at
	}
	return s, errors.Join(err, shadow.Close())
}

func (p Program) modelStatus() *cobra.Command {
	var o terminal.Output
	cmd := &cobra.Command{
		ValidArgsFunction: p.completeModels,
		Use:               "status [NAME]...", Short: "Show the read models' positions and unfinished rebuilds",
		RunE: func(cmd *cobra.Command, names []string) error {
			return p.withModels(cmd, names, func(ctx context.Context, r *app.ReadModels, models []projections.Model) error {
				var all []modelState
				for _, m := range models {
					s, err := stateOf(ctx, r, m)
					if err != nil {
						return Unchecked{err}
					}
					all = append(all, s)
				}
				return terminal.Tell(cmd, &o, "", all, showStates)
			})
		},
	}
	p.Settings(cmd)
	o.Flags(cmd)
	return cmd
}

func showStates(to io.Writer, all []modelState) error {
	var rows [][]string
	for _, s := range all {
		shadow := "none"
		switch {
		case s.Busy:
			shadow = "under way"
		case s.Shadow != nil:
			shadow = "left at position " + terminal.Thousands(uint64(*s.Shadow))
		}
		rows = append(rows, []string{s.Name, fmt.Sprint(s.Position), fmt.Sprint(s.Head), fmt.Sprint(s.Lag), shadow})
	}
	return terminal.Table(to, "NAME\tPOSITION\tHEAD\tLAG\tREBUILD", rows)
}

func (p Program) rebuildModels() *cobra.Command {
	var dry, fresh bool
	var o terminal.Output
	var progress func(unit string) *terminal.Progress
	cmd := &cobra.Command{
		ValidArgsFunction: p.completeModels,
		Use:               "rebuild [NAME]...", Short: "Rebuild read models in staging tables, and swap these in",
		Long: `Rebuild read models from the log into staging tables, and swap these in when they have
caught up. Services may run: their readers do not fail, and their projectors continue
with the new tables. A stopped rebuild continues where it stopped.

Progress goes to standard error. See docs/howto/projections.md.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			return p.withModels(cmd, names, func(ctx context.Context, r *app.ReadModels, models []projections.Model) error {
				if !dry {
					if err := r.Migrate(ctx); err != nil {
						return err
					}
				}
				all := []rebuiltShown{}
				for _, m := range models {
					one, err := rebuildModel(ctx, r, m, rebuilding{progress("positions"), dry, fresh})
					if err != nil {
						return errors.Join(err, terminal.Tell(cmd, &o, "", all, tellRebuilt))
					}
					all = append(all, one)
				}
				return terminal.Tell(cmd, &o, "", all, tellRebuilt)
			})
		},
	}
	p.Settings(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print the planned changes without making them")
	cmd.Flags().BoolVar(&fresh, "fresh", false, "discard the staging tables of an earlier rebuild")
	progress = p.progressing(cmd)
	o.Report(cmd)
	return cmd
}

// rebuilding holds the settings of a rebuild.
type rebuilding struct {
	progress   *terminal.Progress
	dry, fresh bool
}

func (o rebuilding) show(p projections.Progress) {
	o.progress.Show(fmt.Sprintf("%s: %s", p.Model, p.Step), uint64(p.Position), uint64(p.Head))
}

// rebuiltShown is what a rebuild of a read model has done, or with a dry run, would do.
type rebuiltShown struct {
	Name     string            `json:"name"`
	DryRun   bool              `json:"dryRun"`
	Position eventlog.Position `json:"position"` // reached; with a dry run, the log's end
	Events   uint64            `json:"events"`
	Rows     uint64            `json:"rows"`
	Seconds  float64           `json:"seconds"`

	// With a dry run.
	After   eventlog.Position `json:"after,omitempty"` // the events after this position would be folded
	Serving eventlog.Position `json:"serving,omitempty"`
	Busy    bool              `json:"busy,omitempty"`
}

func tellRebuilt(to io.Writer, all []rebuiltShown) error {
	for _, r := range all {
		text := fmt.Sprintf("%s: rebuilt up to position %d: %d events and %d rows in %s, %s events/s", r.Name, r.Position,
			r.Events, r.Rows, time.Duration(r.Seconds*float64(time.Second)).Round(time.Millisecond), terminal.Thousands(uint64(float64(r.Events)/max(r.Seconds, 1e-9))))
		switch {
		case r.Busy:
			text = fmt.Sprintf("%s: another process is rebuilding it, so this rebuild would be refused", r.Name)
		case r.DryRun:
			text = fmt.Sprintf("%s: would fold the events after position %d up to %d, and replace tables that are at position %d", r.Name, r.After, r.Position, r.Serving)
		}
		if err := terminal.Remark(to, "%s", text); err != nil {
			return err
		}
	}
	return nil
}

func rebuildModel(ctx context.Context, r *app.ReadModels, m projections.Model, o rebuilding) (done rebuiltShown, err error) {
	if o.dry {
		return wouldRebuild(ctx, r, m, o)
	}
	shadow, err := r.Shadow(ctx, m)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, shadow.Close()) }()
	began := time.Now()
	work := &projections.Rebuild{Model: m, Log: r.Log, Shadow: shadow, Fresh: o.fresh, Crash: app.Crash(), Told: o.show}
	reached, err := work.Run(ctx)
	o.progress.End()
	return rebuiltShown{Name: m.Name, Position: reached.Position, Events: reached.Events, Rows: reached.Rows, Seconds: time.Since(began).Seconds()}, err
}

// wouldRebuild describes the effect of a rebuild.
func wouldRebuild(ctx context.Context, r *app.ReadModels, m projections.Model, o rebuilding) (rebuiltShown, error) {
	s, err := stateOf(ctx, r, m)
	shown := rebuiltShown{Name: m.Name, DryRun: true, Position: s.Head, Serving: s.Position, Busy: s.Busy}
	if s.Shadow != nil && !o.fresh {
		shown.After = *s.Shadow
	}
	return shown, err
}

func (p Program) verifyModels() *cobra.Command {
	var fresh bool
	var o terminal.Output
	var progress func(unit string) *terminal.Progress
	cmd := &cobra.Command{
		ValidArgsFunction: p.completeModels,
		Use:               "verify [NAME]...", Short: "Compare read models with the log, row by row",
		Long: `Rebuild read models from the log into staging tables, and compare these with the serving
tables as of one moment. The serving tables are not changed. Rows that differ are printed.
The exit status is 0 without differences, 1 with differences, 2 if a check could not be made.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			return p.withModels(cmd, names, func(ctx context.Context, r *app.ReadModels, models []projections.Model) error {
				drift := map[string]promises.Drift{}
				for _, m := range models {
					if err := verifyModel(ctx, r, m, rebuilding{progress("positions"), false, fresh}, drift); err != nil {
						return Unchecked{err}
					}
				}
				shown := func(to io.Writer, drift map[string]promises.Drift) error { return showDrift(to, models, drift) }
				return errors.Join(differs(drift), terminal.Tell(cmd, &o, "", drift, shown))
			})
		},
	}
	p.Settings(cmd)
	cmd.Flags().BoolVar(&fresh, "fresh", false, "discard the staging tables of an earlier rebuild")
	progress = p.progressing(cmd)
	o.Report(cmd)
	return cmd
}

func verifyModel(ctx context.Context, r *app.ReadModels, m projections.Model, o rebuilding, drift map[string]promises.Drift) (err error) {
	shadow, err := r.Shadow(ctx, m)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shadow.Close()) }()
	defer o.progress.End()
	work := &projections.Rebuild{Model: m, Log: r.Log, Shadow: shadow, Fresh: o.fresh, Told: o.show}
	_, err = work.Verify(ctx, func(table projections.Table, want, got iter.Seq2[string, []byte]) error {
		drift[table.Name] = promises.Compare(want, got)
		return nil
	})
	return err
}

// differs is the error of tables that differ.
func differs(drift map[string]promises.Drift) error {
	for _, d := range drift {
		if d.Total() > 0 {
			return errDiffers
		}
	}
	return nil
}

func showDrift(to io.Writer, models []projections.Model, drift map[string]promises.Drift) error {
	for _, m := range models {
		for _, t := range m.Tables {
			d := drift[t.Name]
			if err := terminal.Remark(to, "%s: %d rows, %d missing, %d different, %d too many", t.Name, d.Rows, d.Missing, d.Different, d.Extra); err != nil {
				return err
			}
			for _, one := range d.First {
				if !strings.HasPrefix(one.Key, "0x") {
					one.Key = strings.TrimLeft(one.Key, "0") // leading zeros are only for the order
				}
				if err := terminal.Remark(to, "%s", verify.Tell(t.Name, one)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (p Program) dumpModels() *cobra.Command {
	var o terminal.Output
	cmd := &cobra.Command{
		ValidArgsFunction: p.completeModels,
		Use:               "dump [NAME]...", Short: "Print read models row by row, as lines of JSON in the order of their keys",
		RunE: func(cmd *cobra.Command, names []string) error {
			return p.withModels(cmd, names, func(ctx context.Context, r *app.ReadModels, models []projections.Model) error {
				out := bufio.NewWriter(cmd.OutOrStdout())
				for _, m := range models {
					if err := r.Dump(ctx, m, out); err != nil {
						return err
					}
				}
				return out.Flush()
			})
		},
	}
	p.Settings(cmd)
	o.Only(cmd, terminal.AsLines, terminal.AsLines)
	return cmd
}
