package operator

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/doctor"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

const doctorHelp = `Diagnose delivery, from the log, the due queue and the nodes: the store and its keys, the readers of the
log, each endpoint by itself, and the queue, with the transactions that wait longest and for what. Each
finding comes with what follows by itself, and with what you can do. With hashes, also those
transactions are explained.

The doctor only reads, so services may run meanwhile. The exit status is 0 if it finds no problem, 1 if
it finds one, and 2 if it could not finish.`

// errUnwell is the error of an examination with findings.
var errUnwell = errors.New("problems were found")

// Doctor is a command that diagnoses delivery: "doctor", or under another use.
func (p Program) Doctor(use string) *cobra.Command {
	var o terminal.Output
	cmd := &cobra.Command{
		Use: use, Short: "Diagnose the store, the endpoints and the queue, and explain why transactions wait", Long: doctorHelp,
		RunE: func(cmd *cobra.Command, hashes []string) error {
			c, err := p.Resolve(cmd)
			if err != nil {
				return err
			}
			x := doctor.Examination{Program: p.Name, Config: c, Readers: app.LogReaders(p.Models), Now: time.Now, Log: p.logger(c), Hashes: hashes}
			d, err := x.Run(cmd.Context())
			if err = found(err); terminal.StatusOf(err) == terminal.Failed {
				err = Unchecked{err}
			}
			if err != nil {
				return errors.Join(err, terminal.Tell(cmd, &o, "parts", d, doctor.Tell))
			}
			if err := terminal.Tell(cmd, &o, "parts", d, doctor.Tell); err != nil || d.Well {
				return err
			}
			return errUnwell
		},
	}
	cmd.Example = "  " + p.Name + " " + cmd.Name() + " --config " + p.Name + ".yaml\n  " + p.Name + " " + cmd.Name() + " --config " + p.Name + ".yaml 0x…"
	p.Settings(cmd)
	o.Report(cmd)
	return cmd
}
