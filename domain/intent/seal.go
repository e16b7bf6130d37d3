package intent

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

// Sealer hides of a webhook's URL what may be a secret: all that follows scheme and host.
// What it gives is a URL of the same origin that whoever has the secret can open, and
// that means nothing to others, so that it may stand in a log for ever. The same URL
// always gives the same one: a request that is asked for again still has the same digest.
// That two intents have one webhook is not hidden.
//
// The bytes are sealed by AES-256-GCM, bound to the origin, under a nonce that is the
// beginning of the HMAC-SHA-256 of both: no two texts share a nonce.
type Sealer struct {
	mac    []byte
	aead   cipher.AEAD
	former []Sealer
}

// sealedPath begins the path of every URL that is sealed.
const sealedPath = "/.sealed/"

var errSealed = errors.New("the URL was sealed with another key, or is damaged")

// NewSealer makes a sealer of a secret that has another purpose nowhere else.
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

// After is the sealer with others that were used before it: what they have sealed it opens.
func (s Sealer) After(former ...Sealer) Sealer {
	s.former = former
	return s
}

// Former are the sealers that [Sealer.After] was given.
func (s Sealer) Former() []Sealer { return s.former }

// Request is a request whose webhooks are sealed, as it is recorded. A URL that no
// [Request.Check] lets through stays as it is.
func (s Sealer) Request(r Request) Request {
	r.Webhooks = slices.Clone(r.Webhooks)
	for i, w := range r.Webhooks {
		r.Webhooks[i].URL = s.Seal(w.URL)
	}
	return r
}

// Seal seals a URL.
func (s Sealer) Seal(url string) string {
	origin := Webhook{url}.Origin()
	if origin == "" {
		return url
	}
	rest := url[len(origin):]
	digest := hmac.New(sha256.New, s.mac)
	digest.Write([]byte(origin + "\n" + rest)) // an origin has no line's end
	nonce := digest.Sum(nil)[:s.aead.NonceSize()]
	sealed := s.aead.Seal(slices.Clip(nonce), nonce, []byte(rest), []byte(origin))
	return origin + sealedPath + base64.RawURLEncoding.EncodeToString(sealed)
}

// Open is the URL that was sealed; one that is not sealed is given back. Its errors quote
// nothing.
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
