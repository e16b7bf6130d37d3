package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/remote"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

// waiting holds the flags for waiting for an answer.
type waiting struct {
	until   string
	timeout time.Duration
}

func (w *waiting) flags(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&w.until, "wait", "", "delay the response until the intent has reached this `milestone`: assigned, mined or completed; the exit status is 124 if the timeout is over first")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 20*time.Second, "the timeout of --wait, at most 55s")
	_ = cmd.RegisterFlagCompletionFunc("wait", cobra.FixedCompletions([]string{"assigned", "mined", "completed"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

// of adds the wait to a request.
func (w waiting) of(a remote.Request) remote.Request {
	if w.until != "" {
		a.Query, a.Wait = url.Values{"wait": {w.until}, "timeout": {strconv.FormatFloat(w.timeout.Seconds(), 'f', -1, 64) + "s"}}, w.timeout
		a.Check = unreached
	}
	return a
}

// unreached is the error of an answer to one request whose milestone was not reached.
func unreached(answer []byte) error {
	var seen struct {
		ID     string
		Status string
		Waited *waited
	}
	if err := json.Unmarshal(answer, &seen); err != nil || seen.Waited == nil || seen.Waited.Reached {
		return err
	}
	return remote.UnreachedError{Hash: seen.ID, Status: seen.Status, Milestone: seen.Waited.For, Over: seen.Waited.Because != "ended"}
}

func createIntents() *cobra.Command {
	d := remote.Door{Listener: front}
	var w waiting
	return d.Flags(w.flags(&cobra.Command{
		Use: "create [FILE|-]", Short: "Create intents from JSON in a file or on standard input: one intent, or a list", Args: cobra.MaximumNArgs(1),
		Long: "Create intents from JSON in a file or on standard input: one intent, or a list. The exit status is\n" +
			"3 if the relayer refuses an intent of them. To create an intent again changes nothing: its key\n" +
			"identifies it.",
		Example: `  echo '{"chainId": 42431, "key": "order-1", "pool": "hot", "to": "0x…", "value": "0"}' | relayer intents create --wait mined`,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := remote.GivenIn(cmd, args)
			if err != nil {
				return terminal.With(terminal.Usage, err)
			}
			if !json.Valid(text) {
				return terminal.Misuse("%s is not JSON", remote.NameOf(args))
			}
			r := w.of(remote.Request{Method: http.MethodPost, Path: []string{"v1", "intents"}, Body: json.RawMessage(text)})
			answer, err := d.Ask(cmd.Context(), r)
			if err != nil {
				return err
			}
			if strings.HasPrefix(strings.TrimSpace(string(text)), "[") {
				return errors.Join(remote.Show(cmd, &d, "results", answer, tellBatch), refused(answer))
			}
			if err := remote.Show(cmd, &d, "", answer, tellIntent); err != nil || r.Check == nil {
				return err
			}
			return r.Check(answer)
		},
	}))
}

// batchShown is the answer to a batch of intents.
type batchShown struct {
	Results []struct {
		OK      bool
		Intent  *intentShown
		Problem struct{ Code, Detail string }
	}
}

// refused is the error of a batch of which not all intents were accepted.
func refused(answer []byte) error {
	var b batchShown
	if err := json.Unmarshal(answer, &b); err != nil {
		return fmt.Errorf("the relayer's response cannot be decoded: %w", err)
	}
	found := remote.RefusedError{Of: len(b.Results)}
	for _, r := range b.Results {
		if !r.OK {
			found.Refused++
		}
	}
	if found.Refused == 0 {
		return nil
	}
	return found
}

func tellBatch(to io.Writer, b batchShown) error {
	var rows [][]string
	for n, r := range b.Results {
		row := []string{strconv.Itoa(n + 1), "", "", ""}
		if r.OK && r.Intent != nil {
			row[1], row[2] = r.Intent.ID.String(), string(r.Intent.Status)
		} else {
			row[2], row[3] = r.Problem.Code, r.Problem.Detail
		}
		rows = append(rows, row)
	}
	return terminal.Table(to, "NUMBER\tID\tSTATUS\tREASON", rows)
}
