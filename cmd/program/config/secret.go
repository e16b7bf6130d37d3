package config

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
)

// Secret is a URL that may hold a password or a key. Printed, logged or encoded in any way, it
// shows scheme and host only; [Secret.Reveal] alone returns the whole URL. The zero value is no
// URL.
type Secret struct {
	// A pointer, because fmt calls no method on a Secret inside an unexported
	// field: it then prints an address.
	text *string
}

// NewSecret wraps a URL.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the URL as given.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether there is no URL.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// Equal reports whether two secrets hold the same URL.
func (s Secret) Equal(other Secret) bool { return s.Reveal() == other.Reveal() }

// String is the URL with all but scheme and host replaced by an ellipsis.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	u, err := url.Parse(s.Reveal())
	if err != nil || u.Host == "" {
		scheme, _, ok := strings.Cut(s.Reveal(), "://")
		if !ok || strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz") != "" {
			return "…"
		}
		return scheme + "://…"
	}
	rest := strings.TrimSuffix(u.RequestURI(), "/") + u.Fragment
	switch {
	case strings.Contains(rest, "@"):
		// The password has an unescaped slash or hash: the apparent host is the start of the
		// password.
		return u.Scheme + "://…"
	case rest != "" || u.User != nil:
		return u.Scheme + "://" + u.Host + "/…"
	}
	return u.Scheme + "://" + u.Host
}

// GoString is [Secret.String].
func (s Secret) GoString() string { return s.String() }

// Format prints [Secret.String] for every verb.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// MarshalText is [Secret.String]; JSON and YAML use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue is [Secret.String].
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
