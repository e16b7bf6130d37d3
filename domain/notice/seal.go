package notice

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// SealKeyBytes is the length of a [Sealer]'s secret.
const SealKeyBytes = 32

// Sealer encrypts the part of a webhook's URL that may be secret: all that follows scheme and
// host. The result is a URL of the same origin, which may stay in a log for ever: only a holder
// of the secret can open it. The same URL always seals to the same result, so that a repeated
// request has the same digest. Equal webhooks of two intents are therefore visible.
//
// The bytes are sealed by AES-256-GCM, bound to the origin. The nonce is the beginning of the
// HMAC-SHA-256 of origin and bytes, so no two texts share a nonce.
type Sealer struct {
	mac    []byte
	aead   cipher.AEAD
	former []Sealer
}

// sealedPath is the path prefix of every sealed URL.
const sealedPath = "/.sealed/"

var errSealed = errors.New("the URL was sealed with another key, or is damaged")

// NewSealer returns a sealer with a secret, which must be used for nothing else.
func NewSealer(secret []byte) (Sealer, error) {
	if len(secret) != SealKeyBytes {
		return Sealer{}, fmt.Errorf("a sealer's secret has %d bytes, not %d", len(secret), SealKeyBytes)
	}
	mac, key := chain.Keccak([]byte("mac"), secret), chain.Keccak([]byte("key"), secret)
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return Sealer{}, err
	}
	aead, err := cipher.NewGCM(block)
	return Sealer{mac: mac[:], aead: aead}, err
}

// After returns the sealer with earlier sealers, whose URLs it can open too.
func (s Sealer) After(former ...Sealer) Sealer {
	s.former = former
	return s
}

// Former returns the sealers given to [Sealer.After].
func (s Sealer) Former() []Sealer { return s.former }

// Webhooks returns sealed webhooks, as they are recorded. A URL that [CheckWebhooks] refuses stays
// unchanged.
func (s Sealer) Webhooks(all []Webhook) []Webhook {
	all = slices.Clone(all)
	for i, w := range all {
		all[i].URL = s.Seal(w.URL)
	}
	return all
}

// Seal seals a URL.
func (s Sealer) Seal(url string) string {
	origin := Webhook{url}.Origin()
	if origin == "" {
		return url
	}
	rest := url[len(origin):]
	digest := hmac.New(sha256.New, s.mac)
	digest.Write([]byte(origin + "\n" + rest)) // an origin contains no line feed
	nonce := digest.Sum(nil)[:s.aead.NonceSize()]
	sealed := s.aead.Seal(slices.Clip(nonce), nonce, []byte(rest), []byte(origin))
	return origin + sealedPath + base64.RawURLEncoding.EncodeToString(sealed)
}

// Open returns the original of a sealed URL. A URL that is not sealed is returned unchanged.
// Errors never quote the URL.
func (s Sealer) Open(url string) (string, error) {
	opened, err := s.open(url)
	for _, f := range s.former {
		if err == nil {
			break
		}
		opened, err = f.open(url)
	}
	return opened, err
}

func (s Sealer) open(url string) (string, error) {
	origin := Webhook{url}.Origin()
	encoded, ok := strings.CutPrefix(url[len(origin):], sealedPath)
	if origin == "" || !ok {
		return url, nil
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil || len(sealed) < s.aead.NonceSize() {
		return "", errSealed
	}
	nonce := sealed[:s.aead.NonceSize()]
	rest, err := s.aead.Open(nil, nonce, sealed[len(nonce):], []byte(origin))
	if err != nil {
		return "", errSealed
	}
	return origin + string(rest), nil
}
