package remote

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

// completeTime is how long a shell waits for the service to complete a value.
const completeTime = time.Second

// Values completes a value by the answer to a request: of returns all values from the answer, each with
// an optional description after a tab.
func (d *Door) Values(r Request, of func(answer []byte) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		ctx, cancel := context.WithTimeout(ctx, completeTime)
		defer cancel()
		answer, err := d.Ask(ctx, r)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var fit []string
		for _, value := range of(answer) {
			name, about, _ := strings.Cut(value, "\t")
			if strings.HasPrefix(name, begun) {
				fit = append(fit, cobra.CompletionWithDesc(terminal.Plain(name), terminal.Plain(about)))
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeChain completes the flag --chain by the chains that the service serves.
func (d *Door) completeChain(cmd *cobra.Command) *cobra.Command {
	_ = cmd.RegisterFlagCompletionFunc("chain", d.Values(Get("health"), chainsOf)) // the flag exists
	return cmd
}

// chainsOf reads the chains from the answer of /health.
func chainsOf(answer []byte) (all []string) {
	var health struct{ Chains []json.Number }
	if json.Unmarshal(answer, &health) != nil {
		return nil
	}
	for _, id := range health.Chains {
		all = append(all, id.String())
	}
	return all
}
