package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// KeyID identifies a key. It is part of the key's text and not secret.
type KeyID [8]byte

// String is 16 hex digits.
func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

func (id KeyID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

func (id *KeyID) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(id[:], text[:min(len(text), 2*len(id))]); err != nil || n != len(id) || len(text) != 2*n {
		return fmt.Errorf("a key's id is %d hex digits", 2*len(id))
	}
	return nil
}

// Digest is the SHA-256 of a key's secret. The secret has 256 random bits and cannot be guessed,
// so no salt and no slow hash is needed.
type Digest [sha256.Size]byte

func (d Digest) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(d[:])), nil }

func (d *Digest) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(d[:], text[:min(len(text), 2*len(d))]); err != nil || n != len(d) || len(text) != 2*n {
		return fmt.Errorf("a digest is %d hex digits", 2*len(d))
	}
	return nil
}

// Rate is a key's own rate limit, in place of the configured one.
type Rate struct {
	PerSecond int `json:"perSecond"`
	Burst     int `json:"burst"`
}

// Bounds of a key's own rate.
const (
	RateMax  = 1_000_000
	BurstMax = 10_000_000
)

// Key is an API key with its permissions.
type Key struct {
	ID   KeyID  `json:"id"`
	Name string `json:"name"` // for people
	// Client is the client that the key belongs to. Several keys of one client share ownership.
	// Empty: the key is a client by itself; see [Key.Owner].
	Client string  `json:"client,omitempty"`
	Digest Digest  `json:"digest"`
	Scopes []Scope `json:"scopes"` // sorted
	// Senders, unless empty, restrict the key: it may submit and see only their transactions.
	// Sorted.
	Senders []chain.Address `json:"senders,omitempty"`
	// Signers and Pools, unless both are empty, restrict the key at the relay: its intents may name only
	// these signers and pools. A pool's signers may not be named by themselves. Sorted.
	Signers   []chain.Address `json:"signers,omitempty"`
	Pools     []string        `json:"pools,omitempty"`
	Rate      *Rate           `json:"rate,omitempty"`
	ExpiresAt uint64          `json:"expiresAt,omitempty"` // Unix seconds; 0: never
}

// Owner returns the client that owns everything submitted with the key: the client's name, or the
// key's id if the key has none. A client's name may be the id of an older key, which takes over
// that key's submissions.
func (k Key) Owner() string {
	if k.Client != "" {
		return k.Client
	}
	return k.ID.String()
}

// Owns reports whether a transaction belongs to the key. It belongs to the clients that submitted
// it, within the key's senders, and to each key bound to its sender. claimed means that an access
// key signed and the chain has not confirmed its authority: such a transaction does not belong to
// the claimed sender's keys.
func (k Key) Owns(owners []string, sender chain.Address, claimed bool) bool {
	bound := len(k.Senders) > 0
	if bound && !slices.Contains(k.Senders, sender) {
		return false
	}
	return bound && !claimed || slices.Contains(owners, k.Owner())
}

// May reports whether a key has a scope.
func (k Key) May(s Scope) bool { return slices.Contains(k.Scopes, s) }

// Sees reports whether a key may submit for a sender and see its transactions.
func (k Key) Sees(sender chain.Address) bool {
	return len(k.Senders) == 0 || slices.Contains(k.Senders, sender)
}

// UsesSigner reports whether a key may name a signer of the relay.
func (k Key) UsesSigner(signer chain.Address) bool {
	return len(k.Signers)+len(k.Pools) == 0 || slices.Contains(k.Signers, signer)
}

// UsesPool reports whether a key may name a pool of the relay's signers.
func (k Key) UsesPool(pool string) bool {
	return len(k.Signers)+len(k.Pools) == 0 || slices.Contains(k.Pools, pool)
}

// The text form of a key: wt_, the id, _, the secret.
const (
	tokenPrefix = "wt_"
	secretBytes = 32
	tokenLength = len(tokenPrefix) + 2*len(KeyID{}) + 1 + 2*secretBytes
)

// NewToken draws a new key. It returns the token for its holder, and the id and digest to store.
func NewToken(random io.Reader) (token string, id KeyID, d Digest, err error) {
	var secret [secretBytes]byte
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return "", id, d, fmt.Errorf("draw a key: %w", err)
	}
	if _, err := io.ReadFull(random, secret[:]); err != nil {
		return "", id, d, fmt.Errorf("draw a key: %w", err)
	}
	return tokenPrefix + id.String() + "_" + hex.EncodeToString(secret[:]), id, sha256.Sum256(secret[:]), nil
}

// IsToken reports whether a text has the prefix of a key.
func IsToken(text string) bool { return strings.HasPrefix(text, tokenPrefix) }

// Authenticate returns the key with this token, if it exists and is in force.
func (s State) Authenticate(token string, now time.Time) (Key, bool) {
	var id KeyID
	var secret [secretBytes]byte
	const idEnd = len(tokenPrefix) + 2*len(id)
	if len(token) != tokenLength || !IsToken(token) || token[idEnd] != '_' {
		return Key{}, false
	}
	if _, err := hex.Decode(id[:], []byte(token[len(tokenPrefix):idEnd])); err != nil {
		return Key{}, false
	}
	if _, err := hex.Decode(secret[:], []byte(token[idEnd+1:])); err != nil {
		return Key{}, false
	}
	entry, known := s.Keys[id]
	digest := sha256.Sum256(secret[:])
	if subtle.ConstantTimeCompare(digest[:], entry.Key.Digest[:]) != 1 || !known || !entry.InForce(now) {
		return Key{}, false
	}
	return entry.Key, true
}
