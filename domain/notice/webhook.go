package notice

import (
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Webhook is the target of a client's notices. Secrets are set in the service's settings.
type Webhook struct {
	// URL is the client's URL; in events, the URL sealed by a [Sealer].
	URL string `json:"url"`
}

// Bounds of webhooks.
const (
	WebhooksMax = 8   // of one intent, and subscribed by one client
	GivenURLMax = 512 // bytes of a webhook's URL, as given by a client
	URLMax      = 768 // bytes of a webhook's URL as recorded: see [Sealer]
)

// ErrWebhookURL: a webhook's URL cannot be called.
const ErrWebhookURL = eventlog.Refusal("webhook-url")

// CheckWebhooks refuses webhooks that no operator allows. The operator's rules are checked elsewhere.
func CheckWebhooks(all []Webhook) error {
	for i, w := range all {
		if slices.Contains(all[:i], w) {
			return ErrWebhookURL.Because("webhook %d is listed twice", i)
		}
		if why := w.bad(); why != "" {
			return ErrWebhookURL.Because("webhook %d: %s", i, why)
		}
	}
	return nil
}

// bad returns why a webhook is refused by every operator; empty if it is not. It does not quote
// the URL, which may contain a secret.
func (w Webhook) bad() string {
	scheme, rest, ok := strings.Cut(w.URL, "://")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	switch host := rest[:end]; {
	case len(w.URL) > URLMax || strings.ContainsFunc(w.URL, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "the URL is too long, or has characters other than printable ASCII"
	case !ok || scheme != "https" && scheme != "http":
		return "the URL is not an https URL"
	case host == "" || host[0] == ':':
		return "the URL has no host"
	case strings.Contains(host, "@"):
		return "the URL has a user or a password"
	case strings.ContainsAny(host, `\%"<>^{}|`+"`"):
		return "the URL's host is neither a name nor an address"
	case strings.Contains(w.URL, "#"):
		return "the URL has a fragment"
	}
	return ""
}

// Origin returns the URL's scheme and host. Path and query may contain a secret and are never
// shown. It is empty for a URL that [CheckWebhooks] refuses.
func (w Webhook) Origin() string {
	if w.bad() != "" {
		return ""
	}
	scheme, rest, _ := strings.Cut(w.URL, "://")
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		rest = rest[:end]
	}
	return scheme + "://" + rest
}
