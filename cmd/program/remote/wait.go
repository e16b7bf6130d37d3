package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
)

// sending is Submit or Validate of a client.
type sending = func(c *watchtower.Client, ctx context.Context, chainID uint64, raws ...[]byte) ([]watchtower.Result, error)

func statusNames() []string {
	return []string{
		string(watchtower.Queued), string(watchtower.Broadcasting), string(watchtower.RetryScheduled), string(watchtower.StatusExecuted),
		string(watchtower.StaleByNonce), string(watchtower.Expired), string(watchtower.Invalid), string(watchtower.Canceled),
	}
}

// milestones are the values of --for.
func milestones() []string {
	return []string{
		string(watchtower.Submitted), string(watchtower.Mined), string(watchtower.Completed),
		string(watchtower.Broadcast), string(watchtower.Executed), string(watchtower.Final),
	}
}

// waitMost is the longest wait of "tx wait".
const waitMost = 24 * time.Hour

// UnreachedError is the error of a wait whose milestone was not reached.
type UnreachedError struct{ Hash, Status, Milestone string }

func (e UnreachedError) Error() string {
	return fmt.Sprintf("%s is %s, and has not reached the milestone %s", e.Hash, e.Status, e.Milestone)
}

func waitTx(at Listener, program string) *cobra.Command {
	d := Door{Listener: at}
	var milestone string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "wait HASH", Short: "Wait until a transaction has reached a milestone, and show it", Args: cobra.ExactArgs(1),
		Long: "Wait until a transaction has reached a milestone, and show it. The exit status is 0 if it has,\n" +
			"and 1 if it cannot any more, or the timeout is over first. Interruptions of the connection\n" +
			"and of the service are waited for.",
		Example: "  " + program + " tx wait 0x… --for final --timeout 10m",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(milestones(), milestone) {
				return fmt.Errorf("--for %q is not one of %s", milestone, strings.Join(milestones(), ", "))
			}
			client, err := d.Client()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), min(timeout, waitMost))
			defer cancel()
			if _, err := client.Wait(ctx, args[0], watchtower.Milestone(milestone)); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return d.Explained(err)
			}
			r := Get("v1", "transactions", args[0])
			r.Query = url.Values{"wait": {milestone}, "timeout": {"0"}}
			answer, err := d.Ask(cmd.Context(), r)
			if err != nil {
				return err
			}
			var seen txShown
			if err := errors.Join(Show(cmd, &d, "", answer, tellTx), json.Unmarshal(answer, &seen)); err != nil {
				return err
			}
			if seen.Waited == nil || !seen.Waited.Reached {
				return UnreachedError{args[0], seen.Status, milestone}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&milestone, "for", string(watchtower.Executed), "the `milestone`: submitted, mined, completed, broadcast, executed or final")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait, at most 24h")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(milestones(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return d.Flags(cmd)
}
