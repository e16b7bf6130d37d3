package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

const (
	// lookUpPlaces is the number of look-ups of webhooks' hosts, of all clients, that run at once.
	// Each has a socket or two, and the resolver has limits of its own.
	lookUpPlaces = 64
	// lookUpShare is the most look-ups of one client that run at once.
	lookUpShare = 8
)

// Guard checks which URLs may be called. Its errors quote no part of a URL that may be
// secret: user, path and query.
type Guard interface {
	// Check judges a URL by itself.
	Check(url string) error
	// CheckNow is Check that also looks up the host's addresses: the same for all URLs of one
	// origin that Check lets through. A net.Error is transient: the look-up failed.
	CheckNow(ctx context.Context, url string) error
}

// WebhookChecks checks which URLs clients may have called. It bounds the look-ups of hosts that
// run at once, of all clients and of each. A client's checks of one origin share the look-up
// that runs; clients share none, so that no answer depends on another client's URLs.
type WebhookChecks struct {
	guard  Guard
	places *commands.Places[string]

	mu      sync.Mutex
	running map[lookedUp]*lookUp
}

// lookedUp identifies a look-up.
type lookedUp struct{ client, origin string }

// lookUp is a look-up that waits for a place, or runs.
type lookUp struct {
	done chan struct{} // closed at its end
	err  error
	// abandoned: the request that ran it ended first, so that err says nothing about the URL.
	abandoned bool
}

// NewWebhookChecks returns the checks by a guard.
func NewWebhookChecks(g Guard) *WebhookChecks {
	return &WebhookChecks{
		guard: g, places: commands.NewPlaces[string](lookUpPlaces, lookUpShare, 0), running: map[lookedUp]*lookUp{},
	}
}

// Check refuses a client's URL that may not be called ([intent.ErrWebhookURL]). The refusal's
// text begins with which.
func (c *WebhookChecks) Check(ctx context.Context, client, which, url string) error {
	err := c.guard.Check(url)
	if err == nil {
		err = c.lookUp(ctx, lookedUp{client, cmp.Or(intent.Webhook{URL: url}.Origin(), url)}, url)
	}
	var nobody net.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("check a webhook: %w", ctx.Err())
	case errors.As(err, &nobody):
		return fmt.Errorf("check a webhook: %w", err)
	}
	return intent.ErrWebhookURL.Because("%s%v", which, err)
}

// lookUp waits for the client's look-up of the same origin, or runs one.
func (c *WebhookChecks) lookUp(ctx context.Context, of lookedUp, url string) error {
	for {
		l, own := c.join(of)
		if own {
			return c.run(ctx, of, l, url)
		}
		select {
		case <-l.done:
			if !l.abandoned {
				return l.err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// join returns the client's look-up of an origin. own: it is new, and the caller runs it.
func (c *WebhookChecks) join(of lookedUp) (l *lookUp, own bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l = c.running[of]; l != nil {
		return l, false
	}
	l = &lookUp{done: make(chan struct{}), abandoned: true}
	c.running[of] = l
	return l, true
}

// run runs a look-up when it has a place.
func (c *WebhookChecks) run(ctx context.Context, of lookedUp, l *lookUp, url string) error {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.running, of)
		close(l.done)
	}()
	leave, err := c.places.Enter(ctx, of.client)
	if err != nil {
		return err
	}
	defer leave()
	l.err = c.guard.CheckNow(ctx, url)
	l.abandoned = ctx.Err() != nil
	return l.err
}
