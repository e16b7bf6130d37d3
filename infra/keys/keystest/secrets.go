package keystest

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"testing"
)

// Secrets are bytes that must not appear in any output: private keys, passphrases.
type Secrets [][]byte

// Find looks for a secret in a text, in any usual encoding, and returns the encoding, or
// nothing. Parts count: half a key is found too.
func (s Secrets) Find(text string) string {
	lower := strings.ToLower(text)
	for _, secret := range s {
		half := secret
		if len(secret) >= 16 {
			half = secret[:len(secret)/2]
		}
		for _, piece := range [][]byte{secret, half, secret[len(secret)-len(half):]} {
			for way, written := range spellings(piece) {
				if strings.Contains(text, written) || strings.Contains(lower, strings.ToLower(written)) {
					return way
				}
			}
		}
	}
	return ""
}

// spellings are the usual encodings of bytes.
func spellings(b []byte) map[string]string {
	escaped := fmt.Sprintf("%q", b)
	text64 := strings.TrimRight(base64.StdEncoding.EncodeToString(b), "=")
	ways := map[string]string{
		"as it is":        string(b),
		"quoted":          escaped[1 : len(escaped)-1],
		"in hex":          hex.EncodeToString(b),
		"in spaced hex":   fmt.Sprintf("% x", b),
		"in base64":       text64[:len(text64)-1], // the last digit depends on the following bytes
		"in base64url":    strings.NewReplacer("+", "-", "/", "_").Replace(text64[:len(text64)-1]),
		"in base32":       strings.TrimRight(base32.StdEncoding.EncodeToString(b), "=")[:len(b)],
		"in bytes":        strings.Trim(fmt.Sprint(b), "[]"),
		"in Go's bytes":   strings.Trim(strings.TrimPrefix(fmt.Sprintf("%#v", b), "[]byte"), "{}"),
		"in JSON's bytes": strings.ReplaceAll(strings.Trim(fmt.Sprint(b), "[]"), " ", ","),
	}
	if len(b) >= 16 { // a short decimal number occurs in any text
		ways["in decimal"] = new(big.Int).SetBytes(b).String()
		words := new(big.Int).SetBytes(b).Bits()
		ways["in words"] = strings.Trim(fmt.Sprint(words), "[]")
	}
	return ways
}

// Missing fails the test if a text holds a secret.
func (s Secrets) Missing(t testing.TB, what, text string) {
	t.Helper()
	if way := s.Find(text); way != "" {
		t.Errorf("%s holds a secret %s", what, way) // the secret itself is not repeated here
	}
}

// Printed prints a value in all ways, and fails the test if one shows a secret. For an error it
// also prints the wrapped errors.
func (s Secrets) Printed(t testing.TB, value any) {
	t.Helper()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%b", "%o", "%U", "%!"} {
		s.Missing(t, fmt.Sprintf("%T printed with %s", value, verb), fmt.Sprintf(verb, value))
	}
	if text, err := json.Marshal(value); err == nil {
		s.Missing(t, fmt.Sprintf("%T in JSON", value), string(text))
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "value", value)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "value", value)
	s.Missing(t, fmt.Sprintf("%T in a log", value), log.String())
	err, _ := value.(error)
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		s.Missing(t, fmt.Sprintf("%T within %T", inner, value), fmt.Sprintf("%v %+v %#v", inner, inner, inner))
	}
}
