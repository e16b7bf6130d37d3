package watchtower

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client calls one service. Only URL is required. Several goroutines may use a Client; its
// fields must not change meanwhile.
type Client struct {
	URL  string // of the service, such as https://watchtower.example
	Key  string // an API key, if the service requires one
	HTTP *http.Client
	// Tries is the maximum number of tries for one request; 0 means [DefaultTries]. It does not
	// limit [Client.Events].
	Tries int
}

// Limits for retries.
const (
	DefaultTries = 6
	pauseFirst   = 200 * time.Millisecond // before the second try
	pauseMost    = 10 * time.Second
	// tryTime is the timeout of one try, without the wait that the request asks for.
	tryTime = 30 * time.Second
	// answerMost is the most bytes of an answer that are read: enough for a page of 1000
	// transactions.
	answerMost = 64 << 20
)

// request is one request, which may be repeated.
type request struct {
	method, path string
	query        url.Values
	body         []byte // JSON, or nil
	header       http.Header
	wait         time.Duration // how long the service may wait before it answers, at the client's request
	alsoOK       int           // a status beside 200 that is no error
}

// call makes a request, with retries, and decodes the answer.
func (c *Client) call(ctx context.Context, r request, into any) error {
	_, err := c.callFor(ctx, r, into)
	return err
}

// callFor is call, and returns the answer's header too.
func (c *Client) callFor(ctx context.Context, r request, into any) (http.Header, error) {
	for try := 1; ; try++ {
		status, header, body, err := c.try(ctx, r)
		if err == nil {
			if status == http.StatusOK || r.alsoOK != 0 && status == r.alsoOK {
				return header, decode(r, body, into)
			}
			err = problemOf(status, body)
		}
		if !repeatable(err) || try >= c.tries() || ctx.Err() != nil {
			return nil, fmt.Errorf("watchtower: %s %s: %w", r.method, r.path, err)
		}
		if pause(ctx, max(retryAfter(header), backoff(try))) != nil {
			return nil, fmt.Errorf("watchtower: %s %s: %w", r.method, r.path, errors.Join(ctx.Err(), err))
		}
	}
}

// retryAfter returns the wait that the service demands before the next request.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.ParseUint(header.Get("Retry-After"), 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

func (c *Client) tries() int {
	if c.Tries > 0 {
		return c.Tries
	}
	return DefaultTries
}

// try makes a request once and reads the whole answer.
func (c *Client) try(ctx context.Context, r request) (status int, header http.Header, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryTime+r.wait)
	defer cancel()
	res, err := c.send(ctx, r)
	if err != nil {
		return 0, nil, nil, err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end, or of no more use
	body, err = io.ReadAll(io.LimitReader(res.Body, answerMost))
	return res.StatusCode, res.Header, body, err
}

func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	target := strings.TrimSuffix(c.URL, "/") + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, &misuse{err}
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Key != "" {
		req.Header.Set("X-Api-Key", c.Key)
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	return client.Do(req)
}

// misuse is an error that no retry can fix.
type misuse struct{ error }

func (e *misuse) Unwrap() error { return e.error }

func decode(r request, body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("watchtower: %s %s: decode the response: %w", r.method, r.path, err)
	}
	return nil
}

// repeatable reports whether the same request may succeed later. A lost connection is
// repeatable, as all requests are safe to repeat.
func repeatable(err error) bool {
	if errors.As(err, new(*misuse)) {
		return false
	}
	var p *Problem
	return !errors.As(err, &p) || p.Temporary()
}

// backoff doubles with each try, with jitter so that clients do not retry in step.
func backoff(try int) time.Duration {
	d := min(pauseFirst<<min(try-1, 16), pauseMost)
	return d/2 + rand.N(d/2) //nolint:gosec // nothing secret
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
