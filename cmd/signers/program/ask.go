package program

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/keys"
	"github.com/tempo-watchtower/watchtower/infra/retryafter"
)

// maxAnswer is the most that is read of a service's answer, in bytes: 64 KiB. A public
// key with all that is said of it has a tenth of that.
const maxAnswer = 64 << 10

// Client speaks HTTP with a service: it goes where it is told to, and nowhere else. A
// proxy of the environment's is used, through which TLS goes unread.
func Client(secured *tls.Config) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: limited{&http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			TLSClientConfig:        secured,
			DisableCompression:     true, // which could unpack without end
			MaxIdleConnsPerHost:    mostAtOnce,
			IdleConnTimeout:        90 * time.Second,
			TLSHandshakeTimeout:    10 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		}},
	}
}

// limited reads no answer without end.
type limited struct{ http.RoundTripper }

func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(request)
	if err == nil {
		Limit(response)
	}
	return response, err
}

// Limit lets no more be read of an answer than a service's can have.
func Limit(response *http.Response) { response.Body = &limitedBody{response.Body, maxAnswer} }

type limitedBody struct {
	io.ReadCloser
	left int
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// Answer is what a service answered.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Ask sends a request by a [Client]. The error is that no answer came, or one without
// end.
func Ask(client *http.Client, request *http.Request) (Answer, error) {
	response, err := client.Do(request) //nolint:gosec // G704: whoever runs the program says where to
	if err != nil {
		return Answer{}, lost(request.Context(), err)
	}
	defer response.Body.Close() //nolint:errcheck // there is nothing to lose
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{}, lost(request.Context(), err)
	}
	return Answer{response.StatusCode, response.Header, body}, nil
}

// Err is what its status means: nothing, if that is 200; for 429 and 5xx a *keys.Busy; a
// refusal otherwise.
func (a Answer) Err() error {
	switch {
	case a.Status == http.StatusOK:
		return nil
	case a.Status == http.StatusTooManyRequests || a.Status >= 500:
		return &keys.Busy{Status: a.Status, After: min(retryafter.Of(a.Header), keys.MaxRetryAfter)}
	default:
		return keys.ErrRejected.Because("the service answered %d", a.Status)
	}
}

// lost is that no answer came. Why is shown without the URL, which names the key; that
// is said where it is known.
func lost(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("no answer: %w", cause)
	}
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return fmt.Errorf("no answer: %w", err)
}
