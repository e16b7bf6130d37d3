package intent

import (
	"net/url"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/event/eventtest"
)

// Whatever a log holds, reading it ends in a fact or an error.
func FuzzCodec(f *testing.F) { eventtest.Mutated(f, Codec()) }

// Whatever a client writes, a webhook is taken or refused; and what is taken means to
// others what it means here.
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
			return // whoever dials cannot read it either
		}
		if u.User != nil || u.Fragment != "" || u.Opaque != "" || u.Scheme != "https" && u.Scheme != "http" || !strings.HasPrefix(text, u.Scheme+"://"+u.Host) {
			t.Errorf("%q is taken, and means %+v", text, u)
		}
	})
}
