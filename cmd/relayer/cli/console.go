// Package cli has the commands that call a running relayer over HTTP: operators' commands on
// its internal listener, and clients' commands on its API of intents. They hold no key and open
// no store.
package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/operator"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
)

// keyVar is the variable with the API key, for both listeners.
const keyVar = "RELAYER_API_KEY"

// listener is one of the relayer's two listeners.
type listener struct{ name, variable, standard string }

var (
	internal = listener{"the internal listener (metrics-listen)", "RELAYER_ADMIN_URL", "http://127.0.0.1:8421"} //nolint:gochecknoglobals // a constant
	front    = listener{"the API of intents (relay.listen)", "RELAYER_URL", "http://127.0.0.1:8422"}            //nolint:gochecknoglobals // a constant
)

// Commands returns all commands of this package.
func Commands() []*cobra.Command {
	return []*cobra.Command{signers(), safeguards(), budgets(), intents(), webhooks()}
}

// Limits of one request.
const (
	answerTime = 30 * time.Second // in addition to the requested wait
	answerMost = 64 << 20         // bytes
	givenMost  = 16 << 20         // bytes of standard input
)

// door holds a command's connection settings and output format.
type door struct {
	listener
	url, keyFile string
	asJSON       bool
}

// flags adds the flags common to all commands here.
func (d *door) flags(cmd *cobra.Command) *cobra.Command {
	flags := cmd.Flags()
	flags.StringVar(&d.url, "url", "", "the URL of "+d.name+" (default: "+d.variable+", or "+d.standard+")")
	flags.StringVar(&d.keyFile, "key-file", "", "a file with an API key (default: the key in "+keyVar+", if it is set)")
	flags.BoolVar(&d.asJSON, "json", false, "print the response as JSON")
	return cmd
}

// asks builds a command that sends one request, made from its flags and arguments, and prints
// the answer.
func asks[T any](at listener, cmd *cobra.Command, of func(cmd *cobra.Command, args []string) (asking, error), tell func(to io.Writer, answer T) error) *cobra.Command {
	d := door{listener: at}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a, err := of(cmd, args)
		if err != nil {
			return err
		}
		answer, err := d.ask(cmd.Context(), a)
		if err != nil {
			return err
		}
		return show(cmd, &d, answer, tell)
	}
	return d.flags(cmd)
}

// get is a GET request for a path.
func get(path ...string) asking { return asking{method: http.MethodGet, path: path} }

// asking is one request.
type asking struct {
	method string
	path   []string // path segments, not escaped
	query  url.Values
	body   any           // encoded as JSON; nil: no body
	wait   time.Duration // the wait that the relayer was asked for
}

// ask sends a request, and returns the body of a successful answer. A refusal by the relayer is
// a *watchtower.Problem.
func (d *door) ask(ctx context.Context, a asking) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime+a.wait)
	defer cancel()
	req, err := d.request(ctx, a)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the URL: the text has the path
		}
		return nil, fmt.Errorf("%s cannot be reached at %s://%s: %w; set its URL with --url or %s", d.name, req.URL.Scheme, req.URL.Host, err, d.variable)
	}
	defer res.Body.Close() //nolint:errcheck // read to its end, or of no more use
	body, err := io.ReadAll(io.LimitReader(res.Body, answerMost))
	if err != nil {
		return nil, fmt.Errorf("the response was cut off: %w", err)
	}
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusAccepted {
		return nil, refusal(req, res.StatusCode, body)
	}
	return body, nil
}

func (d *door) request(ctx context.Context, a asking) (*http.Request, error) {
	target, err := url.Parse(cmp.Or(d.url, os.Getenv(d.variable), d.standard))
	if err != nil || target.Scheme != "http" && target.Scheme != "https" || target.Host == "" {
		return nil, fmt.Errorf("the URL of %s must begin with http:// or https:// and have a host", d.name)
	}
	target = target.JoinPath(a.path...)
	target.RawQuery = a.query.Encode()
	body := []byte{}
	if a.body != nil {
		if body, err = json.Marshal(a.body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, a.method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if a.body != nil || a.method == http.MethodPost { // a POST without a body needs it too
		req.Header.Set("Content-Type", "application/json")
	}
	key := os.Getenv(keyVar)
	if d.keyFile != "" {
		text, err := os.ReadFile(d.keyFile)
		if err != nil {
			return nil, fmt.Errorf("key-file: %w", err)
		}
		key = string(text)
	}
	if key = strings.TrimSpace(key); key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	return req, nil
}

// refusal is the error of a refused request.
func refusal(req *http.Request, status int, body []byte) error {
	p := new(watchtower.Problem)
	if json.Unmarshal(body, p) != nil || p.Code == "" {
		return fmt.Errorf("%s://%s answered %d %s, which is not a response of a relayer", req.URL.Scheme, req.URL.Host, status, strings.ToLower(http.StatusText(status)))
	}
	p.Status = status
	switch status {
	case http.StatusUnauthorized:
		return fmt.Errorf("%w; set an API key with --key-file or %s", p, keyVar)
	case http.StatusNotFound:
		if p.Code == "not-found" && p.Detail == "" { // no route exists at this path
			return fmt.Errorf("%w; check that the URL is of the right listener", p)
		}
	}
	return p
}

// show prints an answer as JSON, or as formatted by text.
func show[T any](cmd *cobra.Command, d *door, answer []byte, text func(to io.Writer, answer T) error) error {
	if d.asJSON {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", bytes.TrimSpace(answer))
		return err
	}
	var told T
	if err := json.Unmarshal(answer, &told); err != nil {
		return fmt.Errorf("the relayer's response cannot be decoded: %w", err)
	}
	return text(cmd.OutOrStdout(), told)
}

// table prints rows below a header.
func table(to io.Writer, head string, rows [][]string) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, head) //nolint:errcheck // Flush tells
	for _, row := range rows {
		for i := range row {
			row[i] = cmp.Or(operator.Plain(row[i]), "-")
		}
		fmt.Fprintln(w, strings.Join(row, "\t")) //nolint:errcheck // Flush tells
	}
	return w.Flush()
}

// given reads all of standard input.
func given(cmd *cobra.Command) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), givenMost+1))
	if err == nil && len(text) > givenMost {
		err = fmt.Errorf("standard input has more than %d bytes", givenMost)
	}
	return text, err
}

// reasoned adds the flag that all changes require.
func reasoned(cmd *cobra.Command, reason *string) *cobra.Command {
	cmd.Flags().StringVar(reason, "reason", "", "the reason, for the log")
	_ = cmd.MarkFlagRequired("reason") // the flag exists
	return cmd
}
