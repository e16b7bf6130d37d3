package remote

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

const tailHelp = `Show events as they are recorded, from a running service (GET /v1/events). It begins with
the next event, or after the position in --after. A broken connection is resumed where it
ended: no event is missing, and none comes twice. If the service is unreachable, tail
retries until it is reachable again, and reports both on standard error.

On a terminal each event is one readable line. With -o jsonl, or if the output is not a
terminal, each event is a line of JSON as the service sends it; with -o csv, a row. See
docs/howto/tail.md.`

// tailing holds the flags.
type tailing struct {
	after, until string
	filter       watchtower.EventFilter
}

// Tail is the command "tail", which shows events of a running service.
func Tail(at Listener, program string) *cobra.Command {
	var t tailing
	d := Door{Listener: at}
	cmd := &cobra.Command{
		Use: "tail", Short: "Show events of a running service as they are recorded", Args: cobra.NoArgs, Long: tailHelp,
		Example: "  " + program + " tail --name tx.mined,tx.finalized --sender 0x…\n  " + program + " tail --after 0 --until head -o jsonl | jq .name",
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := d.Client()
			if err == nil {
				err = t.positions()
			}
			if err != nil {
				return terminal.With(terminal.Usage, err)
			}
			client.HTTP = &http.Client{Transport: &reach{next: http.DefaultTransport, ctx: cmd.Context(), to: cmd.ErrOrStderr(), program: program}}
			show := asLine
			switch {
			case d.Output.Format == terminal.AsCSV:
				show = asRow()
			case d.Output.Format == terminal.AsTable && (cmd.Flags().Changed("output") || terminal.IsTerminal(cmd.OutOrStdout())):
				show = pretty
			}
			return d.Explained(http.MethodGet, t.run(cmd.Context(), client, cmd.OutOrStdout(), show))
		},
	}
	d.Connection(cmd, "url")
	d.Output.Flags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&t.after, "after", "", "the `position` to begin after; 0 is the beginning of the log (default: its end)")
	flags.StringVar(&t.until, "until", "", "the last `position` to show, or head; by default events are followed without end")
	flags.Uint64Var(&t.filter.ChainID, "chain", 0, "only events of this `chain`")
	flags.StringVar(&t.filter.Sender, "sender", "", "only events of this `sender`'s transactions and groups")
	flags.StringVar(&t.filter.GroupID, "group", "", "only events of this `group` and its transactions")
	flags.StringVar(&t.filter.TxHash, "hash", "", "only events of the transaction with this `hash`")
	flags.StringVar(&t.filter.Name, "name", "", "only events whose name has one of these `prefixes`, separated by commas")
	flags.StringVar(&t.filter.Stream, "stream", "", "only events of streams whose name has this `prefix`")
	return d.completeChain(cmd)
}

// positions reads the positions that the flags give.
func (o *tailing) positions() (err error) {
	if o.filter.After, err = readPosition("after", o.after); err != nil {
		return err
	}
	if o.filter.UntilHead = o.until == "head"; !o.filter.UntilHead {
		o.filter.Until, err = readPosition("until", o.until)
	}
	return err
}

// readPosition reads the position of an optional flag.
func readPosition(flag, text string) (*uint64, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return nil, fmt.Errorf("--%s must be a position, not %q", flag, text)
	}
	return &n, nil
}

// run shows events until the last requested event or until ctx ends.
func (o *tailing) run(ctx context.Context, client *watchtower.Client, to io.Writer, show func(watchtower.Event) ([]byte, error)) error {
	for e, err := range client.Events(ctx, o.filter) {
		if err != nil {
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				return nil
			}
			return err
		}
		line, err := show(e)
		if err != nil {
			return err
		}
		if _, err := to.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// asLine formats an event as the service sends it.
func asLine(e watchtower.Event) ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(e)
	return line.Bytes(), err
}

// asRow formats events as CSV: the first as two rows, of which the first is the head.
func asRow() func(e watchtower.Event) ([]byte, error) {
	head := []string{"position", "at", "name", "chain", "stream", "version", "hash", "group", "actor", "data"}
	return func(e watchtower.Event) ([]byte, error) {
		var text bytes.Buffer
		w := csv.NewWriter(&text)
		rows := [][]string{head, {
			strconv.FormatUint(e.Position, 10), e.At.UTC().Format(time.RFC3339Nano), e.Name, strconv.FormatUint(e.ChainID, 10), e.Stream,
			strconv.FormatUint(e.Version, 10), e.TxHash, e.GroupID, e.Meta.Actor, string(e.Data),
		}}
		if head == nil {
			rows = rows[1:]
		}
		head = nil
		err := w.WriteAll(rows)
		return text.Bytes(), err
	}
}

// prettyData is the maximum length in bytes of event data in a line for people.
const prettyData = 160

// pretty formats an event for people: time, position, name, subject, actor, and the start of its
// data, without terminal control characters.
func pretty(e watchtower.Event) ([]byte, error) {
	about := e.TxHash
	if about == "" {
		about = e.GroupID
	}
	if about == "" {
		about = e.Stream
	}
	data := []rune(string(e.Data))
	if len(data) > prettyData {
		data = append(data[:prettyData], '…')
	}
	line := fmt.Sprintf("%s %8d  %-24s %d/%s  %s  %s", e.At.UTC().Format("2006-01-02 15:04:05.000"), e.Position, e.Name, e.ChainID, about, e.Meta.Actor, string(data))
	return []byte(terminal.Plain(line) + "\n"), nil
}
