package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// Caller makes the attempts for a queue of notices. It is safe for concurrent use.
type Caller struct {
	Sender *Sender
	// Seal decrypts recorded URLs.
	Seal notice.Sealer
	// Seeds are the secrets from which each endpoint's secrets are derived, newest first: see
	// [Secret.For].
	Seeds []Secret
}

// Call sends a notice once. A notice whose URL cannot be decrypted any more is unfit.
func (c Caller) Call(ctx context.Context, n notice.Sending) notice.Outcome {
	url, err := c.Seal.Open(n.URL)
	if err != nil {
		return notice.Outcome{Class: notice.Failed, Cause: notice.Unfit}
	}
	return c.Sender.Send(ctx, Endpoint{URL: url, Secrets: c.Secrets(n.Endpoint)}, Message{ID: n.MessageID(), Body: n.Body})
}

// Try sends a [Ping] to a client's URL once, in the same way as notices.
func (c Caller) Try(ctx context.Context, id notice.EndpointID, url, message string, at time.Time) notice.Outcome {
	return c.Sender.Send(ctx, Endpoint{URL: url, Secrets: c.Secrets(id)}, Ping(message, at))
}

// Endpoint is the id of a client's URL, as used in the queue.
func (c Caller) Endpoint(client, url string) notice.EndpointID {
	return notice.EndpointOf(client, c.Seal.Seal(url))
}

// Secrets are an endpoint's secrets, newest first.
func (c Caller) Secrets(id notice.EndpointID) []Secret {
	own := make([]Secret, len(c.Seeds))
	for i, seed := range c.Seeds {
		own[i] = seed.For(id)
	}
	return own
}

// For derives an endpoint's secret from a seed: the HMAC-SHA-256 of the endpoint's id under it.
// The secret of one endpoint does not allow forgeries for another, and the individual secrets
// need not be stored.
func (s Secret) For(id notice.EndpointID) Secret {
	mac := hmac.New(sha256.New, s.key())
	mac.Write([]byte("watchtower webhook " + id.String()))
	return secretOf(mac.Sum(nil))
}

// ParseSecrets reads secrets, one per line, newest first. Its errors quote nothing.
func ParseSecrets(text string) (all []Secret, err error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		s, err := ParseSecret(line)
		if err != nil {
			return nil, fmt.Errorf("secret %d: %w", len(all)+1, err)
		}
		all = append(all, s)
	}
	if len(all) == 0 || len(all) > SecretsMax {
		return nil, fmt.Errorf("there are %d secrets, not 1 to %d, one in a line", len(all), SecretsMax)
	}
	return all, nil
}
