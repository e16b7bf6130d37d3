package web3signer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/keys"
)

// Retries of one signature at the key management service. A retry is harmless: a lost signature
// leaves nothing behind.
const (
	attempts   = 4
	firstPause = 100 * time.Millisecond // doubles, unless the service gives a pause
	perAttempt = 2                      // one attempt may take this part of the time: half
)

// custodian is the key service, shared by all requests.
type custodian struct {
	slots   chan struct{} // one per running request to it
	waiting chan struct{} // one per waiting request for a signature

	mu    sync.Mutex
	quiet time.Time // end of the pause that it asked for
}

func newCustodian(atOnce int) *custodian {
	return &custodian{slots: make(chan struct{}, atOnce), waiting: make(chan struct{}, 5*atOnce)}
}

// sign requests a signature until there is one, while it is of use.
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
		if refusal := eventlog.Refusal(""); err == nil || errors.As(err, &refusal) || attempt == attempts || ctx.Err() != nil {
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

// attempt sends one request. A dead connection does not use up all of the time.
func (c *custodian) attempt(ctx context.Context, signer *keys.Signer, payload []byte, within time.Duration) ([]byte, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("too many requests wait: %w", ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return signer.Sign(ctx, payload)
}

// hush pauses all requests to the service: its limits apply to all of them together.
func (c *custodian) hush(while time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if until := time.Now().Add(while); until.After(c.quiet) {
		c.quiet = until
	}
}

// left is the remaining pause.
func (c *custodian) left() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.quiet)
}

// wait waits, or returns an error at once if the time is too short.
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

// tooLate reports whether the context ends before a pause does.
func tooLate(ctx context.Context, pause time.Duration) bool {
	deadline, ends := ctx.Deadline()
	return ends && time.Until(deadline) <= pause
}
