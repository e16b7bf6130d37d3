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
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
)

// Listener is a listener of a running service, as its commands name it.
type Listener struct {
	Name     string   // in texts, such as "the API of intents (relay.listen)"
	Variable string   // has its URL
	Standard string   // its URL if the variable is not set
	Keys     []string // variables with an API key, in order of precedence
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
	format
	url, keyFile string
}

// Flags adds the flags common to all commands that call a service.
func (d *Door) Flags(cmd *cobra.Command) *cobra.Command {
	d.Connection(cmd.Flags(), "url")
	d.format.flags(cmd)
	return cmd
}

// Connection adds the flags with the service's URL, under a name, and with the API key.
func (d *Door) Connection(flags *pflag.FlagSet, name string) {
	flags.StringVar(&d.url, name, "", "the `URL` of "+d.Name+" (default: "+d.Variable+", or "+d.Standard+")")
	flags.StringVar(&d.keyFile, "key-file", "", "a `file` with an API key (default: the key in "+strings.Join(d.Keys, " or ")+", if it is set)")
}

// Request is one request to a service.
type Request struct {
	Method string
	Path   []string // path segments, not escaped
	Query  url.Values
	Body   any           // encoded as JSON; nil: no body
	Wait   time.Duration // the wait that the service is asked for
	// List is the member of the answer that holds the items of a list; empty: the answer is not a list.
	List string
}

// Get is a GET request for a path.
func Get(path ...string) Request { return Request{Method: http.MethodGet, Path: path} }

// Asks builds a command that sends one request, made from its flags and arguments, and prints the
// answer. tell prints it for people.
func Asks[T any](at Listener, cmd *cobra.Command, of func(cmd *cobra.Command, args []string) (Request, error), tell func(to io.Writer, answer T) error) *cobra.Command {
	d := Door{Listener: at}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := of(cmd, args)
		if err != nil {
			return err
		}
		answer, err := d.Ask(cmd.Context(), r)
		if err != nil {
			return err
		}
		return Show(cmd, &d, r.List, answer, tell)
	}
	return d.Flags(cmd)
}

// Ask sends a request, and returns the body of a successful answer. A refusal by the service is
// a *watchtower.Problem.
func (d *Door) Ask(ctx context.Context, r Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime+r.Wait)
	defer cancel()
	req, err := d.request(ctx, r)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, d.unreachable(req.URL, err)
	}
	defer res.Body.Close() //nolint:errcheck // read to its end, or of no more use
	body, err := io.ReadAll(io.LimitReader(res.Body, answerMost))
	if err != nil {
		return nil, fmt.Errorf("the response was cut off: %w", err)
	}
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusAccepted {
		return nil, d.refusal(req, res.StatusCode, body)
	}
	return body, nil
}

func (d *Door) unreachable(at *url.URL, err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err // without the URL: the text has the path
	}
	return fmt.Errorf("%s cannot be reached at %s://%s: %w; set its URL with --url or %s", d.Name, at.Scheme, at.Host, err, d.Variable)
}

// target returns the service's URL.
func (d *Door) target() (*url.URL, error) {
	target, err := url.Parse(cmp.Or(d.url, os.Getenv(d.Variable), d.Standard))
	if err != nil || target.Scheme != "http" && target.Scheme != "https" || target.Host == "" {
		return nil, fmt.Errorf("the URL of %s must begin with http:// or https:// and have a host", d.Name)
	}
	return target, nil
}

// key returns the API key; empty if there is none.
func (d *Door) key() (string, error) {
	if d.keyFile != "" {
		text, err := os.ReadFile(d.keyFile)
		if err != nil {
			return "", fmt.Errorf("key-file: %w", err)
		}
		return strings.TrimSpace(string(text)), nil
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
		return fmt.Errorf("%s://%s answered %d %s, which is not a response of this service", req.URL.Scheme, req.URL.Host, status, strings.ToLower(http.StatusText(status)))
	}
	p.Status = status
	return d.Explained(p)
}

// Explained adds advice to a refusal: how to set a key or a URL.
func (d *Door) Explained(err error) error {
	var p *watchtower.Problem
	if !errors.As(err, &p) {
		return err
	}
	switch {
	case p.Status == http.StatusUnauthorized:
		return fmt.Errorf("%w; set an API key with --key-file or %s", err, strings.Join(d.Keys, " or "))
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
