package remote

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

const listenHelp = `Post the events of a running service to a URL on this machine, as webhooks are posted: one request for
each event, signed by the Standard Webhooks specification. The service needs no route to this machine,
because the command follows its stream of events (GET /v1/events).

It begins with the next event, or after the position in --after, and resumes where a connection broke.
Each event is posted once, in order, and the answer is printed. Unlike a webhook, an event that the URL
does not accept is not posted again: start the command again with --after.

The secret with which the requests are signed is drawn and printed at the start, unless --secret-file
or ` + secretVar + ` gives one.`

// secretVar is a variable with the secret of listen.
const secretVar = "LISTEN_SECRET"

// Limits of listen.
const (
	lineMost     = 4 << 20          // bytes of an event
	postTime     = 15 * time.Second // for one request, as webhooks have it
	secretBytes  = 32
	secretPrefix = "whsec_"
	silenceMost  = 45 * time.Second // the service sends a mark at least this often
	listenPause  = time.Second
)

// Posting is an event in the form in which it is posted.
type Posting struct {
	ID       string // the same for each post of the same event
	Name     string
	Position uint64
	Body     []byte
}

// Shape reads an event of the service's stream. The zero Posting, without an id, is none: a mark of the
// stream's position.
type Shape func(line []byte) (Posting, error)

// listening holds the flags.
type listening struct {
	door              Door
	shape             Shape
	to, after, secret string
	filters           []string
}

// Listen is the command "listen". filters are the parameters of the service's stream that are flags, too.
func Listen(at Listener, program string, filters map[string]string, shape Shape) *cobra.Command {
	l := listening{door: Door{Listener: at}, shape: shape}
	cmd := &cobra.Command{
		Use: "listen --forward-to URL", Short: "Post events to a URL on this machine, as webhooks are posted", Args: cobra.NoArgs, Long: listenHelp,
		Example: "  " + program + " listen --forward-to http://localhost:3000/webhooks",
		RunE:    func(cmd *cobra.Command, _ []string) error { return l.run(cmd) },
	}
	l.door.Connection(cmd, "url")
	l.door.Output.Only(cmd, terminal.AsTable, terminal.AsTable, terminal.AsLines)
	flags := cmd.Flags()
	flags.StringVar(&l.to, "forward-to", "", "the `URL` to post to")
	flags.StringVar(&l.after, "after", "", "the `position` to begin after; 0 is the beginning (default: the end)")
	flags.StringVar(&l.secret, "secret-file", "", "a `file` with the secret, whsec_…, that the requests are signed with")
	for name, help := range filters {
		flags.String(name, "", help)
		l.filters = append(l.filters, name)
	}
	_ = cmd.MarkFlagRequired("forward-to") // the flag exists
	_ = cmd.MarkFlagFilename("secret-file")
	return cmd
}

func (l *listening) run(cmd *cobra.Command) error {
	to, err := url.Parse(l.to)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return terminal.Misuse("--forward-to must be a URL that begins with http:// or https://")
	}
	after, err := readPosition("after", l.after)
	if err != nil {
		return terminal.With(terminal.Usage, err)
	}
	key, secret, err := l.key()
	if err != nil {
		return terminal.With(terminal.Usage, err)
	}
	if secret != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "the requests are signed with %s\n", secret) //nolint:errcheck // the receiver tells
	}
	q := url.Values{}
	for _, name := range l.filters {
		if flag := cmd.Flags().Lookup(name); flag.Changed {
			q.Set(name, flag.Value.String())
		}
	}
	f := forwarding{
		listening: l, to: to.String(), key: key, query: q, at: after, out: cmd.OutOrStdout(),
		service: &http.Client{Transport: &reach{next: http.DefaultTransport, ctx: cmd.Context(), to: cmd.ErrOrStderr(), program: cmd.Root().Name()}},
		local:   &http.Client{Timeout: postTime},
	}
	return f.run(cmd.Context())
}

// key is the key that signs; secret is its text if it was drawn.
func (l *listening) key() (key []byte, secret string, err error) {
	text := os.Getenv(secretVar)
	if l.secret != "" {
		file, err := os.ReadFile(l.secret)
		if err != nil {
			return nil, "", fmt.Errorf("secret-file: %w", err)
		}
		text = string(file)
	}
	if text = strings.TrimSpace(text); text == "" {
		key = make([]byte, secretBytes)
		if _, err := io.ReadFull(rand.Reader, key); err != nil {
			return nil, "", err
		}
		return key, secretPrefix + base64.StdEncoding.EncodeToString(key), nil
	}
	encoded, is := strings.CutPrefix(text, secretPrefix)
	if key, err = base64.StdEncoding.DecodeString(encoded); !is || err != nil || len(key) == 0 {
		return nil, "", errors.New("a webhook's secret is whsec_ and base64") // without the secret
	}
	return key, "", nil
}

// forwarding posts events.
type forwarding struct {
	*listening
	to             string
	key            []byte
	query          url.Values
	at             *uint64 // the position of the last event; nil: from the end on
	out            io.Writer
	service, local *http.Client
}

// run follows the stream until ctx ends, and resumes it where it broke.
func (f *forwarding) run(ctx context.Context) error {
	for {
		err := f.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // the user has seen enough
		case err != nil && terminal.StatusOf(err) != terminal.Unavailable:
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(listenPause):
		}
	}
}

func (f *forwarding) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(silenceMost, cancel)
	defer silence.Stop()
	r := Get("v1", "events")
	r.Query = f.query
	if f.at != nil {
		r.Query.Set("after", strconv.FormatUint(*f.at, 10))
	}
	req, err := f.door.request(ctx, r)
	if err != nil {
		return terminal.With(terminal.Usage, err)
	}
	req.Header.Set("Accept", "application/x-ndjson")
	res, err := f.service.Do(req)
	if err != nil {
		return terminal.With(terminal.Unavailable, err)
	}
	defer res.Body.Close() //nolint:errcheck // it is of no more use
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(res.Body, answerMost))
		return f.door.refusal(req, res.StatusCode, body)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, lineMost)
	for lines.Scan() {
		silence.Reset(silenceMost)
		if err := f.take(ctx, lines.Bytes()); err != nil {
			return err
		}
	}
	return terminal.With(terminal.Unavailable, lines.Err())
}

// take posts an event, and goes on from its position, whatever the answer.
func (f *forwarding) take(ctx context.Context, line []byte) error {
	p, err := f.shape(line)
	if err != nil {
		return fmt.Errorf("the service's response cannot be decoded: %w", err)
	}
	if p.ID != "" {
		answer := f.post(ctx, p, time.Now())
		if ctx.Err() != nil {
			return ctx.Err() // it may not have arrived: it is posted again
		}
		if err := f.tell(p, answer); err != nil {
			return err
		}
	}
	f.at = &p.Position
	return nil
}

// post posts an event, and describes the answer.
func (f *forwarding) post(ctx context.Context, p Posting, at time.Time) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.to, bytes.NewReader(p.Body))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("webhook-id", p.ID)
	req.Header.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	req.Header.Set("webhook-signature", sign(f.key, p.ID, at, p.Body))
	res, err := f.local.Do(req)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return err.Error()
	}
	defer res.Body.Close()                                              //nolint:errcheck // it is of no more use
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, answerMost/64)) // so that the connection is used again
	return res.Status
}

// sign signs a message. Source: Standard Webhooks 1.0.0, "Signature scheme".
func sign(key []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.", id, at.Unix())
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// tell prints an event and the answer.
func (f *forwarding) tell(p Posting, answer string) error {
	if f.door.Output.Format == terminal.AsLines {
		return json.NewEncoder(f.out).Encode(map[string]any{"position": p.Position, "id": p.ID, "name": p.Name, "answer": answer})
	}
	_, err := fmt.Fprintf(f.out, "%8d  %-24s %s  %s\n", p.Position, terminal.Plain(p.Name), terminal.Plain(p.ID), terminal.Plain(answer))
	return err
}

// EventPosting is the shape of the events of delivery's API: the event as in the stream.
func EventPosting(line []byte) (Posting, error) {
	var e struct {
		ID, Name string
		Position uint64
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return Posting{}, err
	}
	if e.Name == "" {
		return Posting{Position: e.Position}, nil
	}
	return Posting{ID: "msg_" + e.ID, Name: e.Name, Position: e.Position, Body: bytes.Clone(line)}, nil
}
