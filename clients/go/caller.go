package watchtower

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Limits for retries.
const (
	DefaultTries = 6
	pauseFirst   = 200 * time.Millisecond // before the second try
	pauseMost    = 10 * time.Second
	// restMost is the longest pause for which a call waits at the service's demand. If it
	// demands a longer one, the caller gets the problem, and decides.
	restMost = time.Minute
	// tryTime is the timeout of one try, without the wait that the request asks for.
	tryTime = 30 * time.Second
	// answerMost is the most bytes of an answer that are read: enough for a page of 1000
	// transactions.
	answerMost = 64 << 20
)

// caller makes requests to one service.
type caller struct {
	url, key string
	http     *http.Client
	most     int // tries; 0 means [DefaultTries]
}

// request is one request, which may be repeated.
type request struct {
	method, path string
	query        url.Values
	body         []byte // JSON, or nil
	header       http.Header
	wait         time.Duration // how long the service may wait before it answers, at the client's request
	alsoOK       int           // a status of no success that is no error
	once         bool          // one try only
}

func get(path string, query url.Values) request {
	return request{method: http.MethodGet, path: path, query: query}
}

// post is a request with a body that encoding/json can write, or without one.
func post(path string, query url.Values, body any) (request, error) {
	r := request{method: http.MethodPost, path: path, query: query}
	if body == nil {
		return r, nil
	}
	var err error
	r.body, err = json.Marshal(body)
	return r, err
}

// call makes a request, with retries, and decodes the answer.
func (c caller) call(ctx context.Context, r request, into any) error {
	_, body, err := c.answer(ctx, r, true)
	if err != nil {
		return err
	}
	return decode(r, body, into)
}

// posted is call for a request with a body.
func (c caller) posted(ctx context.Context, path string, query url.Values, body, into any) error {
	r, err := post(path, query, body)
	if err != nil {
		return fmt.Errorf("watchtower: %s: %w", path, err)
	}
	return c.call(ctx, r, into)
}

// text makes a request whose answer is text.
func (c caller) text(ctx context.Context, path string) (string, error) {
	return c.textOf(ctx, path, "*/*")
}

// page is text for browsers.
func (c caller) page(ctx context.Context, path string) (string, error) {
	return c.textOf(ctx, path, "text/html")
}

func (c caller) textOf(ctx context.Context, path, accept string) (string, error) {
	_, body, err := c.answer(ctx, request{method: http.MethodGet, path: path, header: http.Header{"Accept": {accept}}}, false)
	return string(body), err
}

// answer makes a request, with retries, and returns the answer's header and body. An answer that
// should be JSON and is not comes from elsewhere, so the service's answer is unknown.
func (c caller) answer(ctx context.Context, r request, isJSON bool) (http.Header, []byte, error) {
	unanswered := false
	for try := 1; ; try++ {
		status, header, body, err := c.try(ctx, r)
		if err == nil {
			good := status >= 200 && status < 300 || r.alsoOK != 0 && status == r.alsoOK
			switch {
			case good && (!isJSON || json.Valid(body)):
				return header, body, nil
			case good:
				err = fmt.Errorf("the answer is not JSON: %.100q", body)
			default:
				p := problemOf(status, body)
				p.Unanswered, p.RetryAfter, err = unanswered, retryAfter(header), p
			}
		}
		unanswered = unanswered || OutcomeUnknown(unsure(err))
		rest := retryAfter(header)
		last := r.once || try >= c.tries() || rest > restMost
		if last || !repeatable(err) || ctx.Err() != nil || pause(ctx, max(rest, backoff(try))) != nil {
			return nil, nil, fmt.Errorf("watchtower: %s %s: %w", r.method, r.path, c.failure(ctx, try, err))
		}
	}
}

// failure is the error of a request after its last try.
func (c caller) failure(ctx context.Context, tries int, err error) error {
	err = unsure(err)
	if n := (*NoAnswerError)(nil); errors.As(err, &n) {
		n.Tries = tries
	}
	return errors.Join(ctx.Err(), err)
}

// unsure returns err, as a [NoAnswerError] if no answer told the result.
func unsure(err error) error {
	if err == nil || errors.As(err, new(*Problem)) || errors.As(err, new(*misuse)) {
		return err
	}
	return &NoAnswerError{Err: err}
}

// retryAfter returns the wait that the service demands before the next request.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.ParseUint(header.Get("Retry-After"), 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

func (c caller) tries() int {
	if c.most > 0 {
		return c.most
	}
	return DefaultTries
}

// try makes a request once and reads the whole answer.
func (c caller) try(ctx context.Context, r request) (status int, header http.Header, body []byte, err error) {
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

func (c caller) send(ctx context.Context, r request) (*http.Response, error) {
	target := strings.TrimSuffix(c.url, "/") + r.path
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
	// Otherwise net/http repeats a request with an idempotency key by itself, and a refusal
	// would not show that an earlier try got no answer.
	req.GetBody = nil
	for name, values := range r.header {
		req.Header[name] = values
	}
	if r.method == http.MethodPost { // without a body too: the services refuse a POST that any web page could send
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("X-Api-Key", c.key)
	}
	return c.client().Do(req)
}

// client does not follow redirects, because that would send the API key to another host.
func (c caller) client() *http.Client {
	client := http.Client{}
	if c.http != nil {
		client = *c.http
	}
	if client.CheckRedirect == nil {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return &client
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

// pages yields the items of all pages. fetch returns a page and the query of the next one; nil
// ends the list.
func pages[T any](query url.Values, fetch func(url.Values) (page []T, next url.Values, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for query := query; query != nil; {
			page, next, err := fetch(query)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, one := range page {
				if !yield(one, nil) {
					return
				}
			}
			query = next
		}
	}
}

// with is a copy of a query with a value set; an empty value is left out.
func with(query url.Values, name, value string) url.Values {
	copied := url.Values{}
	for n, values := range query {
		copied[n] = values
	}
	if value != "" {
		copied.Set(name, value)
	}
	return copied
}
