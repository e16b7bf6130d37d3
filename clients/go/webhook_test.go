package watchtower_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/infra/webhook"
)

// The TypeScript client has the same cases. The first is a vector of the specification's own
// libraries.
func TestWebhooks(t *testing.T) {
	var cases []struct {
		Name, ID, Timestamp, Signature, Body string
		OK                                   bool
		Secrets                              []string
		Now                                  int64
	}
	text, err := os.ReadFile("testdata/webhooks.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) == 0 {
		t.Fatal(len(cases), err)
	}
	for _, c := range cases {
		v, err := watchtower.NewWebhookVerifier(c.Secrets...)
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{}
		header.Set("Webhook-Id", c.ID)
		header.Set("Webhook-Timestamp", c.Timestamp)
		header.Set("Webhook-Signature", c.Signature)
		id, err := v.Verify(header, []byte(c.Body), time.Unix(c.Now, 0))
		if c.OK && (err != nil || id != c.ID) || !c.OK && (!errors.Is(err, watchtower.ErrWebhook) || id != "") {
			t.Errorf("%s: %q, %v", c.Name, id, err)
		}
	}
}

// A receiver accepts the service's webhooks with the new secret, with the old one, and with no
// other.
func TestWebhookOfTheSender(t *testing.T) {
	var secrets []webhook.Secret
	for _, fill := range []byte{1, 2, 3} {
		s, err := webhook.NewSecret(bytes.NewReader(bytes.Repeat([]byte{fill}, 32)))
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, s)
	}
	var verifier *watchtower.WebhookVerifier
	var body []byte
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, read, err := verifier.Read(r)
		if body = read; err != nil || id != "msg_1" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer receiver.Close()
	guard, err := webhook.NewGuard(webhook.Rules{Development: true, Lookup: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	sender, err := webhook.New(webhook.Options{Guard: guard, Timeout: 30 * time.Second, Now: time.Now,
		Roots: receiver.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs})
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusUnauthorized} {
		if verifier, err = watchtower.NewWebhookVerifier(secrets[i].Reveal()); err != nil {
			t.Fatal(err)
		}
		message := webhook.Message{ID: "msg_1", Body: []byte(`{"type":"ping"}`)}
		o := sender.Send(t.Context(), webhook.Endpoint{URL: receiver.URL, Secrets: secrets[:2]}, message)
		if o.Status != want || o.Class == notice.Delivered && string(body) != string(message.Body) {
			t.Errorf("secret %d: %+v, read %s", i, o, body)
		}
	}
}

func TestWebhookSecrets(t *testing.T) {
	for _, bad := range [][]string{nil, {""}, {"whsec_"}, {"whsec_a"}, {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "x"}} {
		if _, err := watchtower.NewWebhookVerifier(bad...); err == nil || len(bad) > 0 && len(bad[0]) > 7 && strings.Contains(err.Error(), bad[0][7:]) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestLargeWebhook(t *testing.T) {
	v, err := watchtower.NewWebhookVerifier("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(make([]byte, 2<<20)))
	r.Header.Set("webhook-id", "a")
	r.Header.Set("webhook-timestamp", strconv.FormatInt(time.Now().Unix(), 10))
	if _, _, err := v.Read(r); !errors.Is(err, watchtower.ErrWebhook) {
		t.Error(err)
	}
}
