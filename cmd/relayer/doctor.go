package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/relayer/app"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/console"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/doctor"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	delivery "github.com/tempo-watchtower/watchtower/cmd/watchtower/app"
	"github.com/tempo-watchtower/watchtower/cmd/watchtower/operator"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

const doctorHelp = `Say how lanes do, from the log and the chain: which nonces are in flight and which keep
others, what is wrong, what happens next by itself, and what somebody can do. It reads, and
writes nothing; relayers may run, or not. Nonces are asked of as many endpoints as have to
agree.

Without arguments it is all lanes of signers.allowed; else those of the signers that are
named. The exit status is 0 if all is well, 1 if something is not, 2 if it could not be told.

--fill says what filling the lanes' holes with no-ops comes to: which intents give which
nonces back, and what is signed for these. Nothing is done without --dry-run=false, which
asks a running relayer for it on its internal listener; the holder of the lane, and nobody
else, carries it out.`

// errUnwell is the error of an examination with findings.
var errUnwell = errors.New("not all is well")

// examining holds the flags.
type examining struct {
	chains   []string
	nonceKey string
	asJSON   bool
	fill     bool
	dry      bool
	reason   string
	mender   console.Mender
}

func examine(stderr io.Writer) *cobra.Command {
	var x examining
	cmd := &cobra.Command{
		Use: "doctor [SIGNER]...", Short: "Say what keeps lanes, and what can be done", Long: doctorHelp,
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
				return x.mend(cmd.Context(), cmd.OutOrStdout(), found)
			}
			return x.tell(cmd.OutOrStdout(), found)
		},
	}
	withSettings(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&x.chains, "chain", nil, "only lanes on these `chains`")
	flags.StringVar(&x.nonceKey, "nonce-key", "", "only the lane under this nonce `key`")
	flags.BoolVar(&x.asJSON, "json", false, "print JSON")
	flags.BoolVar(&x.fill, "fill", false, "say what filling holes comes to")
	flags.BoolVar(&x.dry, "dry-run", true, "do nothing; with --dry-run=false holes are filled")
	flags.StringVar(&x.reason, "reason", "", "why they are filled, for whoever reads the log")
	x.mender.Flags(flags)
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
		return nil, errors.New("there is no lane to look at: the configuration names no chain, or nobody in signers.allowed (--config, --chains)")
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
		return nil, errors.New("there is no lane under this nonce key")
	}
	return chosen, nil
}

func (x examining) tell(to io.Writer, found []doctor.Diagnosis) error {
	well := true
	for _, d := range found {
		well = well && d.Well
	}
	if x.asJSON {
		e := json.NewEncoder(to)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(found); err != nil {
			return err
		}
	} else {
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
	}
	if !well {
		return errUnwell
	}
	return nil
}

// mend fills the holes found. Run the examination again for the result.
func (x examining) mend(ctx context.Context, to io.Writer, found []doctor.Diagnosis) error {
	if x.reason == "" {
		return operator.Unchecked{Err: errors.New("--reason says why, for whoever reads the log")}
	}
	asked := []doctor.Filling{}
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
		if _, err := x.mender.Fill(ctx, id, nonces, x.reason); err != nil {
			return operator.Unchecked{Err: err}
		}
		asked = append(asked, all...)
	}
	if x.asJSON {
		return json.NewEncoder(to).Encode(map[string]any{"asked": asked})
	}
	if len(asked) == 0 {
		_, err := fmt.Fprintln(to, "There is nothing to fill.")
		return err
	}
	for _, f := range asked {
		if _, err := fmt.Fprintf(to, "nonce %d: the intent %s is asked to give it back; the lane's holder fills it\n", f.Nonce, f.Intent); err != nil {
			return err
		}
	}
	return nil
}
