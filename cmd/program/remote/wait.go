package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
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

// Times of "tx wait".
const (
	waitMost  = 24 * time.Hour   // the longest wait
	waitOnce  = 30 * time.Second // asked for in one request
	waitPause = time.Second      // before another try, after an interruption
)

// UnreachedError is the error of a wait whose milestone was not reached. Over means that its time was
// over, and not that the milestone cannot be reached any more.
type UnreachedError struct {
	Hash, Status, Milestone string
	Over                    bool
}

func (e UnreachedError) Error() string {
	if e.Over {
		return fmt.Sprintf("the wait is over: %s is %s, and has not reached the milestone %s", e.Hash, e.Status, e.Milestone)
	}
	return fmt.Sprintf("%s is %s, and cannot reach the milestone %s", e.Hash, e.Status, e.Milestone)
}

// ExitStatus is the exit status of a command with this error.
func (e UnreachedError) ExitStatus() terminal.Status {
	if e.Over {
		return terminal.TimedOut
	}
	return terminal.Failed
}

// awaiting are the flags of "tx wait".
type awaiting struct {
	milestone string
	timeout   time.Duration
	query     url.Values
}

func waitTx(at Listener, program string) *cobra.Command {
	d := Door{Listener: at}
	var w awaiting
	cmd := &cobra.Command{
		Use: "wait HASH", Short: "Wait until a transaction has reached a milestone, and show it", Args: cobra.ExactArgs(1),
		Long: "Wait until a transaction has reached a milestone, and show it. The exit status is 0 if it has,\n" +
			"1 if it cannot any more, and 124 if the timeout is over first. Interruptions of the connection\n" +
			"and of the service are waited for.",
		Example: "  " + program + " tx wait 0x… --for final --timeout 10m",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(milestones(), w.milestone) {
				return terminal.Misuse("--for %q is not one of %s", w.milestone, strings.Join(milestones(), ", "))
			}
			answer, err := w.wait(cmd.Context(), &d, args[0])
			if err != nil {
				return err
			}
			var seen txShown
			if err := errors.Join(Show(cmd, &d, "", answer, tellTx), json.Unmarshal(answer, &seen)); err != nil {
				return err
			}
			if seen.Waited == nil || !seen.Waited.Reached {
				return UnreachedError{args[0], seen.Status, w.milestone, seen.Waited == nil || seen.Waited.Because != ended}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&w.milestone, "for", string(watchtower.Executed), "the `milestone`: submitted, mined, completed, broadcast, executed or final")
	cmd.Flags().DurationVar(&w.timeout, "timeout", time.Minute, "how long to wait, at most 24h")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(milestones(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return onOneChain(&d, d.Flags(cmd), &w.query)
}

// ended is the reason of a wait whose milestone cannot be reached any more. Other reasons, such as the
// end of the request's time, leave it possible.
const ended = "ended"

// wait returns the transaction when it has reached the milestone, cannot reach it any more, or when the
// timeout is over. While the service cannot be reached, or cannot answer, it tries again.
func (w awaiting) wait(ctx context.Context, d *Door, hash string) ([]byte, error) {
	until := time.Now().Add(min(w.timeout, waitMost))
	for {
		left := max(time.Until(until), 0)
		answer, seen, err := w.once(ctx, d, hash, min(left, waitOnce))
		switch {
		case err != nil && (terminal.StatusOf(err) != terminal.Unavailable || left == 0):
			return nil, err
		case err == nil && (seen.Reached || seen.Because == ended || left <= waitOnce && seen.Because == "timeout" || left == 0):
			return answer, nil
		case err == nil && seen.Because == "timeout":
			continue
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(waitPause, left)):
		}
	}
}

// waited is how a request's wait ended.
type waited struct {
	Reached bool
	Because string
}

// once waits in one request.
func (w awaiting) once(ctx context.Context, d *Door, hash string, timeout time.Duration) ([]byte, waited, error) {
	r := Get("v1", "transactions", hash)
	r.Wait = timeout
	r.Query = url.Values{"wait": {w.milestone}, "timeout": {strconv.FormatInt(timeout.Milliseconds(), 10) + "ms"}}
	for name, values := range w.query {
		r.Query[name] = values
	}
	answer, err := d.Ask(ctx, r)
	if err != nil {
		return nil, waited{}, err
	}
	var seen struct{ Waited waited }
	if err := json.Unmarshal(answer, &seen); err != nil {
		return nil, waited{}, fmt.Errorf("the service's response cannot be decoded: %w", err)
	}
	return answer, seen.Waited, nil
}
