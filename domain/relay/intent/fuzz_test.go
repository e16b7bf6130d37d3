package intent

import (
	"net/url"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/eventlog/eventtest"
)

// Decoding any logged bytes returns an event or an error.
func FuzzCodec(f *testing.F) { eventtest.Mutated(f, Codec()) }

// Every client-supplied webhook is accepted or refused. An accepted URL means the same to net/url
// as it means here.
func FuzzWebhook(f *testing.F) {
	for _, u := range append(goodURLs(), badURLs()...) {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if (Webhook{text}).bad() != "" {
			return
		}
		u, err := url.Parse(text)
		if err != nil {
			return // no HTTP client can parse it either
		}
		if u.User != nil || u.Fragment != "" || u.Opaque != "" || u.Scheme != "https" && u.Scheme != "http" || !strings.HasPrefix(text, u.Scheme+"://"+u.Host) {
			t.Errorf("%q is taken, and means %+v", text, u)
		}
	})
}
