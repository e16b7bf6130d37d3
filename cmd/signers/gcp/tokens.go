package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/tempo-watchtower/watchtower/infra/keys"
)

// scope is the only scope of the tokens.
const scope = "https://www.googleapis.com/auth/cloudkms"

// early is the time before its expiry from which a token is no longer used.
const early = time.Minute

// tokens keeps a valid access token, and renews it in time. Google's library can do so, but it
// waits without limit, and does not reread a replaced credentials file.
type tokens struct {
	http *http.Client
	turn chan *oauth2.Token // holds the last token, or nil, while it is not in use
}

func newTokens(client *http.Client) *tokens {
	t := &tokens{client, make(chan *oauth2.Token, 1)}
	t.turn <- nil
	return t
}

// get returns a token. One caller at a time fetches a new one; the others wait for it.
func (t *tokens) get(ctx context.Context) (string, error) {
	var last *oauth2.Token
	select {
	case last = <-t.turn:
	case <-ctx.Done():
		return "", fmt.Errorf("no access token: %w", ctx.Err())
	}
	defer func() { t.turn <- last }()
	if last != nil && time.Until(last.Expiry) > early {
		return last.AccessToken, nil
	}
	fresh, err := t.fetch(ctx)
	if err != nil {
		return "", err
	}
	last = fresh
	return fresh.AccessToken, nil
}

// forget drops the token, which the service rejects.
func (t *tokens) forget() {
	<-t.turn
	t.turn <- nil
}

// fetch requests a token.
func (t *tokens) fetch(ctx context.Context) (*oauth2.Token, error) {
	client := &http.Client{Transport: bound{ctx, t.http.Transport}, CheckRedirect: t.http.CheckRedirect}
	found, err := google.FindDefaultCredentials(context.WithValue(ctx, oauth2.HTTPClient, client), scope)
	if err != nil {
		return nil, keys.ErrBadSetting.Because("no credentials: %v", err)
	}
	token, err := found.TokenSource.Token()
	if err == nil && token.AccessToken != "" {
		return token, nil
	}
	if cause := ctx.Err(); cause != nil {
		return nil, fmt.Errorf("no access token: %w", cause)
	}
	answer, network := (*oauth2.RetrieveError)(nil), (*url.Error)(nil)
	switch {
	case errors.As(err, &answer) && answer.Response != nil: // its text contains the whole answer
		return nil, fmt.Errorf("no access token: the token server answered %d", answer.Response.StatusCode)
	case errors.As(err, &network):
		return nil, fmt.Errorf("no access token: the token server could not be reached: %w", network.Err)
	default: // for example an invalid answer, which is not quoted
		return nil, errors.New("no access token: the response is missing or cannot be decoded")
	}
}

// bound applies a context to requests to which the library passes none.
type bound struct {
	ctx  context.Context
	next http.RoundTripper
}

func (b bound) RoundTrip(request *http.Request) (*http.Response, error) {
	return b.next.RoundTrip(request.WithContext(b.ctx))
}
