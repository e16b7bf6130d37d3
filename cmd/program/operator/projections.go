package operator

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
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
	return &cobra.Command{
		Use: "list", Short: "List the read models and their tables", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tTABLES\tCONTENTS") //nolint:errcheck // Flush tells
			for _, m := range p.Models {
				fmt.Fprintf(w, "%s\t%s\t%s\n", m.Name, strings.Join(m.TableNames(), ", "), m.About) //nolint:errcheck // Flush tells
			}
			return w.Flush()
		},
	}
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
	var asJSON bool
	cmd := &cobra.Command{
		Use: "status [NAME]...", Short: "Show the read models' positions and unfinished rebuilds",
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
				if asJSON {
					return json.NewEncoder(cmd.OutOrStdout()).Encode(all)
				}
				return showStates(cmd.OutOrStdout(), all)
			})
		},
	}
	p.Settings(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func showStates(to io.Writer, all []modelState) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tPOSITION\tHEAD\tLAG\tREBUILD") //nolint:errcheck // Flush tells
	for _, s := range all {
		shadow := "none"
		switch {
		case s.Busy:
			shadow = "under way"
		case s.Shadow != nil:
			shadow = "left at position " + thousands(uint64(*s.Shadow))
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\n", s.Name, s.Position, s.Head, s.Lag, shadow) //nolint:errcheck // Flush tells
	}
	return w.Flush()
}

func (p Program) rebuildModels() *cobra.Command {
	var dry, fresh, quiet bool
	cmd := &cobra.Command{
		Use: "rebuild [NAME]...", Short: "Rebuild read models in staging tables, and swap these in",
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
				for _, m := range models {
					if err := rebuildModel(ctx, r, m, rebuilding{cmd.OutOrStdout(), p.Stderr, dry, fresh, quiet}); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	p.Settings(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print the planned changes without making them")
	cmd.Flags().BoolVar(&fresh, "fresh", false, "discard the staging tables of an earlier rebuild")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "print no progress")
	return cmd
}

// rebuilding holds the settings and outputs of a rebuild.
type rebuilding struct {
	out, progress     io.Writer
	dry, fresh, quiet bool
}

func rebuildModel(ctx context.Context, r *app.ReadModels, m projections.Model, o rebuilding) (err error) {
	if o.dry {
		return wouldRebuild(ctx, r, m, o)
	}
	shadow, err := r.Shadow(ctx, m)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shadow.Close()) }()
	work := &projections.Rebuild{Model: m, Log: r.Log, Shadow: shadow, Fresh: o.fresh, Crash: app.Crash()}
	b := newBar(o.progress, time.Now)
	if !o.quiet {
		work.Told = b.show
	}
	done, err := work.Run(ctx)
	b.end()
	if err != nil {
		return err
	}
	took := time.Since(b.began)
	fmt.Fprintf(o.out, "%s: rebuilt up to position %d: %d events and %d rows in %s, %s events/s\n", m.Name, done.Position, //nolint:errcheck // it is done
		done.Events, done.Rows, took.Round(time.Millisecond), thousands(uint64(float64(done.Events)/took.Seconds())))
	return nil
}

// wouldRebuild describes the effect of a rebuild.
func wouldRebuild(ctx context.Context, r *app.ReadModels, m projections.Model, o rebuilding) error {
	s, err := stateOf(ctx, r, m)
	if err != nil {
		return err
	}
	from := eventlog.Position(0)
	switch {
	case s.Busy:
		fmt.Fprintf(o.out, "%s: another process is rebuilding it, so this rebuild would be refused\n", m.Name) //nolint:errcheck // nothing hangs on it
		return nil
	case s.Shadow != nil && !o.fresh:
		from = *s.Shadow
	}
	_, err = fmt.Fprintf(o.out, "%s: would fold the events after position %d up to %d, and replace tables that are at position %d\n", m.Name, from, s.Head, s.Position)
	return err
}

func (p Program) verifyModels() *cobra.Command {
	var asJSON, fresh, quiet bool
	cmd := &cobra.Command{
		Use: "verify [NAME]...", Short: "Compare read models with the log, row by row",
		Long: `Rebuild read models from the log into staging tables, and compare these with the serving
tables as of one moment. The serving tables are not changed. Rows that differ are printed.
The exit status is 0 without differences, 1 with differences, 2 if a check could not be made.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			return p.withModels(cmd, names, func(ctx context.Context, r *app.ReadModels, models []projections.Model) error {
				drift := map[string]promises.Drift{}
				for _, m := range models {
					if err := verifyModel(ctx, r, m, rebuilding{cmd.OutOrStdout(), p.Stderr, false, fresh, quiet}, drift); err != nil {
						return Unchecked{err}
					}
				}
				return showDrift(cmd.OutOrStdout(), models, drift, asJSON)
			})
		},
	}
	p.Settings(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&fresh, "fresh", false, "discard the staging tables of an earlier rebuild")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "print no progress")
	return cmd
}

func verifyModel(ctx context.Context, r *app.ReadModels, m projections.Model, o rebuilding, drift map[string]promises.Drift) (err error) {
	shadow, err := r.Shadow(ctx, m)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shadow.Close()) }()
	b := newBar(o.progress, time.Now)
	defer b.end()
	work := &projections.Rebuild{Model: m, Log: r.Log, Shadow: shadow, Fresh: o.fresh}
	if !o.quiet {
		work.Told = b.show
	}
	_, err = work.Verify(ctx, func(table projections.Table, want, got iter.Seq2[string, []byte]) error {
		drift[table.Name] = promises.Compare(want, got)
		return nil
	})
	return err
}

func showDrift(to io.Writer, models []projections.Model, drift map[string]promises.Drift, asJSON bool) error {
	var found uint64
	for _, d := range drift {
		found += d.Total()
	}
	if asJSON {
		if err := json.NewEncoder(to).Encode(drift); err != nil {
			return err
		}
	} else {
		for _, m := range models {
			for _, t := range m.Tables {
				d := drift[t.Name]
				fmt.Fprintf(to, "%s: %d rows, %d missing, %d different, %d too many\n", t.Name, d.Rows, d.Missing, d.Different, d.Extra) //nolint:errcheck // the status tells
				for _, one := range d.First {
					if !strings.HasPrefix(one.Key, "0x") {
						one.Key = strings.TrimLeft(one.Key, "0") // leading zeros are only for the order
					}
					fmt.Fprintln(to, verify.Tell(t.Name, one)) //nolint:errcheck // likewise
				}
			}
		}
	}
	if found > 0 {
		return errDiffers
	}
	return nil
}

func (p Program) dumpModels() *cobra.Command {
	cmd := &cobra.Command{
		Use: "dump [NAME]...", Short: "Print read models row by row, as lines of JSON in the order of their keys",
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
	return cmd
}
