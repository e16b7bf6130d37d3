package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// Caller makes the attempts that a queue of notices wants. Any number of goroutines may
// use it.
type Caller struct {
	Sender *Sender
	// Seal opens URLs as they are recorded.
	Seal intent.Sealer
	// Seeds are what each endpoint's secrets follow from, the newest first: see [Secret.For].
	Seeds []Secret
}

// Call sends a notice once. One whose URL cannot be opened any more is unfit.
func (c Caller) Call(ctx context.Context, n notice.Sending) notice.Outcome {
	url, err := c.Seal.Open(n.URL)
	if err != nil {
		return notice.Outcome{Class: notice.Failed, Cause: notice.Unfit}
	}
	return c.Sender.Send(ctx, Endpoint{URL: url, Secrets: c.Secrets(n.Endpoint)}, Message{ID: n.MessageID(), Body: n.Body})
}

// Try sends a [Ping] to a client's URL once, as it will be sent notices.
func (c Caller) Try(ctx context.Context, id notice.EndpointID, url, message string, at time.Time) notice.Outcome {
	return c.Sender.Send(ctx, Endpoint{URL: url, Secrets: c.Secrets(id)}, Ping(message, at))
}

// Endpoint names the endpoint of a client's URL, as the feeder of the queue names it.
func (c Caller) Endpoint(client, url string) notice.EndpointID {
	return notice.EndpointOf(client, c.Seal.Seal(url))
}

// Secrets are an endpoint's own, the newest first.
func (c Caller) Secrets(id notice.EndpointID) []Secret {
	own := make([]Secret, len(c.Seeds))
	for i, seed := range c.Seeds {
		own[i] = seed.For(id)
	}
	return own
}

// For is the secret of an endpoint that follows from a seed: the HMAC-SHA-256 of the
// endpoint's id under it. Who knows the secret of one endpoint can forge nothing for
// another, and nobody has to keep the secrets of all.
func (s Secret) For(id notice.EndpointID) Secret {
	mac := hmac.New(sha256.New, s.key())
	mac.Write([]byte("watchtower webhook " + id.String()))
	return secretOf(mac.Sum(nil))
}

// ParseSecrets reads secrets, one in a line, the newest first. Its errors quote nothing.
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
