package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/remote"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
)

// safeguardsShown are the safeguards in the operators' API.
type safeguardsShown struct {
	Halts []struct {
		Scope         safeguard.Scope
		Actor, Reason string
		Since         time.Time
	}
	Targets []struct {
		Scope   safeguard.Scope
		Targets chain.Targets
	}
	Rates []struct {
		Scope safeguard.Scope
		safeguard.Rate
	}
}

func tellSafeguards(to io.Writer, s safeguardsShown) error {
	var rows [][]string
	for _, h := range s.Halts {
		rows = append(rows, []string{"halt", h.Scope.String(), fmt.Sprintf("by %s: %s", h.Actor, h.Reason), h.Since.UTC().Format(time.RFC3339)})
	}
	for _, t := range s.Targets {
		rows = append(rows, []string{"targets", t.Scope.String(), targetsText(t.Targets), ""})
	}
	for _, r := range s.Rates {
		rows = append(rows, []string{"rate", r.Scope.String(), fmt.Sprintf("%d per second, burst %d", r.PerSecond, r.Burst), ""})
	}
	if len(rows) == 0 {
		return terminal.Remark(to, "no halt, no targets and no rates are set")
	}
	return terminal.Table(to, "SAFEGUARD\tSCOPE\tVALUE\tSINCE", rows)
}

func safeguards() *cobra.Command {
	parent := &cobra.Command{
		Use: "safeguards", Short: "Show and set halts, targets and request rates",
		Long: "Show and set halts, targets and request rates, by requests to a running relayer's internal\n" +
			"listener. The log records each change with its actor and reason, and every replica applies\n" +
			"it. See docs/reference/relayer.md.",
	}
	parent.AddCommand(
		showSafeguards(),
		flip("halt", "Accept and sign nothing: everywhere, on a chain, or for a client"),
		flip("resume", "End a halt of the same scope"),
		allowTargets(), setRate(),
	)
	return parent
}

func showSafeguards() *cobra.Command {
	return remote.Asks(internal, &cobra.Command{Use: "show", Short: "Show halts, targets and request rates", Args: cobra.NoArgs},
		func(*cobra.Command, []string) (remote.Request, error) { return remote.Get("admin", "safeguards"), nil }, tellSafeguards)
}

// scoped holds the flags for a safeguard's scope.
type scoped struct {
	chain  uint64
	client string
}

func (s *scoped) flags(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Uint64Var(&s.chain, "chain", 0, "only on this `chain`")
	cmd.Flags().StringVar(&s.client, "client", "", "only for this client: the id of an API key, or '' for clients without an API key")
	return cmd
}

// scope returns the scope of the flags: everything if none is set.
func (s *scoped) scope(cmd *cobra.Command) safeguard.Scope {
	switch on := chain.ID(s.chain); {
	case cmd.Flags().Changed("client"):
		return safeguard.Scope{Kind: safeguard.OfClient, Client: s.client, Chain: on}
	case on != 0:
		return safeguard.Scope{Kind: safeguard.OnChain, Chain: on}
	}
	return safeguard.Scope{Kind: safeguard.Deployment}
}

// changeSafeguards builds a command that changes safeguards. members returns the members of the
// request's body, without the reason.
func changeSafeguards(cmd *cobra.Command, method, last string, members func(cmd *cobra.Command, args []string) (map[string]any, error)) *cobra.Command {
	var reason string
	return remote.Asks(internal, reasoned(cmd, &reason), func(cmd *cobra.Command, args []string) (remote.Request, error) {
		body, err := members(cmd, args)
		return remote.Request{Method: method, Path: []string{"admin", "safeguards", last}, Body: with(body, "reason", reason)}, err
	}, tellSafeguards)
}

func flip(name, short string) *cobra.Command {
	var s scoped
	return changeSafeguards(s.flags(&cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, Long: short + ".\nWithout --chain and --client the scope is the deployment."}),
		http.MethodPost, name, func(cmd *cobra.Command, _ []string) (map[string]any, error) {
			return map[string]any{"scope": s.scope(cmd)}, nil
		})
}

func allowTargets() *cobra.Command {
	var s scoped
	return changeSafeguards(s.flags(&cobra.Command{
		Use: "targets TARGET...", Aliases: []string{"allow"}, Short: "Set the targets on a chain, of all clients or of one", Args: cobra.MinimumNArgs(1),
		Long:    "Set the targets that all clients, or one client, may call on a chain.\n" + targetHelp,
		Example: "  relayer safeguards targets --chain 42431 0x20c0000000000000000000000000000000000000:0xa9059cbb --reason 'transfers alone'",
	}), http.MethodPut, "targets", func(cmd *cobra.Command, args []string) (map[string]any, error) {
		if s.chain == 0 {
			return nil, errors.New("--chain is required, because an address is another contract on each chain")
		}
		targets, err := parseTargets(args)
		return map[string]any{"scope": s.scope(cmd), "targets": targets}, err
	})
}

func setRate() *cobra.Command {
	var kind, client string
	var rate safeguard.Rate
	var none bool
	cmd := &cobra.Command{
		Use: "rate", Short: "Set a limit on the rate of requests", Args: cobra.NoArgs,
		Example: "  relayer safeguards rate --of each-client --per-second 5 --burst 10 --reason 'as agreed'",
	}
	flags := cmd.Flags()
	flags.StringVar(&kind, "of", "", "the scope: deployment, client, each-client or each-subject")
	flags.StringVar(&client, "client", "", "the client, with --of client")
	flags.IntVar(&rate.PerSecond, "per-second", 0, "the number of requests per second")
	flags.IntVar(&rate.Burst, "burst", 0, "the number of requests at once")
	flags.BoolVar(&none, "none", false, "no limit")
	_ = cmd.MarkFlagRequired("of")
	cmd.MarkFlagsMutuallyExclusive("none", "per-second")
	cmd.MarkFlagsOneRequired("none", "per-second")
	cmd.MarkFlagsRequiredTogether("per-second", "burst")
	return changeSafeguards(cmd, http.MethodPut, "rate", func(*cobra.Command, []string) (map[string]any, error) {
		body := map[string]any{"scope": safeguard.Scope{Kind: safeguard.ScopeKind(kind), Client: client}}
		if !none {
			body["rate"] = rate
		}
		return body, nil
	})
}
