// Package terminal is the behaviour that all commands share at the command line: formats of output,
// colours, progress, and exit statuses. It knows neither the service nor its stores.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// began marks the error of a command that had begun its work. Other errors are of wrong usage.
type began struct{ error }

func (b began) Unwrap() error { return b.error }

// Prepare adds to a program's commands what all of them share. Call it once, with every command added.
func Prepare(root *cobra.Command) {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.PersistentFlags().Bool(noColor, false, "print no colours (default: colours on a terminal, unless NO_COLOR is set)")
	// A command that only has subcommands is made runnable below; its help does not show it as such.
	root.SetUsageTemplate(strings.NewReplacer(
		"{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}",
	).Replace(root.UsageTemplate()))
	prepare(root)
}

func prepare(cmd *cobra.Command) {
	for _, below := range cmd.Commands() {
		prepare(below)
	}
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args = oneOf
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if do := cmd.RunE; do != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if err := do(cmd, args); err != nil {
				return began{err}
			}
			return nil
		}
	}
}

// oneOf refuses arguments of a command that has only subcommands: they are misspelt subcommands.
func oneOf(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	const distance = 2 // edits between a name and a suggestion
	cmd.SuggestionsMinimumDistance = distance
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		text += "; did you mean " + strings.Join(like, " or ") + "?"
	}
	return fmt.Errorf("%s", text)
}

// Run executes the command line of a prepared program, reports an error on the program's standard
// error output, and returns the exit status. An error from before the command began its work is one
// of wrong usage: then the usage is printed, too.
func Run(ctx context.Context, root *cobra.Command) Status {
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return OK
	}
	status := StatusOf(err)
	if errors.As(err, new(quiet)) {
		return status
	}
	text := strings.TrimPrefix(err.Error(), root.Name()+": ") // the client's errors have this prefix
	if _, is := err.(began); !is {                            //nolint:errorlint // wrapped by no other error
		status = misused(cmd)
		text += fmt.Sprintf("\nusage: %s\nfor details: %s --help", cmd.UseLine(), cmd.CommandPath())
	}
	fmt.Fprintf(root.ErrOrStderr(), "%s: %s\n", root.Name(), text) //nolint:errcheck // the status tells, too
	return status
}

// misuseStatus is the annotation of a command whose callers expect another status for wrong usage.
const misuseStatus = "misuse-status"

// MisuseIs sets the status, from 1 to 9, with which wrong usage of a command ends.
func MisuseIs(cmd *cobra.Command, status Status) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[misuseStatus] = string('0' + rune(status))
}

func misused(cmd *cobra.Command) Status {
	if own, is := cmd.Annotations[misuseStatus]; is {
		return Status(own[0] - '0')
	}
	return Usage
}
