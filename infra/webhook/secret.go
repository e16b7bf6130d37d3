package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// Limits of a secret's length in bytes, by the specification.
const (
	SecretMinBytes = 24
	SecretMaxBytes = 64
)

const (
	secretPrefix  = "whsec_"
	newSecretSize = 32
	redacted      = "[redacted]"
)

// Secret is a key shared with a client. Only Reveal shows it.
type Secret struct {
	// A function, because fmt cannot look into one. Within an unexported field fmt cannot call
	// a Secret's methods, and would print its contents, even behind a pointer.
	key func() []byte
}

func secretOf(key []byte) Secret { return Secret{func() []byte { return key }} }

var errSecret = fmt.Errorf("a secret is %q and the base64 of %d to %d bytes", secretPrefix, SecretMinBytes, SecretMaxBytes)

// ParseSecret reads "whsec_" followed by padded standard base64. Its errors do not quote the
// text.
func ParseSecret(text string) (Secret, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	if !ok || len(encoded) > base64.StdEncoding.EncodedLen(SecretMaxBytes) || strings.ContainsAny(encoded, "\r\n") {
		return Secret{}, errSecret
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(key) < SecretMinBytes || len(key) > SecretMaxBytes {
		return Secret{}, errSecret
	}
	return secretOf(key), nil
}

// NewSecret makes a random secret of 32 bytes.
func NewSecret(random io.Reader) (Secret, error) {
	key := make([]byte, newSecretSize)
	if _, err := io.ReadFull(random, key); err != nil {
		return Secret{}, errors.New("no randomness for a secret")
	}
	return secretOf(key), nil
}

// Reveal returns the secret's text, for its owner; empty for the zero Secret.
func (s Secret) Reveal() string {
	if s.key == nil {
		return ""
	}
	return secretPrefix + base64.StdEncoding.EncodeToString(s.key())
}

func (Secret) String() string               { return redacted }
func (Secret) GoString() string             { return redacted }
func (Secret) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, redacted) }
func (Secret) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Sign returns the value of the signature header: a signature by each secret, in order. Source:
// Standard Webhooks 1.0.0, "Signature scheme".
func Sign(secrets []Secret, id string, at time.Time, body []byte) string {
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		mac := hmac.New(sha256.New, s.key())
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}
