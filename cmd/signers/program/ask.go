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

// maxAnswer is the maximum size of a service's answer, in bytes: 64 KiB. A public key with its
// metadata takes a tenth of that.
const maxAnswer = 64 << 10

// Client is an HTTP client for a service: it follows no redirects. It uses the environment's
// proxy, which cannot read TLS.
func Client(secured *tls.Config) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: limited{&http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			TLSClientConfig:        secured,
			DisableCompression:     true, // decompressed size would have no limit
			MaxIdleConnsPerHost:    mostAtOnce,
			IdleConnTimeout:        90 * time.Second,
			TLSHandshakeTimeout:    10 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		}},
	}
}

// limited limits the size of answers.
type limited struct{ http.RoundTripper }

func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(request)
	if err == nil {
		Limit(response)
	}
	return response, err
}

// Limit limits the body of an answer to maxAnswer bytes.
func Limit(response *http.Response) { response.Body = &limitedBody{response.Body, maxAnswer} }

type limitedBody struct {
	io.ReadCloser
	left int
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the response is longer than %d bytes", maxAnswer)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// Answer is a service's answer.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Ask sends a request by a [Client]. It returns an error if no answer came, or an oversized one.
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

// Err classifies the status: nil for 200; a *keys.Busy for 429 and 5xx; otherwise a refusal.
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

// lost is the error of a missing answer. It omits the URL, which contains the key; the caller
// knows the key's name.
func lost(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("no answer: %w", cause)
	}
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return fmt.Errorf("no answer: %w", err)
}
