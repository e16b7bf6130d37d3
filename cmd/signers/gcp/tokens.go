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

// scope is what the tokens are for, and nothing else.
const scope = "https://www.googleapis.com/auth/cloudkms"

// early is how long before its end a token is used no more.
const early = time.Minute

// tokens has a token that lets its bearer use keys, and gets another in time. Google's
// library has such a thing; but it waits for ever, and does not read a file of
// credentials again that was replaced.
type tokens struct {
	http *http.Client
	turn chan *oauth2.Token // holds the last token, or nil, when nobody is looking at it
}

func newTokens(client *http.Client) *tokens {
	t := &tokens{client, make(chan *oauth2.Token, 1)}
	t.turn <- nil
	return t
}

// get gives a token. One at a time asks for a new one; the others wait for it.
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

// forget gives the token up, which the service does not take.
func (t *tokens) forget() {
	<-t.turn
	t.turn <- nil
}

// fetch asks for a token.
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
	case errors.As(err, &answer) && answer.Response != nil: // whose text has the whole answer
		return nil, fmt.Errorf("no access token: the server for them answered %d", answer.Response.StatusCode)
	case errors.As(err, &network):
		return nil, fmt.Errorf("no access token: the server for them was not reached: %w", network.Err)
	default: // an answer that is none, say, which is not repeated
		return nil, errors.New("no access token: there was no answer, or none that can be read")
	}
}

// bound ends requests with a context that the library does not give them.
type bound struct {
	ctx  context.Context
	next http.RoundTripper
}

func (b bound) RoundTrip(request *http.Request) (*http.Response, error) {
	return b.next.RoundTrip(request.WithContext(b.ctx))
}
