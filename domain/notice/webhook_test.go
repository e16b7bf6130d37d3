package notice

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

func goodURLs() []string {
	return []string{"https://hooks.example.com", "https://hooks.example.com/a?b=c&d=%20", "https://hooks.example.com:443/", "http://127.0.0.1:8080/dev", "https://[::1]:9/x?@"}
}

func badURLs() []string {
	return []string{
		"", "hooks.example.com", "//hooks.example.com", "https:hooks", "https:///path", "https://", "https://:443/", "HTTPS://x.example", "gopher://x.example/",
		"file:///etc/passwd", "ftp://x.example", "javascript:alert(1)", "https://user@x.example/", "https://u:p@127.0.0.1/", "https://x.example/#here",
		"https://x.example\\@y.example/", "https://ⓛocalhost/", "https://x.example/\n", "https://x.example/ b", "https://fe80::1%eth0/", "https://x.example#@y.example/",
		"https://x.example/" + strings.Repeat("a", URLMax),
	}
}

func TestWebhookURLs(t *testing.T) {
	for _, u := range goodURLs() {
		if err := CheckWebhooks([]Webhook{{u}}); err != nil {
			t.Errorf("%q: %v", u, err)
		}
	}
	for _, u := range badURLs() {
		err := CheckWebhooks([]Webhook{{u}})
		if !errors.Is(err, ErrWebhookURL) {
			t.Errorf("%q: %v", u, err)
		}
		if len(u) > len("https://") && strings.Contains(err.Error(), u) {
			t.Errorf("the refusal quotes %q, which may hold a secret", u)
		}
	}
}

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
