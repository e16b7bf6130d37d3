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

// WebhookTolerance is how far a webhook's time may be from the receiver's.
const WebhookTolerance = 5 * time.Minute

// webhookMost bounds a webhook's body.
const webhookMost = 1 << 20

// ErrWebhook says that a request is not a webhook of who shares the secret, or not one
// of now. It does not say why: whoever made the request might learn from it.
var ErrWebhook = errors.New("watchtower: not a webhook that can be trusted")

// WebhookVerifier checks that requests to an endpoint are webhooks of who shares its
// secret, by the Standard Webhooks specification, version 1.0.0.
type WebhookVerifier struct{ keys [][]byte }

// NewWebhookVerifier makes one of an endpoint's secrets ("whsec_…"): one, or while it
// is being replaced several, any of which counts.
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

// Verify checks a webhook's headers against its body, byte for byte as it came, and its
// time against now. It returns the webhook's id, which is the same each time the event
// is sent: a webhook may come more than once, so keep the ids of those that were handled.
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

// Read reads a request's body, of at most 1 MiB, and verifies it. Answer 2xx when it
// is handled, and 410 to be sent nothing more.
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
