package cli

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/remote"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

// signerShown is a signer on a chain in the operators' API.
type signerShown struct {
	Chain     chain.ID
	Address   chain.Address
	Status    signer.Status
	Pools     []string
	Targets   chain.Targets
	Actor     string
	Reason    string
	Since     time.Time
	Threshold chain.Amount
	Balance   *chain.Amount
	Failures  int
}

func tellSigners(to io.Writer, all []signerShown) error {
	var rows [][]string
	for _, s := range all {
		balance := "unknown"
		if s.Balance != nil {
			balance = s.Balance.String()
		}
		why := s.Actor
		if s.Reason != "" {
			why += ": " + s.Reason
		}
		rows = append(rows, []string{
			s.Chain.String(), s.Address.String(), string(s.Status), strings.Join(s.Pools, ","), balance, s.Threshold.String(),
			strconv.Itoa(s.Failures), targetsText(s.Targets), s.Since.UTC().Format(time.RFC3339), why,
		})
	}
	return terminal.Table(to, "CHAIN\tADDRESS\tSTATUS\tPOOLS\tBALANCE\tTHRESHOLD\tFAILURES\tTARGETS\tSINCE\tBY", rows)
}

func tellSigner(to io.Writer, s signerShown) error { return tellSigners(to, []signerShown{s}) }

func signers() *cobra.Command {
	parent := &cobra.Command{
		Use: "signers", Short: "List, pause, drain and resume signers",
		Long: "List, pause, drain and resume signers, by requests to a running relayer's internal listener.\n" +
			"The log records each change with its actor and reason, and every replica applies it from\n" +
			"the next signature on. See docs/reference/relayer.md.",
	}
	order := func(name, short, long string, aliases ...string) *cobra.Command {
		cmd := changeSigner(name+" CHAIN ADDRESS", short, http.MethodPost, name, cobra.ExactArgs(2), func([]string) (map[string]any, error) { return nil, nil })
		cmd.Long, cmd.Aliases = long, aliases
		return cmd
	}
	parent.AddCommand(
		listSigners(), showSigner(),
		order("pause", "Stop a signer from signing", "Stop a signer from signing: it signs no intents, bumps and no-ops. Transactions that were\nsigned before may be at nodes, and are still delivered."),
		order("drain", "Give a signer no new intents", "Let a signer finish its intents, without giving it new ones. When no intent is left, it is\ndrained, and its key may be removed."),
		order("resume", "Resume a signer", "Resume a signer that is paused, draining, drained, or disabled after failures.", "enable"),
		changeSigner("threshold CHAIN ADDRESS AMOUNT", "Set the minimum balance with which a signer gets new intents", http.MethodPut, "threshold", cobra.ExactArgs(3),
			func(args []string) (map[string]any, error) {
				amount, err := chain.ParseAmount(args[0])
				return map[string]any{"threshold": amount}, err
			}),
		targetsOfSigner(),
	)
	return parent
}

func listSigners() *cobra.Command {
	return remote.Asks(internal, &cobra.Command{Use: "list", Short: "List the signers of every chain, with their status and its reason", Args: cobra.NoArgs},
		func(*cobra.Command, []string) (remote.Request, error) {
			r := remote.Get("admin", "signers")
			r.List = "signers"
			return r, nil
		},
		func(to io.Writer, a struct{ Signers []signerShown }) error { return tellSigners(to, a.Signers) })
}

// signerPath is the path of the signer named by the arguments.
func signerPath(args []string, more ...string) ([]string, error) {
	on, err := chain.ParseID(args[0])
	if err != nil {
		return nil, err
	}
	address, err := chain.ParseAddress(args[1])
	if err != nil {
		return nil, err
	}
	return append([]string{"admin", "signers", on.String(), address.String()}, more...), nil
}

func showSigner() *cobra.Command {
	return remote.Asks(internal, &cobra.Command{Use: "show CHAIN ADDRESS", Short: "Show one signer", Args: cobra.ExactArgs(2)},
		func(_ *cobra.Command, args []string) (remote.Request, error) {
			path, err := signerPath(args)
			return remote.Get(path...), err
		}, tellSigner)
}

// changeSigner builds a command that changes a signer. members returns the members of the
// request's body, without the reason, from the arguments after the signer's.
func changeSigner(use, short, method, last string, args cobra.PositionalArgs, members func(args []string) (map[string]any, error)) *cobra.Command {
	var reason string
	return remote.Asks(internal, reasoned(&cobra.Command{Use: use, Short: short, Args: args}, &reason),
		func(_ *cobra.Command, args []string) (remote.Request, error) {
			path, err := signerPath(args, last)
			if err != nil {
				return remote.Request{}, err
			}
			body, err := members(args[2:])
			return remote.Request{Method: method, Path: path, Body: with(body, "reason", reason)}, err
		}, tellSigner)
}

// with adds a member to a body.
func with(body map[string]any, name string, value any) map[string]any {
	if body == nil {
		body = map[string]any{}
	}
	body[name] = value
	return body
}

const targetHelp = `TARGET is 0xADDRESS, for all functions of a contract; 0xADDRESS:0xSELECTOR,0xSELECTOR for
some functions; or create, for the creation of contracts. The new targets replace the old
ones. The single target any allows every call.`

func targetsOfSigner() *cobra.Command {
	cmd := changeSigner("targets CHAIN ADDRESS TARGET...", "Set the targets that a signer may call", http.MethodPut, "targets", cobra.MinimumNArgs(3),
		func(args []string) (map[string]any, error) {
			targets, err := parseTargets(args)
			return map[string]any{"targets": targets}, err
		})
	cmd.Long = "Set the targets that a signer may call.\n" + targetHelp
	return cmd
}

// parseTargets parses the targets that a signer may call.
func parseTargets(args []string) (chain.Targets, error) {
	all := chain.Targets{}
	if len(args) == 1 && args[0] == "any" {
		return all, nil
	}
	for _, text := range args {
		var t chain.Target
		address, selectors, some := strings.Cut(text, ":")
		if address != "create" {
			to, err := chain.ParseAddress(address)
			if err != nil {
				return nil, fmt.Errorf("target %q: %w", text, err)
			}
			t.To = &to
		} else if some {
			return nil, fmt.Errorf("target %q: create has no selectors", text)
		}
		for one := range strings.SplitSeq(selectors, ",") {
			if !some {
				break
			}
			var s chain.Selector
			if err := s.UnmarshalText([]byte(one)); err != nil {
				return nil, fmt.Errorf("target %q: %w", text, err)
			}
			t.Selectors = append(t.Selectors, s)
		}
		all = append(all, t)
	}
	return all, nil
}

// targetsText formats targets as they are entered.
func targetsText(all chain.Targets) string {
	if len(all) == 0 {
		return "any"
	}
	texts := make([]string, len(all))
	for i, t := range all {
		if texts[i] = "create"; t.To != nil {
			texts[i] = t.To.String()
		}
		for n, s := range t.Selectors {
			texts[i] += []string{":", ","}[min(n, 1)] + s.String()
		}
	}
	return strings.Join(texts, " ")
}
