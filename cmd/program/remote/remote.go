// Package remote has commands that call a running service over HTTP. All such commands share its
// URL, API key and formats of output. They hold no signing key, and open no store.
package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

// Listener is a listener of a running service, as its commands name it.
type Listener struct {
	Name     string   // in texts, such as "the API of intents (relay.listen)"
	Variable string   // has its URL
	Standard string   // its URL if nothing else gives one
	Keys     []string // variables with an API key, in order of precedence
	Member   Member   // has its URL in a context
}

// Limits of one request.
const (
	answerTime = 30 * time.Second // in addition to the requested wait
	answerMost = 64 << 20         // bytes
	givenMost  = 16 << 20         // bytes of standard input
)

// Door holds a command's connection settings and output format.
type Door struct {
	Listener
	Output  terminal.Output
	url     string
	keyFile string
	context string
}

// Flags adds the flags common to all commands that call a service.
func (d *Door) Flags(cmd *cobra.Command) *cobra.Command {
	d.Connection(cmd, "url")
	d.Output.Flags(cmd)
	return cmd
}

// Connection adds the flags with the service's URL, under a name, with the API key and with the
// context.
func (d *Door) Connection(cmd *cobra.Command, name string) {
	d.At(cmd, name)
	flags := cmd.Flags()
	flags.StringVar(&d.keyFile, "key-file", "", "a `file` with an API key (default: the context's, or the key in "+strings.Join(d.Keys, " or ")+", if it is set)")
	flags.StringVar(&d.context, "context", "", "the `name` of a context, which has a URL and a key file: see the command context")
	_ = cmd.RegisterFlagCompletionFunc("context", completeContexts) // the flag exists
	_ = cmd.MarkFlagFilename("key-file")
	cmd.MarkFlagsMutuallyExclusive(name, "context")
}

// At adds the flag with the service's URL, under a name.
func (d *Door) At(cmd *cobra.Command, name string) {
	cmd.Flags().StringVar(&d.url, name, "", "the `URL` of "+d.Name+" (default: "+d.Variable+", the current context, or "+d.Standard+")")
}

// Beside makes a door use the same key and context as another.
func (d *Door) Beside(other *Door) { d.keyFile, d.context = other.keyFile, other.context }

// Request is one request to a service.
type Request struct {
	Method string
	Path   []string // path segments, not escaped
	Query  url.Values
	Body   any           // encoded as JSON; nil: no body
	Wait   time.Duration // the wait that the service is asked for
	// List is the member of the answer that holds the items of a list; empty: the answer is not a list.
	List string
	// Check returns the error of a command whose answer has arrived and was shown; nil: there is none.
	Check func(answer []byte) error
}

// Get is a GET request for a path.
func Get(path ...string) Request { return Request{Method: http.MethodGet, Path: path} }

// Asks builds a command that sends one request, made from its flags and arguments, and prints the
// answer. tell prints it for people.
func Asks[T any](at Listener, cmd *cobra.Command, of func(cmd *cobra.Command, args []string) (Request, error), tell func(to io.Writer, answer T) error) *cobra.Command {
	return asks(&Door{Listener: at}, cmd, of, tell)
}

func asks[T any](d *Door, cmd *cobra.Command, of func(cmd *cobra.Command, args []string) (Request, error), tell func(to io.Writer, answer T) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := of(cmd, args)
		if err != nil {
			return terminal.With(terminal.Usage, err)
		}
		answer, err := d.Ask(cmd.Context(), r)
		if err != nil {
			return err
		}
		if err := Show(cmd, d, r.List, answer, tell); err != nil || r.Check == nil {
			return err
		}
		return r.Check(answer)
	}
	return d.Flags(cmd)
}

// Show prints a service's answer in the format that the flags choose: see [terminal.Show].
func Show[T any](cmd *cobra.Command, d *Door, list string, answer []byte, text func(to io.Writer, answer T) error) error {
	return terminal.Show(cmd, &d.Output, list, answer, text)
}

// Ask sends a request, and returns the body of a successful answer. A refusal by the service is
// a *watchtower.Problem. Every error has an exit status.
func (d *Door) Ask(ctx context.Context, r Request) ([]byte, error) {
	req, status, body, err := d.exchange(ctx, r)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK && status != http.StatusAccepted {
		return nil, d.refusal(req, status, body)
	}
	return body, nil
}

// Look sends a request, and returns an answer with any status.
func (d *Door) Look(ctx context.Context, r Request) (status int, body []byte, err error) {
	_, status, body, err = d.exchange(ctx, r)
	return status, body, err
}

func (d *Door) exchange(ctx context.Context, r Request) (req *http.Request, status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime+r.Wait)
	defer cancel()
	if req, err = d.request(ctx, r); err != nil {
		return nil, 0, nil, terminal.With(terminal.Usage, err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return req, 0, nil, terminal.With(lost(r.Method, err), d.unreachable(req.URL, err))
	}
	defer res.Body.Close() //nolint:errcheck // read to its end, or of no more use
	if body, err = io.ReadAll(io.LimitReader(res.Body, answerMost)); err != nil {
		return req, 0, nil, terminal.With(lost(r.Method, err), fmt.Errorf("the response was cut off: %w", err))
	}
	return req, res.StatusCode, body, nil
}

// lost is the status after a request without an answer. If it may have reached the service, and may
// have changed something, its outcome is unknown.
func lost(method string, err error) terminal.Status {
	var dialed *net.OpError
	switch {
	case errors.As(err, &dialed) && dialed.Op == "dial":
		return terminal.Unavailable
	case method != http.MethodGet:
		return terminal.Unknown
	case errors.Is(err, context.Canceled):
		return terminal.Interrupted
	}
	return terminal.Unavailable
}

func (d *Door) unreachable(at *url.URL, err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err // without the URL: the text has the path
	}
	return fmt.Errorf("%s cannot be reached at %s://%s: %w; set its URL with --url, --context or %s", d.Name, at.Scheme, at.Host, err, d.Variable)
}

// target returns the service's URL.
func (d *Door) target() (*url.URL, error) {
	from, err := d.chosen()
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(from.url)
	if err != nil || target.Scheme != "http" && target.Scheme != "https" || target.Host == "" {
		return nil, fmt.Errorf("the URL of %s must begin with http:// or https:// and have a host", d.Name)
	}
	return target, nil
}

// key returns the API key; empty if there is none.
func (d *Door) key() (string, error) {
	from, err := d.chosen()
	if err != nil {
		return "", err
	}
	if file := cmp.Or(d.keyFile, from.keyFile); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("key-file: %w", err)
		}
		return strings.TrimSpace(string(text)), nil
	}
	if from.context {
		return "", nil // a key of the environment may belong to another service
	}
	for _, name := range d.Keys {
		if key := strings.TrimSpace(os.Getenv(name)); key != "" {
			return key, nil
		}
	}
	return "", nil
}

// Client returns a client of the service, for commands that repeat requests.
func (d *Door) Client() (*watchtower.Client, error) {
	target, err := d.target()
	if err != nil {
		return nil, err
	}
	key, err := d.key()
	return &watchtower.Client{URL: target.String(), Key: key}, err
}

func (d *Door) request(ctx context.Context, r Request) (*http.Request, error) {
	target, err := d.target()
	if err != nil {
		return nil, err
	}
	target = target.JoinPath(r.Path...)
	target.RawQuery = r.Query.Encode()
	body := []byte{}
	if r.Body != nil {
		if body, err = json.Marshal(r.Body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if r.Body != nil || r.Method == http.MethodPost { // a POST without a body needs it too
		req.Header.Set("Content-Type", "application/json")
	}
	key, err := d.key()
	if key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	return req, err
}

// refusal is the error of a refused request.
func (d *Door) refusal(req *http.Request, status int, body []byte) error {
	p := new(watchtower.Problem)
	if json.Unmarshal(body, p) != nil || p.Code == "" {
		return terminal.With(refused(req.Method, status), fmt.Errorf("%s://%s answered %d %s, which is not a response of this service", req.URL.Scheme, req.URL.Host, status, strings.ToLower(http.StatusText(status))))
	}
	p.Status = status
	return terminal.With(refused(req.Method, status), d.explained(p))
}

// refused is the exit status after an answer with an HTTP status.
func refused(method string, status int) terminal.Status {
	switch {
	case status == http.StatusNotFound:
		return terminal.NotFound
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		return terminal.Unavailable
	case status < http.StatusInternalServerError:
		return terminal.Refused
	case method == http.MethodGet:
		return terminal.Unavailable
	}
	return terminal.Unknown
}

// Explained gives an error of the client for a request by a method its exit status, and a refusal
// advice on how to set a key or a URL.
func (d *Door) Explained(method string, err error) error {
	var p *watchtower.Problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p):
		return terminal.With(refused(method, p.Status), d.explained(err))
	}
	return terminal.With(lost(method, err), err)
}

func (d *Door) explained(err error) error {
	var p *watchtower.Problem
	if !errors.As(err, &p) {
		return err
	}
	switch {
	case p.Status == http.StatusUnauthorized:
		return fmt.Errorf("%w; set an API key with --key-file, --context or %s", err, strings.Join(d.Keys, " or "))
	case p.Status == http.StatusNotFound && p.Code == "not-found" && p.Detail == "": // no route exists at this path
		return fmt.Errorf("%w; check that the URL is of the right listener", err)
	}
	return err
}

// Given reads all of standard input.
func Given(cmd *cobra.Command) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), givenMost+1))
	if err == nil && len(text) > givenMost {
		err = fmt.Errorf("standard input has more than %d bytes", givenMost)
	}
	return text, err
}

// GivenIn reads all of the file that an optional argument names; all of standard input without an
// argument, or if it is -.
func GivenIn(cmd *cobra.Command, args []string) ([]byte, error) {
	if len(args) == 0 || args[0] == "-" {
		return Given(cmd)
	}
	f, err := os.Open(args[0])
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, givenMost+1))
	if err == nil && len(text) > givenMost {
		err = fmt.Errorf("%s has more than %d bytes", args[0], givenMost)
	}
	return text, err
}

// NameOf names the input of GivenIn in texts.
func NameOf(args []string) string {
	if len(args) == 0 || args[0] == "-" {
		return "standard input"
	}
	return args[0]
}
