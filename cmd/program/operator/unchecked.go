package operator

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

// Unchecked is the error of a verification that could not finish. Its exit status differs from
// that for faults found.
type Unchecked struct{ Err error }

func (e Unchecked) Error() string { return e.Err.Error() }
func (e Unchecked) Unwrap() error { return e.Err }

// ExitStatus is the exit status of a command with this error.
func (Unchecked) ExitStatus() terminal.Status { return terminal.Usage }

// progressing adds the flag --quiet to a command. The returned function makes the progress that the
// command prints: none with --quiet.
func (p Program) progressing(cmd *cobra.Command) func(unit string) *terminal.Progress {
	quiet := cmd.Flags().Bool("quiet", false, "print no progress")
	return func(unit string) *terminal.Progress {
		to := p.Stderr
		if *quiet {
			to = io.Writer(nil)
		}
		return terminal.NewProgress(to, unit, time.Now)
	}
}
