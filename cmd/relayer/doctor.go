package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/operator"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/app"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/cli"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/doctor"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

const doctorHelp = `Diagnose lanes, from the log and the chain: nonces in flight, nonces that block others, and
problems, each with its automatic next step and your options. The doctor only reads, so
relayers may run meanwhile. A quorum of endpoints must agree on nonces.

Without arguments it diagnoses all lanes of signers.allowed; with arguments, only lanes of the
named signers. The exit status is 0 if it finds no problem, 1 if it finds one, and 2 if it
could not finish.

--fill shows how the lanes' nonce gaps would be filled with no-ops: the intents that give
nonces back, and the no-ops to sign. With --dry-run=false it sends this as a request to a
running relayer's internal listener, and the lane's holder carries it out.`

// errUnwell is the error of an examination with findings.
var errUnwell = errors.New("problems were found")

// examining holds the flags.
type examining struct {
	chains   []string
	nonceKey string
	output   terminal.Output
	fill     bool
	dry      bool
	reason   string
	mender   cli.Mender
}

func examine(stderr io.Writer) *cobra.Command {
	var x examining
	cmd := &cobra.Command{
		Use: "doctor [SIGNER]...", Short: "Diagnose lanes, and show how to repair them", Long: doctorHelp,
		Example: "  relayer doctor --config relayer.yaml --chain 42431 0x…",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, _, err := resolve(cmd)
			if err != nil {
				return err
			}
			found, err := x.examine(cmd.Context(), s, stderr, args)
			if err != nil {
				return operator.Unchecked{Err: err}
			}
			if x.fill && !x.dry {
				return x.mend(cmd, found)
			}
			return x.tell(cmd, found)
		},
	}
	withSettings(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&x.chains, "chain", nil, "only lanes on these `chains`")
	flags.StringVar(&x.nonceKey, "nonce-key", "", "only the lane under this nonce `key`")
	flags.BoolVar(&x.fill, "fill", false, "show how nonce gaps would be filled")
	flags.BoolVar(&x.dry, "dry-run", true, "only show; with --dry-run=false nonce gaps are filled")
	flags.StringVar(&x.reason, "reason", "", "the reason for filling them, for the log")
	x.mender.Flags(cmd)
	x.output.Report(cmd)
	return cmd
}

// examine diagnoses every selected lane.
func (x examining) examine(ctx context.Context, s settings.Settings, stderr io.Writer, args []string) (found []doctor.Diagnosis, err error) {
	var on []chain.ID
	var signers []chain.Address
	for _, text := range x.chains {
		id, err := chain.ParseID(text)
		if err != nil {
			return nil, err
		}
		on = append(on, id)
	}
	for _, text := range args {
		a, err := chain.ParseAddress(text)
		if err != nil {
			return nil, err
		}
		signers = append(signers, a)
	}
	e, err := app.Examine(ctx, s, time.Now, delivery.Logger(s.Delivery.Log.Format, stderr, s.Delivery.Log.Level))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	lanes, err := x.lanes(ctx, e, on, signers)
	if err != nil {
		return nil, err
	}
	if len(lanes) == 0 {
		return nil, errors.New("there is no lane to diagnose: the configuration has no chains, or no addresses in signers.allowed (--config, --chains)")
	}
	for _, id := range lanes {
		facts, err := e.Facts(ctx, id)
		if err != nil {
			return nil, err
		}
		found = append(found, doctor.Diagnose(facts))
	}
	return found, nil
}

func (x examining) lanes(ctx context.Context, e *app.Examination, on []chain.ID, signers []chain.Address) ([]chain.Sequence, error) {
	all, err := e.Lanes(ctx, on, signers)
	if err != nil || x.nonceKey == "" {
		return all, err
	}
	key, err := chain.ParseNonceKey(x.nonceKey)
	if err != nil {
		return nil, err
	}
	var chosen []chain.Sequence
	for _, id := range all {
		if id.Key == key {
			chosen = append(chosen, id)
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("no lane has this nonce key")
	}
	return chosen, nil
}

func (x examining) tell(cmd *cobra.Command, found []doctor.Diagnosis) error {
	well := true
	for _, d := range found {
		well = well && d.Well
	}
	err := terminal.Tell(cmd, &x.output, "", found, func(to io.Writer, found []doctor.Diagnosis) error {
		for _, d := range found {
			if err := doctor.Tell(to, d); err != nil {
				return err
			}
			if x.fill {
				if err := doctor.TellFillings(to, d); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if !well {
		return errors.Join(errUnwell, err)
	}
	return err
}

// filled is the answer about the nonces that were asked to be filled.
type filled struct {
	Asked []doctor.Filling `json:"asked"`
}

// mend fills the holes found. Run the examination again for the result.
func (x examining) mend(cmd *cobra.Command, found []doctor.Diagnosis) error {
	if x.reason == "" {
		return terminal.Misuse("--reason is required: it is recorded in the log")
	}
	done := filled{[]doctor.Filling{}}
	for _, d := range found {
		all := d.Fillings()
		if len(all) == 0 {
			continue
		}
		nonces := make([]uint64, len(all))
		for i, f := range all {
			nonces[i] = f.Nonce
		}
		id := chain.Sequence{Chain: d.Chain, Sender: d.Signer, Key: d.NonceKey}
		if _, err := x.mender.Fill(cmd.Context(), id, nonces, x.reason); err != nil {
			return err
		}
		done.Asked = append(done.Asked, all...)
	}
	return terminal.Tell(cmd, &x.output, "asked", done, func(to io.Writer, done filled) error {
		if len(done.Asked) == 0 {
			return terminal.Remark(to, "There is nothing to fill.")
		}
		for _, f := range done.Asked {
			if err := terminal.Remark(to, "nonce %d: intent %s gives it back, as requested; then the lane's holder fills it", f.Nonce, f.Intent); err != nil {
				return err
			}
		}
		return nil
	})
}
