package watchtower

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// WebhookTolerance is the largest accepted difference between a webhook's time and the
// receiver's.
const WebhookTolerance = 5 * time.Minute

// webhookMost is the most bytes of a webhook's body.
const webhookMost = 1 << 20

// ErrWebhook means that a request's signature or time is invalid, or that its body is too
// large. It does not say which: the sender of a forged request might learn from it.
var ErrWebhook = errors.New("watchtower: the webhook cannot be trusted")

// WebhookVerifier checks that requests to an endpoint are webhooks signed with its secret, by
// the Standard Webhooks specification, version 1.0.0.
type WebhookVerifier struct{ keys [][]byte }

// NewWebhookVerifier returns a verifier for an endpoint's secrets ("whsec_…"). While a secret
// is being replaced there are several; a signature with any of them is valid.
func NewWebhookVerifier(secrets ...string) (*WebhookVerifier, error) {
	v := &WebhookVerifier{}
	for _, secret := range secrets {
		encoded, ok := strings.CutPrefix(secret, "whsec_")
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(key) == 0 {
			return nil, errors.New(`watchtower: a webhook's secret is "whsec_" and base64`)
		}
		v.keys = append(v.keys, key)
	}
	if len(v.keys) == 0 {
		return nil, errors.New("watchtower: webhooks cannot be checked without a secret")
	}
	return v, nil
}

// Verify checks a webhook's headers against its body, byte for byte as received, and its time
// against now. It returns the webhook's id. A webhook may be delivered more than once, with the
// same id, so remember the ids of handled webhooks.
func (v *WebhookVerifier) Verify(header http.Header, body []byte, now time.Time) (id string, err error) {
	id = header.Get("webhook-id")
	text := header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id == "" || now.Sub(time.Unix(seconds, 0)).Abs() > WebhookTolerance {
		return "", ErrWebhook
	}
	for _, key := range v.keys {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.", id, text)
		mac.Write(body)
		want := mac.Sum(nil)
		for _, signature := range strings.Split(header.Get("webhook-signature"), " ") {
			encoded, ok := strings.CutPrefix(signature, "v1,")
			got, err := base64.StdEncoding.DecodeString(encoded)
			if ok && err == nil && hmac.Equal(got, want) {
				return id, nil
			}
		}
	}
	return "", ErrWebhook
}

// Read reads a request's body, of at most 1 MiB, and verifies it. Answer 2xx once the webhook
// is handled, or 410 to receive no more webhooks.
func (v *WebhookVerifier) Read(r *http.Request) (id string, body []byte, err error) {
	body, err = io.ReadAll(io.LimitReader(r.Body, webhookMost+1))
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("watchtower: read webhook: %w", err)
	case len(body) > webhookMost:
		return "", nil, ErrWebhook
	}
	if id, err = v.Verify(r.Header, body, time.Now()); err != nil {
		return "", nil, err
	}
	return id, body, nil
}
