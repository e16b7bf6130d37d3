package cli

import (
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/remote"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
)

// used is the used part of a day's budget.
type used struct{ Fee, Value chain.Amount }

// budgetShown is a chain's budget in the operators' API.
type budgetShown struct {
	Chain  chain.ID
	Day    budget.Day
	Used   used
	Limits []struct {
		Account budget.Account
		Limit   budget.Limit
		Used    *used
	}
}

func tellBudget(to io.Writer, b budgetShown) error {
	rows := [][]string{{b.Chain.String(), "total", "", b.Used.Fee.String(), "", b.Used.Value.String()}}
	for _, l := range b.Limits {
		row := []string{b.Chain.String(), l.Account.String(), limitText(l.Limit.Fee), "counted separately", limitText(l.Limit.Value), "counted separately"}
		if l.Used != nil {
			row[3], row[5] = l.Used.Fee.String(), l.Used.Value.String()
		}
		rows = append(rows, row)
	}
	return terminal.Table(to, "CHAIN\tACCOUNT\tFEES A DAY\tUSED TODAY\tVALUE A DAY\tUSED TODAY", rows)
}

func limitText(a *chain.Amount) string {
	if a == nil {
		return "no limit"
	}
	return a.String()
}

func budgets() *cobra.Command {
	parent := &cobra.Command{
		Use: "budgets", Short: "List and set daily budgets",
		Long: "List and set daily budgets, by requests to a running relayer's internal listener. A day is a\n" +
			"day of UTC, and amounts are in the chain's smallest unit. See docs/reference/relayer.md.",
	}
	parent.AddCommand(listBudgets(), setBudget())
	return parent
}

func listBudgets() *cobra.Command {
	return remote.Asks(internal, &cobra.Command{Use: "list CHAIN", Short: "List a chain's daily limits, and the amounts used today", Args: cobra.ExactArgs(1)},
		func(_ *cobra.Command, args []string) (remote.Request, error) {
			return remote.Get("admin", "budgets", args[0]), nil
		}, tellBudget)
}

// none is the text for an unlimited amount.
const none = "none"

func setBudget() *cobra.Command {
	var a budget.Account
	var signer, fee, value, reason string
	cmd := remote.Asks(internal, reasoned(&cobra.Command{
		Use: "set CHAIN", Short: "Set an account's daily limits", Args: cobra.ExactArgs(1),
		Example: "  relayer budgets set 42431 --account each-client --fee 1000000000000000000 --value none --reason 'as agreed'",
	}, &reason), func(cmd *cobra.Command, args []string) (remote.Request, error) {
		account := map[string]any{"kind": a.Kind}
		for name, text := range map[string]string{"client": a.Client, "subject": a.Subject, "signer": signer} {
			if cmd.Flags().Changed(name) {
				account[name] = text
			}
		}
		body := map[string]any{"account": account, "reason": reason}
		for name, text := range map[string]string{"fee": fee, "value": value} {
			if text == none {
				continue
			}
			if _, err := chain.ParseAmount(text); err != nil {
				return remote.Request{}, fmt.Errorf("--%s %q is neither %s nor an amount: %w", name, text, none, err)
			}
			body[name] = text
		}
		return remote.Request{Method: http.MethodPut, Path: []string{"admin", "budgets", args[0]}, Body: body}, nil
	}, tellBudget)
	flags := cmd.Flags()
	flags.StringVar((*string)(&a.Kind), "account", "", "the kind of account: chain, client, subject, signer, each-client, each-subject or each-signer")
	flags.StringVar(&a.Client, "client", "", "the client, for the accounts client and subject")
	flags.StringVar(&a.Subject, "subject", "", "the subject, for the account subject")
	flags.StringVar(&signer, "signer", "", "the signer, for the account signer")
	flags.StringVar(&fee, "fee", "", "the daily limit for fees, or none for no limit")
	flags.StringVar(&value, "value", "", "the daily limit for the value that calls transfer, or none for no limit")
	for _, name := range []string{"account", "fee", "value"} { // a missing flag would remove that limit
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}
