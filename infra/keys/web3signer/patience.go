package web3signer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/infra/keys"
)

// How a key management service is asked for one signature, if it does not give it at
// once. Asking again does no harm: of a signature that got lost nothing is left.
const (
	attempts   = 4
	firstPause = 100 * time.Millisecond // doubled each time, where the service names none
	perAttempt = 2                      // the part of the time that one attempt may take: half
)

// custodian is the service that has the keys, as all requests see it together.
type custodian struct {
	slots   chan struct{} // one for each request to it that is under way
	waiting chan struct{} // one for each signature that is wanted

	mu    sync.Mutex
	quiet time.Time // until when it wants to be left alone
}

func newCustodian(atOnce int) *custodian {
	return &custodian{slots: make(chan struct{}, atOnce), waiting: make(chan struct{}, 5*atOnce)}
}

// sign asks for a signature until there is one, for as long as that is of use.
func (c *custodian) sign(ctx context.Context, signer *keys.Signer, payload []byte, within time.Duration) ([]byte, error) {
	select {
	case c.waiting <- struct{}{}:
		defer func() { <-c.waiting }()
	default:
		return nil, &keys.Busy{Status: http.StatusTooManyRequests}
	}
	for attempt, pause := 1, firstPause; ; attempt, pause = attempt+1, 2*pause {
		if err := c.wait(ctx, c.left()); err != nil {
			return nil, err
		}
		signature, err := c.attempt(ctx, signer, payload, within/perAttempt)
		if refusal := event.Refusal(""); err == nil || errors.As(err, &refusal) || attempt == attempts || ctx.Err() != nil {
			return signature, err
		}
		if busy := (*keys.Busy)(nil); errors.As(err, &busy) && busy.After > 0 {
			c.hush(busy.After)
			continue
		}
		if tooLate(ctx, pause) || c.wait(ctx, pause) != nil {
			return nil, err
		}
	}
}

// attempt asks once. A connection that is dead does not use up all of the time.
func (c *custodian) attempt(ctx context.Context, signer *keys.Signer, payload []byte, within time.Duration) ([]byte, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("too many others wait: %w", ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return signer.Sign(ctx, payload)
}

// hush lets nobody ask the service for a while: its limits are for all of us.
func (c *custodian) hush(while time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if until := time.Now().Add(while); until.After(c.quiet) {
		c.quiet = until
	}
}

// left is how long it is to be left alone yet.
func (c *custodian) left() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.quiet)
}

// wait waits, or says at once that there is no time to.
func (c *custodian) wait(ctx context.Context, while time.Duration) error {
	if while <= 0 {
		return nil
	}
	if tooLate(ctx, while) {
		return &keys.Busy{Status: http.StatusTooManyRequests, After: while}
	}
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tooLate tells whether the context ends before a pause does.
func tooLate(ctx context.Context, pause time.Duration) bool {
	deadline, ends := ctx.Deadline()
	return ends && time.Until(deadline) <= pause
}
