package operator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
)

// The environment variables that a client of a service reads.
const (
	urlVar     = "WATCHTOWER_URL"
	keyVar     = "WATCHTOWER_API_KEY"
	defaultURL = "http://127.0.0.1:8420"
)

const tailHelp = `Show events as they are recorded, from a running service (GET /v1/events). It begins with
the next event, or after the position in --after. A broken connection is resumed where it
ended: no event is missing, and none comes twice. If the service is unreachable, tail
retries until it is reachable again, and reports both on standard error.

On a terminal each event is one readable line. With --json, or if the output is not a
terminal, each event is a line of JSON as the service sends it. The service's URL comes
from --url or WATCHTOWER_URL, and an API key with the scope read from --key-file or
WATCHTOWER_API_KEY (relayer tail reads RELAYER_API_KEY first). See docs/howto/tail.md.`

// tailing holds the flags.
type tailing struct {
	url, keyFile string
	after, until string
	lines        bool
	filter       watchtower.EventFilter
}

// Tail is the command "tail", which shows events of a running service.
func (p Program) Tail() *cobra.Command {
	var o tailing
	cmd := &cobra.Command{
		Use: "tail", Short: "Show events of a running service as they are recorded", Args: cobra.NoArgs, Long: tailHelp,
		Example: "  " + p.Name + " tail --name tx.mined,tx.finalized --sender 0x…\n  " + p.Name + " tail --after 0 --until head --json | jq .name",
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := o.client(p.keyVar(), os.Getenv)
			if err != nil {
				return Unchecked{err}
			}
			client.HTTP = &http.Client{Transport: &reach{next: http.DefaultTransport, ctx: cmd.Context(), to: cmd.ErrOrStderr(), program: p.Name}}
			show := pretty
			if o.lines || !IsTerminal(cmd.OutOrStdout()) {
				show = asLine
			}
			return o.run(cmd.Context(), client, cmd.OutOrStdout(), show)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.url, "url", "", "the `URL` of the service (default: "+urlVar+", or "+defaultURL+")")
	flags.StringVar(&o.keyFile, "key-file", "", "a `file` that holds an API key (default: the key in "+p.keyVars()+", if it is set)")
	flags.StringVar(&o.after, "after", "", "the `position` to begin after; 0 is the beginning of the log (default: its end)")
	flags.StringVar(&o.until, "until", "", "the last `position` to show, or head; by default events are followed without end")
	flags.BoolVar(&o.lines, "json", false, "print lines of JSON on a terminal, too")
	flags.Uint64Var(&o.filter.ChainID, "chain", 0, "only events of this `chain`")
	flags.StringVar(&o.filter.Sender, "sender", "", "only events of this `sender`'s transactions and groups")
	flags.StringVar(&o.filter.GroupID, "group", "", "only events of this `group` and its transactions")
	flags.StringVar(&o.filter.TxHash, "hash", "", "only events of the transaction with this `hash`")
	flags.StringVar(&o.filter.Name, "name", "", "only events whose name has one of these `prefixes`, separated by commas")
	flags.StringVar(&o.filter.Stream, "stream", "", "only events of streams whose name has this `prefix`")
	return cmd
}

// keyVar names the variable that holds the program's API key.
func (p Program) keyVar() string { return strings.ToUpper(p.Name) + "_API_KEY" }

// keyVars names the variables with an API key, in order of precedence.
func (p Program) keyVars() string {
	if own := p.keyVar(); own != keyVar {
		return own + " or " + keyVar
	}
	return keyVar
}

// client builds a client from flags and environment, and reads the positions. The program's own
// key variable takes precedence over watchtower's.
func (o *tailing) client(own string, env func(string) string) (*watchtower.Client, error) {
	c := &watchtower.Client{URL: cmp.Or(o.url, env(urlVar), defaultURL), Key: cmp.Or(env(own), env(keyVar))}
	if o.keyFile != "" {
		text, err := os.ReadFile(o.keyFile)
		if err != nil {
			return nil, fmt.Errorf("key-file: %w", err)
		}
		c.Key = strings.TrimSpace(string(text))
	}
	var err error
	if o.filter.After, err = readPosition("after", o.after); err != nil {
		return nil, err
	}
	if o.filter.UntilHead = o.until == "head"; !o.filter.UntilHead {
		o.filter.Until, err = readPosition("until", o.until)
	}
	return c, err
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
	return []byte(Plain(line) + "\n"), nil
}
