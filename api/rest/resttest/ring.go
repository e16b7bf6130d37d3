package resttest

import (
	"crypto/rand"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
)

// Ring is a keyring that a test controls.
type Ring struct {
	t     testing.TB
	at    time.Time // when keys are made
	state atomic.Pointer[access.State]
}

// NewRing returns a ring without keys. Its keys are made at a time.
func NewRing(t testing.TB, at time.Time) *Ring {
	r := &Ring{t: t, at: at}
	r.state.Store(&access.State{})
	return r
}

// Keys returns the keys as of now.
func (r *Ring) Keys() access.State { return *r.state.Load() }

// Handle executes a command.
func (r *Ring) Handle(c access.Command) {
	r.t.Helper()
	s := *r.state.Load()
	events, err := s.Decide(c)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range events {
		s = s.Evolve(e)
	}
	r.state.Store(&s)
}

// Create returns a key's token and id.
func (r *Ring) Create(key access.Key) (string, access.KeyID) {
	r.t.Helper()
	token, id, digest, err := access.NewToken(rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}
	key.ID, key.Digest, key.Name = id, digest, "test"
	r.Handle(access.Create{Key: key, At: r.at})
	return token, id
}

// Scoped returns the token of a new key with these scopes.
func (r *Ring) Scoped(scopes ...access.Scope) string {
	token, _ := r.Create(access.Key{Scopes: scopes})
	return token
}
